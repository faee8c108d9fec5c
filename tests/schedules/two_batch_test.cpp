// Two micro-batches: the orders of the published schedules, and what they gain and cost.
#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/two_batch") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kLayers = "layers=8";  // MoE layers alone

// Phases of a stream in order of their start, layers [first, last] only, as "attn 1".
std::vector<std::string> order(const Run& run, std::uint32_t stream, std::uint32_t layer) {
  std::vector<std::string> names;
  for (const PhaseTimes& p : run.phases) {
    if (p.stream == stream && p.layer == layer) names.push_back(p.phase + " " + std::to_string(p.micro_batch));
  }
  return names;
}

}  // namespace

TEST_CASE("of a plan whose micro-batches are a layer apart, a layer takes what more layers add to the step") {
  const TemporaryFolder folder;
  const std::string plan =
      "overlap=" + folder.write("plan.yaml",
                                "compute: [attn 1, previous mlp 0, previous shared 0, mlp 1, shared 1, attn 0]\n"
                                "communication: [previous combine 0, combine 1, dispatch 0, next dispatch 1]\n");
  const auto run = [&](const char* layers) { return run_prefill({layers, plan, "jitter=none"}); };
  const auto step_us = [&](const char* layers) { return to_us(run(layers).metrics.span); };
  const double one_us = (step_us("layers=40") - step_us("layers=20")) / 20;
  for (const char* layers : {"layers=5", "layers=8", "layers=20"}) {
    CHECK(layer_us(run(layers)) == doctest::Approx(one_us).epsilon(1e-6));
  }
}

TEST_CASE("prefill runs ATTN1 SHARED0' ATTN0 MLP1 MLP0 SHARED1 beside COMBINE0' DISPATCH1 DISPATCH0 COMBINE1") {
  const Run run = run_prefill({kLayers});
  // by layer, the phases marked ' fall into the turn of the next one
  CHECK(order(run, 7, 4) == std::vector<std::string>{"attn 1", "attn 0", "mlp 1", "mlp 0", "shared 1", "shared 0"});
  CHECK(order(run, 27, 4) == std::vector<std::string>{"dispatch 1", "dispatch 0", "combine 1", "combine 0"});
  CHECK(phase(run, "shared", 0, 3).start > phase(run, "attn", 1, 4).start);
  CHECK(phase(run, "shared", 0, 3).start < phase(run, "attn", 0, 4).start);
}

TEST_CASE("decode issues and receives on the compute stream, and only the wire runs beside it") {
  const Run run = run_decode({kLayers});
  CHECK(order(run, 7, 4) == std::vector<std::string>{"attn-0 0", "attn-1 0", "dispatch 0", "shared 0", "attn-0 1",
                                                     "mlp 0", "combine 0", "attn-1 1", "dispatch 1", "shared 1",
                                                     "mlp 1", "combine 1"});
  const TaskGraph& graph = run.program.graph;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const bool wire = graph.task_name(id).find("on the wire") != std::string::npos;
    CHECK((graph.streams()[graph.label(id).stream].id == 27) == wire);
    if (wire) CHECK(graph.task(id).hold == Hold::nothing);
  }
}

TEST_CASE("a micro-batch's phases follow the data: attention, dispatch, experts, combine, next attention") {
  for (const Run& run : {run_prefill({kLayers}), run_decode({kLayers})}) {
    const bool decode = decodes(run);
    for (const int micro_batch : {0, 1}) {
      for (int layer = 0; layer + 1 < 8; ++layer) {
        const auto at = [&](const char* name, int of_layer) { return phase(run, name, micro_batch, of_layer); };
        CHECK(at(decode ? "attn-1" : "attn", layer).end <= at("dispatch", layer).start);
        CHECK(at("dispatch", layer).end <= at("mlp", layer).start);
        CHECK(at("mlp", layer).end <= at("combine", layer).start);
        CHECK(at("combine", layer).end <= at(decode ? "attn-0" : "attn", layer + 1).start);
        CHECK(at("shared", layer).end <= at(decode ? "attn-0" : "attn", layer + 1).start);
      }
    }
  }
}

TEST_CASE("layers repeat: a layer's period is the same in a run of 8 and of 40 layers") {
  CHECK(layer_us(run_prefill({"layers=40"})) == doctest::Approx(layer_us(run_prefill({kLayers}))).epsilon(0.001));
  const char* const kExact = "routing.distribution=exact";  // what ranks wait for each other by chance is drawn
  CHECK(layer_us(run_decode({kExact, "layers=40"})) ==
        doctest::Approx(layer_us(run_decode({kExact, kLayers}))).epsilon(0.001));
}

TEST_CASE("kernels follow each other faster in a CUDA graph than in a stream, and not after times that hold a gap") {
  const auto gaps_us = [](const char* kernels, const char* launch) {
    const Run run = run_decode({"layers=4", std::string("kernels=") + kernels, std::string("launch=") + launch});
    std::map<std::string, double> gaps;  // by kernel
    for (TaskId id = 0; id < run.program.graph.size(); ++id) {
      if (run.program.graph.task_class(id).role == Role::compute)
        gaps[run.program.graph.task_name(id)] = to_us(run.program.graph.task(id).delay);
    }
    return gaps;
  };
  const auto graph = gaps_us("deepseek-2025-02", "graph"), stream = gaps_us("deepseek-2025-02", "stream");
  CHECK(graph.at("SwiGLU") == doctest::Approx(0.96));
  CHECK(stream.at("SwiGLU") > 1.9);
  CHECK(graph.at("MLA decode core") == doctest::Approx(0.96));
  CHECK(gaps_us("open-2025-late", "graph").at("MLA decode core") == 0);  // timed from the host, around many launches
  CHECK(gaps_us("open-2025-late", "graph").at("SwiGLU") == doctest::Approx(0.96));
}

TEST_CASE("a whole step is its layers, and embedding, dense layers and LM head once") {
  const Run run = run_decode();
  CHECK(phase(run, "embedding", 0, 0).start == Time::zero() + from_us(run.setup.kernels()[Constant::graph_gap]));
  CHECK(std::count_if(run.phases.begin(), run.phases.end(), [](const PhaseTimes& p) { return p.phase == "mlp"; }) ==
        2 * 61);
  CHECK(std::count_if(run.phases.begin(), run.phases.end(),
                      [](const PhaseTimes& p) { return p.phase == "dispatch"; }) == 2 * 58);
  CHECK(run.phases.back().phase == "lm_head");
  const double layers_us = 58 * layer_us(run);
  CHECK(to_us(run.metrics.span) > layers_us);
  CHECK(to_us(run.metrics.span) < 1.08 * layers_us);
}

TEST_CASE("free communication brings two micro-batches to the time of their compute kernels") {
  for (Setup setup : {load_setup(prefill_scenario(), {kLayers}), load_setup(decode_scenario(), {kLayers})}) {
    setup.free_communication = true;
    const Run run = run_scenario(setup);
    const Metrics& m = run.steady().metrics;
    CHECK(m.exposed_comm == Time::zero());
    const double gaps_us =
        static_cast<double>(run.program.graph.size()) * run.setup.kernels()[Constant::kernel_gap] / 8;
    CHECK(to_us(m.span) / run.steady().layers < to_us(m.compute_busy) / run.steady().layers + gaps_us);
  }
}

TEST_CASE("two micro-batches lose at small batch and win at large") {
  const auto gain = [](int batch_size) {
    const std::string batch = "workload.batch_size=" + std::to_string(batch_size);
    return layer_us(run_decode({batch, kLayers, "schedule=sequential"})) / layer_us(run_decode({batch, kLayers}));
  };
  CHECK(gain(4) < 1);
  CHECK(gain(128) > 1.1);
  CHECK(gain(256) > gain(32));
}

TEST_CASE("decode on EP128 is bound by compute where sequential decode waits for the network") {
  const auto exposed = [](const Run& run) {
    return static_cast<double>(run.steady().metrics.exposed_comm.count()) /
           static_cast<double>(run.steady().metrics.span.count());
  };
  CHECK(exposed(run_decode({kLayers})) < 0.25);  // what is left are the kernels that issue and receive
  CHECK(exposed(run_decode({kLayers, "schedule=sequential"})) > 0.4);
}

TEST_CASE("prefill has an optimal number of communication SMs: fewer slow transfers, more slow compute") {
  const auto one_layer_us = [](int sms) {
    return layer_us(run_prefill({kLayers, "comm.num_sms=" + std::to_string(sms)}));
  };
  const double usual = one_layer_us(24);
  CHECK(one_layer_us(6) > 1.1 * usual);
  CHECK(one_layer_us(60) > 1.05 * usual);
}

TEST_CASE("a low-latency dispatch in another type than the experts' leaves them the cast of what they receive") {
  const char* cast = "cast received rows to the experts' type";
  CHECK(solo_us(run_decode({"layers=4", "comm.dispatch_dtype=bf16"}), "mlp", cast) > 0);
  CHECK(solo_us(run_decode({"layers=4", "model=qwen3-235b-a22b", "comm.dispatch_dtype=fp8"}), "mlp", cast) > 0);
  for (const Run& alike : {run_decode({"layers=4"}), run_decode({"layers=4", "model=qwen3-235b-a22b"})}) {
    const TaskGraph& graph = alike.program.graph;
    for (TaskId id = 0; id < graph.size(); ++id) CHECK(graph.task_name(id) != cast);
  }
}

TEST_CASE("with one drafted token a step takes less than twice as long, and a token comes sooner") {
  const Run plain = run_decode();
  const Run drafted = run_decode({"workload.query_len=2", "workload.kv_len=4097"});
  CHECK(drafted.metrics.span > plain.metrics.span);
  CHECK(drafted.metrics.span < 2 * plain.metrics.span);
  CHECK(tpot_ms(drafted) == doctest::Approx(to_us(drafted.metrics.span) / 1e3 / 1.85));
  CHECK(phase(drafted, "mtp", 0, 61).start > phase(drafted, "lm_head", 0, 60).start);
  CHECK(tokens_per_s(run_decode({"workload.query_len=2", "workload.mtp_acceptance=0"})) < tokens_per_s(plain));
}

TEST_CASE("unequal KV lengths cost nothing on average but the wait for the rank that has the most") {
  const std::string sequential = "schedule=sequential";  // where every wait shows
  const std::string alike = "speed_spread=0";
  const Run equal = run_decode({kLayers, sequential, alike});
  const Run unequal = run_decode({kLayers, sequential, alike, "workload.kv_len_spread=2000"});
  CHECK(layer_us(unequal) > layer_us(equal));
  CHECK(layer_us(unequal) < 1.25 * layer_us(equal));
}

TEST_CASE("a cached prefix costs keys, not queries") {
  const Run fresh = run_prefill({kLayers});
  const Run cached = run_prefill({kLayers, "workload.prompt_len=8192", "workload.cached_len=4096"});
  CHECK(layer_us(cached) > layer_us(fresh));
  CHECK(solo_us(cached, "attn", "W_UQ") == solo_us(fresh, "attn", "W_UQ"));
  CHECK(solo_us(cached, "attn", "W_UKV") == doctest::Approx(2 * solo_us(fresh, "attn", "W_UKV")).epsilon(0.05));
  CHECK(solo_us(cached, "attn", "FlashAttention forward") ==
        doctest::Approx(3 * solo_us(fresh, "attn", "FlashAttention forward")).epsilon(0.05));
}

TEST_CASE("a prompt longer than a step's tokens is prefilled in chunks, and its first token waits for them all") {
  const Run whole = run_prefill({"workload.prompt_len=16384"});
  const Run chunked = run_prefill({"workload.prompt_len=16384", "workload.tokens=4096"});
  CHECK(whole.inference()->ttft_ms == doctest::Approx(to_us(whole.metrics.span) / 1e3));
  CHECK(chunked.inference()->ttft_ms > 4 * to_us(chunked.metrics.span) / 1e3);  // later chunks see more keys
  CHECK(chunked.inference()->ttft_ms > whole.inference()->ttft_ms);
}

TEST_CASE("eager launches bind where kernels are short") {
  const auto one_layer_us = [](const char* launch) {
    return layer_us(run_decode({kLayers, "workload.batch_size=4", launch}));
  };
  CHECK(one_layer_us("launch=stream") > 1.5 * one_layer_us("launch=graph"));
  CHECK(layer_us(run_prefill({kLayers, "launch=stream"})) < 1.02 * layer_us(run_prefill({kLayers, "launch=graph"})));
}

TEST_CASE("EP144 with 32 redundant experts: 2 routed experts per GPU") {
  const Setup setup =
      load_setup(decode_scenario(), {"parallelism={ep: 144, dp: 144}", "routing={redundant_experts: 32}"});
  CHECK(setup.inference_work({0, 1}).local_experts() == 2);
  CHECK(setup.inference_work({0, 1}).load.valid == doctest::Approx(1024));  // 128 x 144 x 8 / 288 for each of 2
}

TEST_CASE("another order of the streams is a file away, and one that cannot run is refused by name") {
  const TemporaryFolder folder;
  const std::string late = folder.write("late.yaml",
                                        "compute: [attn 1, previous shared 0, attn 0, mlp 1, shared 1, mlp 0]\n"
                                        "communication: [previous combine 0, dispatch 1, dispatch 0, combine 1]\n");
  const Run reordered = run_prefill({kLayers, "overlap=" + late});
  CHECK(phase(reordered, "shared", 1, 4).start < phase(reordered, "mlp", 0, 4).start);
  const std::string stuck = folder.write("stuck.yaml",
                                         "compute: [mlp 1, attn 1, previous shared 0, attn 0, mlp 0, shared 1]\n"
                                         "communication: [previous combine 0, dispatch 1, dispatch 0, combine 1]\n");
  CHECK_THROWS_WITH_AS((void)run_prefill({kLayers, "overlap=" + stuck}), doctest::Contains("this order cannot run"),
                       SpecError);
}

}  // TEST_SUITE("schedules/two_batch")
