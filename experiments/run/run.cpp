#include "experiments/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "architecture/parameters.hpp"
#include "engine/simulate.hpp"
#include "experiments/run/expected_waits.hpp"
#include "experiments/run/phase_level.hpp"
#include "experiments/run/run_warnings.hpp"
#include "schedules/fold.hpp"
#include "timeline/compute_waits.hpp"

namespace moeline {
namespace {

// Starts of the phase mlp of the first micro-batch, by MoE layer of the model in order of execution.
std::vector<Time> layer_starts(const Run& run) {
  const int first = run.setup.first_moe_layer();
  std::vector<Time> starts;
  for (const PhaseTimes& phase : run.phases) {
    const int layer = static_cast<int>(phase.layer);
    const bool moe = layer >= first && layer < first + run.setup.simulated_layers();
    if (moe && phase.phase == "mlp" && phase.micro_batch == 0) starts.push_back(phase.start);
  }
  return starts;
}

// The second half of the MoE layers, in whole periods of layers that differ (windows that alternate): by then the
// layers repeat. Where each has loads of its own, all but the last.
Steady steady_state(const Run& run) {
  constexpr std::size_t kFewest = 4;
  constexpr int kEnough = 8;
  const std::vector<Time> starts = layer_starts(run);
  if (starts.size() < kFewest) {  // too few to repeat: more of them, alone, say what one takes
    Setup longer = run.setup;
    longer.scenario.whole_model = false;
    longer.scenario.layers = kEnough;
    return run_scenario(longer).steady;
  }
  const std::size_t last = starts.size() - 1;
  const std::size_t periods = run.setup.experts_differ() ? last : (last / 2 + 1) / 2 * 2;
  return {measure(run.program.graph, run.timeline, starts[last - periods], starts[last]), static_cast<double>(periods)};
}

// The last two periods took equally long: so would all that were left out.
bool repeats(const Run& run) {
  constexpr double kEqual = 1e-4;
  const std::vector<Time> starts = layer_starts(run);
  const auto period = static_cast<std::size_t>(run.setup.fold.period);
  const std::size_t last = starts.size() - 1;
  const Time now = starts[last] - starts[last - period];
  const Time before = starts[last - period] - starts[last - 2 * period];
  return std::abs(ratio(now, before) - 1) < kEqual;
}

// The layers, whatever else there is to know about them.
Run run_once(const Setup& setup, bool record_changes);

// Time of one step with `tokens` new tokens of a prompt behind `cached` ones.
double chunk_ms(const Setup& setup, int tokens, int cached) {
  Setup chunk = setup;
  Workload& w = chunk.scenario.workload;
  w.tokens = std::max(2, tokens);  // one for each micro-batch
  w.cached_len = cached;
  w.prompt_len = cached + w.tokens;
  return to_us(run_once(chunk, false).metrics.span) / 1e3;
}

// A prompt that takes several steps is done when its last chunk is. Later chunks see more keys, and the time of a chunk
// is nearly linear in them, so that a few whole ones say what all take; the last has what is left.
double time_to_first_token_ms(const Run& run) {
  constexpr int kMostSamples = 8;
  const Workload& w = run.setup.scenario.workload;
  const int remaining = w.prompt_len - w.cached_len;
  if (remaining <= w.tokens) return to_us(run.metrics.span) / 1e3;
  const int whole = remaining / w.tokens;
  const int samples = std::min(whole, kMostSamples);
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    const auto chunk = static_cast<std::int64_t>(i) * (whole - 1) / std::max(1, samples - 1);
    sum += chunk_ms(run.setup, w.tokens, w.cached_len + static_cast<int>(chunk) * w.tokens);
  }
  const int rest = remaining % w.tokens;
  return sum / samples * whole + (rest > 0 ? chunk_ms(run.setup, rest, w.prompt_len - rest) : 0);
}

double training_layer_us(const Run& run) {
  const Scenario& s = run.setup.scenario;
  const bool equal_layers = s.routing.distribution == "balanced" && !run.setup.every_rank;
  if (!equal_layers || s.layers < 3) return to_us(run.metrics.span) / s.layers;
  const auto period = [&](const std::string& name) {
    Time last{};
    Time before{};
    for (const PhaseTimes& phase : run.phases) {
      if (phase.phase != name) continue;
      before = last;
      last = phase.start;
    }
    return to_us(last - before);
  };
  const bool one_pass = s.schedule != "sequential";  // forward and backward layers alternate
  return one_pass ? period("attn(F)") : period("attn(F)") + period("attn(B)");
}

void note_waits(Run& run) {
  std::map<PhaseKey, Time> waits;
  for (const ComputeWait& wait : compute_waits(run.program.graph, run.timeline, 0)) {
    const Phase& phase = run.program.graph.phases()[wait.phase];
    waits[{phase.layer, phase.name, phase.micro_batch}] += wait.wait;
  }
  for (PhaseTimes& phase : run.phases) {
    const auto found = waits.find(key_of(phase));
    if (found != waits.end()) phase.wait = found->second;
  }
}

}  // namespace

double Run::layer_us() const {
  return is_inference() ? to_us(steady.metrics.span) / steady.layers : training_layer_us(*this);
}

double Run::mfu() const {
  const double peak = setup.machine.facts.bf16_tflops * 1e6;  // FLOP per us
  if (step && is_whole_step()) return flops_per_token(true) * tokens_per_s() / 1e6 / peak;
  return program.model_flops / (to_us(metrics.span) * peak);
}

double Run::mfu_non_causal() const { return mfu() * flops_per_token(false) / flops_per_token(true); }

double Run::flops_per_token(bool causal) const {
  const double seq_len = setup.scenario.workload.seq_len;
  return causal ? train_flops_per_token(setup.model, seq_len) : train_flops_per_token_non_causal(setup.model, seq_len);
}

double Run::gpu_hours_per_trillion_tokens() const { return 1e12 / tokens_per_s() / 3600; }

double Run::bubble_ms() const {
  if (step) return to_us(step->mean.bubble) / 1e3;
  return to_us(metrics.span - metrics.compute_busy) / 1e3;
}

double Run::bubble_fraction() const {
  return step ? ratio(step->mean.bubble, metrics.span) : metrics.bubble_fraction();
}

double Run::tokens_per_s() const {
  const Workload& w = setup.scenario.workload;
  if (step) {
    const double tokens = 1.0 * w.global_batch_size * w.seq_len;
    return tokens / static_cast<double>(setup.scenario.parallelism.world()) / (to_us(metrics.span) / 1e6);
  }
  if (is_chunked()) return (w.prompt_len - w.cached_len) / (ttft_ms / 1e3);
  const double tokens = is_decode() ? w.batch_size * tokens_per_request(w) : w.tokens;
  return tokens / (to_us(metrics.span) / 1e6);
}

double Run::tpot_ms() const { return to_us(metrics.span) / 1e3 / tokens_per_request(setup.scenario.workload); }

bool Run::is_chunked() const {
  const Workload& w = setup.scenario.workload;
  return w.phase == "prefill" && w.prompt_len - w.cached_len > w.tokens;
}

double Run::memory_bytes() const {
  if (step) return step->fullest().peak.total();
  return memory ? memory->total() : 0;
}

bool Run::fits_memory() const { return gib(memory_bytes()) <= setup.machine.facts.memory_gib; }

std::string Run::memory_breakdown() const { return step ? breakdown(step->fullest().peak) : breakdown(*memory); }

std::string breakdown(const Memory& m) {
  return fmt::format("weights {:.1f}, KV cache {:.1f}, activations {:.1f}, communication buffers {:.1f}",
                     gib(m.weights), gib(m.kv_cache), gib(m.activations), gib(m.communication));
}

double Run::solo_us() const {
  double sum = 0;
  for (const ProvenanceUse& use : program.provenance) sum += use.solo_us;
  return sum;
}

double Run::barrier_us() const {
  for (const ClassTimes& times : metrics.classes) {
    if (times.name == class_name(Family::notify)) return to_us(times.busy);
  }
  return 0;
}

double Run::compute_waits_us() const {
  double sum = 0;
  for (const PhaseTimes& phase : phases) {
    sum += to_us(phase.wait) * setup.fold.repeats(static_cast<int>(phase.layer));
  }
  return sum;
}

double Run::imbalance() const {
  const std::size_t layers = std::min(setup.routed.size(), static_cast<std::size_t>(setup.scenario.layers));
  double sum = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) sum += setup.routed[layer].imbalance();
  return sum / static_cast<double>(layers);
}

double Run::lumped_share() const { return program.lumped_us / std::max(solo_us(), 1.0); }

double Run::extrapolated_share() const {
  double outside = 0;
  for (const ProvenanceUse& use : program.provenance) {
    if (use.provenance == Provenance::extrapolated) outside += use.solo_us;
  }
  return outside / std::max(solo_us(), 1.0);
}

bool Run::all_measured() const {
  return std::all_of(program.provenance.begin(), program.provenance.end(),
                     [](const ProvenanceUse& use) { return is_covered(use.provenance); });
}

namespace {

Run simulated(const Setup& setup, Program program, bool record_changes) {
  const auto before = std::chrono::steady_clock::now();
  Timeline timeline = simulate(program.graph, {.record_changes = record_changes});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
  return {.setup = setup, .program = std::move(program), .timeline = std::move(timeline), .simulate_ms = took.count()};
}

// A rank's bubble is the whole step's: also before its first slot and after its last.
Metrics measure_step(const Run& run) {
  return measure(run.program.graph, run.timeline, Time::zero(), run.timeline.makespan);
}

Run run_training_step(const Setup& setup, bool record_changes) {
  const Setup waiting = with_expected_waits(setup);
  SlotKinds kinds(waiting);
  const bool by_slot = setup.scenario.level == "phase";
  Program program = by_slot ? training_step(waiting, [&](const Slot& slot) { return kinds.course_of(slot); })
                            : training_step(waiting);
  Run run = simulated(setup, std::move(program), record_changes);
  run.step = report_step(setup, run.program, run.timeline);
  run.phases = std::move(run.step->slots);
  run.metrics = by_slot ? kinds.metrics(run.timeline.makespan) : measure_step(run);
  if (by_slot) kinds.add_operators(run.program);
  return run;
}

Run run_given_slots(const Setup& setup, bool record_changes) {
  Run run = simulated(setup, build_program(setup), record_changes);
  run.phases = phase_times(run.program.graph, run.timeline);
  run.metrics = measure_step(run);
  return run;
}

Run run_once(const Setup& setup, bool record_changes) {
  Run run = simulated(setup, program_with_waits(setup), record_changes);
  run.phases = phase_times(run.program.graph, run.timeline);
  std::erase_if(run.phases, [](const PhaseTimes& phase) { return phase.rank > 0; });
  run.metrics = measure(run.program.graph, run.timeline);
  run.steady = run.is_inference() ? steady_state(run) : Steady{run.metrics, static_cast<double>(setup.scenario.layers)};
  if (setup.fold.left_out == 0) return run;
  if (!repeats(run)) return run_once(unfolded(setup), record_changes);
  extend(run.metrics, run.steady.metrics, setup.fold.left_out / run.steady.layers);
  return run;
}

Run run_layers(const Setup& setup, bool record_changes) {
  Run run = run_once(setup, record_changes);
  note_waits(run);
  if (run.is_inference()) run.memory = memory_of(setup);
  if (run.is_whole_step() && !run.is_decode()) run.ttft_ms = time_to_first_token_ms(run);
  return run;
}

}  // namespace

Memory memory_of(const Setup& setup) {
  InferenceWork work = setup.inference_work(0, 1);
  for (int rank = 1; setup.requests_differ() && rank < setup.simulated_ranks(); ++rank) {
    InferenceWork other = setup.inference_work(0, 1, 0, rank);
    if (other.requests * other.kv_len > work.requests * work.kv_len) work = std::move(other);
  }
  GpuWork d;
  for (const RoutedLayer& layer : setup.routed) d.busiest_rank = std::max(d.busiest_rank, layer.imbalance());
  d.ep = work.ep;
  d.redundant_experts = work.redundant_experts;
  d.micro_batches = setup.scenario.schedule == "sequential" ? 1 : 2;
  d.tokens = work.tokens();
  d.requests = work.requests;
  d.logit_rows = work.decode ? d.tokens : std::ceil(d.requests);
  d.kv_len = work.decode ? work.kv_len : std::max<double>(work.kv_len, setup.scenario.workload.prompt_len);
  d.decode = work.decode;
  d.mtp = setup.drafted_tokens() > 0;
  d.low_latency = work.low_latency;
  d.fp8_dispatch = work.fp8_dispatch;
  d.comm_sms = setup.scenario.comm.num_sms;
  return memory_per_gpu(setup.model, d);
}

Run run_scenario(const Setup& setup, bool record_changes) {
  Run run = on_behalf_of(setup.scenario.file, [&] {
    return setup.scenario.slot_costs          ? run_given_slots(setup, record_changes)
           : is_training_step(setup.scenario) ? run_training_step(setup, record_changes)
                                              : run_layers(setup, record_changes);
  });
  run.warnings = warnings_of(run);
  return run;
}

}  // namespace moeline
