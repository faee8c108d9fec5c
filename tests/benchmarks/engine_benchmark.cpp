// How fast the engine turns an operator-level graph of a million tasks into a timeline, and what the floor is: a plain
// topological pass (Kahn) over the same graph, which touches every edge once and decides nothing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "engine/simulate.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run.hpp"
#include "schedules/scenario/fold.hpp"
#include "schedules/schedules.hpp"
#include "timeline/metrics.hpp"

namespace {

using namespace moeline;

constexpr std::size_t kTasks = 1'000'000;

TaskGraph chunk(int layers) {
  const std::string scenario =
      std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml";
  const std::vector<std::string> assignments = {"ranks=folded", "samples=1", "routing={distribution: balanced}",
                                                "layers=" + std::to_string(layers)};
  return dualpipe_chunk(load_setup(scenario, assignments)).graph;
}

// The same program on many ranks: nothing joins them, but their events interleave in time.
TaskGraph on_ranks(const TaskGraph& one, std::size_t ranks) {
  TaskGraphDraft draft;
  draft.reserve(one.size() * ranks, one.edges() * ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first_task = static_cast<TaskId>(draft.size());
    ResourceId first_resource = 0;
    for (const Resource& resource : one.resources()) {
      const ResourceId id = resource.kind == ResourceKind::sm_pool
                                ? draft.add_pool(resource.name, static_cast<int>(resource.capacity))
                                : draft.add_link(resource.name, resource.capacity);
      if (&resource == one.resources().data()) first_resource = id;
    }
    for (TaskId id = 0; id < one.size(); ++id) {
      Task task = one.task(id);
      task.delay += std::chrono::nanoseconds(rank);  // ranks are not in step
      if (task.pool != kNoPool) task.pool = static_cast<ResourceId>(task.pool + first_resource);
      std::vector<Usage> usages(one.usages(id).begin(), one.usages(id).end());
      for (Usage& usage : usages) usage.link = static_cast<ResourceId>(usage.link + first_resource);
      draft.add(task, one.label(id), usages);
    }
    for (EventId event = 0; event < 2 * one.size(); ++event) {
      for (const EventId next : one.successors(event)) {
        const TaskId before = first_task + task_of(event);
        const TaskId after = first_task + task_of(next);
        if (before == after) continue;
        if (is_start(event)) {
          draft.start_after_start(before, after);
        } else if (is_start(next)) {
          draft.start_after_end(before, after);
        } else {
          draft.end_after_end(before, after);
        }
      }
    }
  }
  return TaskGraph(std::move(draft));
}

const TaskGraph& graph_on(std::size_t ranks) {
  static std::map<std::size_t, TaskGraph> graphs;
  const auto found = graphs.find(ranks);
  if (found != graphs.end()) return found->second;
  graphs.clear();  // one million-task graph at a time
  const std::size_t per_layer = chunk(2).size() - chunk(1).size();
  const std::size_t layers = std::max<std::size_t>(1, kTasks / ranks / per_layer);
  const TaskGraph one = chunk(static_cast<int>(layers));
  return graphs.emplace(ranks, on_ranks(one, ranks)).first->second;
}

std::size_t topological_pass(const TaskGraph& graph) {
  std::vector<std::uint32_t> pending(2 * graph.size(), 0);
  for (EventId event = 0; event < pending.size(); ++event) {
    for (const EventId next : graph.successors(event)) ++pending[next];
  }
  std::vector<EventId> ready;
  for (EventId event = 0; event < pending.size(); ++event) {
    if (pending[event] == 0) ready.push_back(event);
  }
  std::size_t visited = 0;
  while (!ready.empty()) {
    const EventId event = ready.back();
    ready.pop_back();
    ++visited;
    for (const EventId next : graph.successors(event)) {
      if (--pending[next] == 0) ready.push_back(next);
    }
  }
  return visited;
}

double seconds_of(auto&& action) {
  const auto before = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

void Simulate(benchmark::State& state) {
  const TaskGraph& graph = graph_on(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph).makespan);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
  double engine = 1e9;
  double floor = 1e9;
  for (int i = 0; i < 3; ++i) {
    engine = std::min(engine, seconds_of([&] { benchmark::DoNotOptimize(simulate(graph).makespan); }));
    floor = std::min(floor, seconds_of([&] { benchmark::DoNotOptimize(topological_pass(graph)); }));
  }
  state.counters["tasks"] = static_cast<double>(graph.size());
  state.counters["times_floor"] = engine / floor;
  state.counters["bytes_per_task"] = static_cast<double>(graph.memory_bytes()) / static_cast<double>(graph.size()) +
                                     static_cast<double>(simulate_bytes_per_task());
}

void TopologicalPass(benchmark::State& state) {
  const TaskGraph& graph = graph_on(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(topological_pass(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}

BENCHMARK(Simulate)->ArgName("ranks")->Arg(1)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(TopologicalPass)->ArgName("ranks")->Arg(1024)->Arg(64)->Arg(1)->Unit(benchmark::kMillisecond);

// The scenarios users start with: what one simulate costs in process.
void SimulateChunk(benchmark::State& state) {
  const TaskGraph graph = chunk(4);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph).makespan);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(SimulateChunk)->Unit(benchmark::kMicrosecond);

Setup decode() {
  return load_setup(std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml");
}

void SimulateDecode(benchmark::State& state) {
  const TaskGraph graph = build_program(decode()).graph;
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph).makespan);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(SimulateDecode)->Unit(benchmark::kMicrosecond);

// Operators, prices, expected waits, graph, timeline, metrics: of all layers, and of those that differ.
void PredictDecode(benchmark::State& state) {
  const Setup setup = decode();
  for (auto _ : state) benchmark::DoNotOptimize(run_scenario(setup).metrics.span);
}
BENCHMARK(PredictDecode)->Unit(benchmark::kMillisecond);

void PredictDecodeFolded(benchmark::State& state) {
  const Setup setup = folded(decode());
  for (auto _ : state) benchmark::DoNotOptimize(run_scenario(setup).metrics.span);
}
BENCHMARK(PredictDecodeFolded)->Unit(benchmark::kMicrosecond);

// All ranks of an expert-parallel group, joined where they meet: operators, prices and graph, then the engine.
void every_rank(benchmark::State& state, const Setup& setup) {
  double build = 1e9;
  double engine = 1e9;
  std::size_t tasks = 0;
  for (auto _ : state) {
    const auto before = std::chrono::steady_clock::now();
    const TaskGraph graph = build_program(setup).graph;
    build = std::min(build, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    engine = std::min(engine, seconds_of([&] { benchmark::DoNotOptimize(simulate(graph).makespan); }));
    tasks = graph.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tasks));
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["build_ms"] = 1e3 * build;
  state.counters["engine_ms"] = 1e3 * engine;
}

void EveryRankChunk(benchmark::State& state) {
  every_rank(state,
             load_setup(std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml"));
}
BENCHMARK(EveryRankChunk)->Unit(benchmark::kMillisecond);

// The whole model, balanced.
void EveryRankDecode(benchmark::State& state) {
  const std::string ep = "parallelism.ep=" + std::to_string(state.range(0));
  every_rank(state,
             load_setup(std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml",
                        {ep, "ranks=all"}));
}
BENCHMARK(EveryRankDecode)->ArgName("ranks")->RangeMultiplier(2)->Range(8, 256)->Unit(benchmark::kMillisecond);

// Every rank its own rows: nothing is priced once for all.
void EveryRankSkewedDecode(benchmark::State& state) {
  every_rank(state,
             load_setup(std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml",
                        {"parallelism.ep=256", "routing={distribution: power_law, alpha: 0.5}"}));
}
BENCHMARK(EveryRankSkewedDecode)->Unit(benchmark::kMillisecond);

// A whole step of DeepSeek-V3's pre-training, with everything that simulate does but write.
void training_step(benchmark::State& state, const std::vector<std::string>& assignments) {
  const Setup setup = load_setup(
      std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml", assignments);
  std::size_t tasks = 0;
  for (auto _ : state) {
    const Run run = run_scenario(setup);
    benchmark::DoNotOptimize(run.metrics.span);
    tasks = run.program.graph.size();
    state.counters["engine_ms"] = run.simulate_ms;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tasks));
  state.counters["tasks"] = static_cast<double>(tasks);
}

void TrainingStep(benchmark::State& state) { training_step(state, {}); }
BENCHMARK(TrainingStep)->Unit(benchmark::kMillisecond);

// Four MoE layers on each stage.
void TrainingStepOfRanks(benchmark::State& state) {
  training_step(state,
                {"parallelism.pp=" + std::to_string(state.range(0)), "layers=" + std::to_string(4 * state.range(0)),
                 "workload.global_batch_size=" + std::to_string(128 * state.range(1))});
}
BENCHMARK(TrainingStepOfRanks)
    ->ArgNames({"pp", "micro_batches"})
    ->Args({4, 120})
    ->Args({8, 120})
    ->Args({16, 120})
    ->Args({32, 120})
    ->Args({16, 60})
    ->Args({16, 240})
    ->Unit(benchmark::kMillisecond);

void TrainingStepByPhases(benchmark::State& state) { training_step(state, {"level=phase"}); }
BENCHMARK(TrainingStepByPhases)->Unit(benchmark::kMillisecond);

// The engine alone on its graph, and the floor.
void TrainingStepEngine(benchmark::State& state) {
  const TaskGraph graph = run_scenario(load_setup(std::string(MOELINE_SOURCE_DIR) +
                                                  "/experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml"))
                              .program.graph;
  double floor = 1e9;
  double engine = 1e9;
  for (auto _ : state) {
    engine = std::min(engine, seconds_of([&] { benchmark::DoNotOptimize(simulate(graph).makespan); }));
    floor = std::min(floor, seconds_of([&] { benchmark::DoNotOptimize(topological_pass(graph)); }));
  }
  state.counters["tasks"] = static_cast<double>(graph.size());
  state.counters["engine_ms"] = 1e3 * engine;
  state.counters["times_floor"] = engine / floor;
}
BENCHMARK(TrainingStepEngine)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
