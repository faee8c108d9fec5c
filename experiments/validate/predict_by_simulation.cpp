// Facts about timelines: a scenario is simulated, and one number of it is the prediction.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/kernel_times.hpp"
#include "experiments/run/metrics.hpp"
#include "experiments/run/null_models.hpp"
#include "experiments/validate/predictor.hpp"
#include "timeline/comparison.hpp"

namespace moeline {
namespace {

// Of phases: the span of one in one layer, its transfer, or the time in which any of some layers runs.
constexpr int kNullSamples = 11;  // a null model's median needs no more
constexpr const char* kPhaseUs = "phase_us";
constexpr const char* kTransferUs = "transfer_us";
constexpr const char* kBarrierUs = "phase_barrier_us";
constexpr const char* kMemoryGib = "memory_gib";  // of a run's own metrics, which no null model changes
constexpr const char* kWaitUs = "phase_wait_us";
constexpr const char* kLayersUs = "layers_us";
// Of kernels.
constexpr const char* kSlowdown = "slowdown";
constexpr const char* kKernelsUs = "kernels_us";

bool is_of_phase(const std::string& metric) {
  return metric == kPhaseUs || metric == kTransferUs || metric == kBarrierUs || metric == kWaitUs;
}
const NamedPart* part_of_step(const std::string& metric) {
  const auto* found = std::find_if(std::begin(kStepParts), std::end(kStepParts),
                                   [&](const NamedPart& part) { return metric == part.key; });
  return found == std::end(kStepParts) ? nullptr : found;
}
bool is_of_kernels(const std::string& metric) { return metric == kSlowdown || metric == kKernelsUs; }

std::string read_metric(const FactSpec& spec) {
  std::vector<std::string> keys = {"scenario", "set", "metric"};
  spec.expect({"scenario", "set", "metric", "phase", "layer", "layers", "kernels", "rank"});
  std::string metric = spec.at("metric").choice("metric", metrics_of_facts());
  if (is_of_phase(metric)) keys.insert(keys.end(), {"phase", "layer"});
  if (metric == kLayersUs) keys.emplace_back("layers");
  if (is_of_kernels(metric)) keys.emplace_back("kernels");
  if (part_of_step(metric) != nullptr) keys.emplace_back("rank");
  spec.expect(keys);
  return metric;
}

Time part_of(const PhaseTimes& phase, const std::string& metric) {
  if (metric == kTransferUs) return phase.transfer;
  if (metric == kBarrierUs) return phase.barrier;
  return metric == kWaitUs ? phase.wait : phase.span();
}

double phase_us(const Run& run, const FactSpec& spec, const std::string& metric) {
  const std::string name = spec.text("phase");
  const auto layer = static_cast<std::uint32_t>(spec.at("layer").integer("layer", 0, 1 << 20));
  Time sum{};
  bool found = false;
  for (const PhaseTimes& phase : run.phases) {
    if (phase.phase != name || phase.layer != layer) continue;
    sum += part_of(phase, metric);
    found = true;
  }
  if (!found) throw spec.at("phase").error("phase", fmt::format("{} is none of layer {}", name, layer));
  return to_us(sum);
}

// Time in which any phase of these layers runs, as compare counts it.
double layers_us(const Run& run, const FactSpec& spec) {
  const std::vector<int> wanted = spec.at("layers").integers("layers", 0, 1 << 20);
  return used(spec, "layers", [&] {
    return to_us(score(run.phases, run.phases, common_layers(run.phases, run.phases, wanted)).a_span);
  });
}

KernelSelection read_kernels(const FactSpec& spec) {
  spec.expect({"name", "class", "phase", "layers", "beside"});
  KernelSelection kernels;
  if (spec.has("name")) kernels.name = spec.text("name");
  if (spec.has("class")) kernels.task_class = spec.text("class");
  if (spec.has("phase")) kernels.phase = spec.text("phase");
  if (spec.has("layers")) kernels.layers = spec.at("layers").integers("layers", 0, 1 << 20);
  if (spec.has("beside")) kernels.beside = spec.text("beside");
  return kernels;
}

// A part of a whole step on one rank of the pipeline; without `rank` it is the mean over all of them.
double rank_part_ms(const Run& run, const FactSpec& spec, const NamedPart& part) {
  if (run.step() == nullptr) throw spec.at("rank").error("rank", "does not apply to this scenario");
  const int last = static_cast<int>(run.step()->ranks.size()) - 1;
  const auto rank = static_cast<std::size_t>(spec.at("rank").integer("rank", 0, last));
  return to_us(run.step()->ranks[rank].parts.*part.time) / 1e3;
}

double value_of(const Run& run, const FactSpec& spec, const std::string& metric) {
  if (spec.has("rank")) return rank_part_ms(run, spec, *part_of_step(metric));
  if (const Metric* of_run = metric_named(metric)) {
    if (!of_run->applies(run)) throw spec.at("metric").error("metric", "does not apply to this scenario");
    return of_run->value(run);
  }
  if (metric == kLayersUs) return layers_us(run, spec);
  return phase_us(run, spec, metric);
}

std::vector<double> values_of(const std::vector<Run>& runs, const FactSpec& spec, const std::string& metric) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(value_of(run, spec, metric));
  return values;
}

// Of all but the first, no tasks: they would fill the memory.
std::vector<Run> all_samples(const Setup& setup) {
  std::vector<std::optional<Run>> samples(static_cast<std::size_t>(setup.scenario.samples));
  for_each_sample(setup, [&](std::size_t i, Run run) {
    if (i > 0) {
      run.program.graph = TaskGraph(TaskGraphDraft{});
      run.timeline = {};
    }
    samples[i].emplace(std::move(run));
  });
  std::vector<Run> runs;
  for (std::optional<Run>& sample : samples) runs.push_back(std::move(*sample));
  return runs;
}

// With `schedule: auto`, of the best.
Setup setup_of(std::vector<Candidate> candidates) {
  return candidates.size() == 1 ? *std::move(candidates.front().setup) : best_run(candidates).setup;
}

// Those of null_model that say something: slots of a pipeline neither communicate nor overlap.
std::vector<const char*> nulls_of(const Run& run, const std::string& metric) {
  if (run.has_given_slots()) return {};
  if (metric == kBarrierUs || metric == kWaitUs || metric == kMemoryGib) return {};
  if (metric == kTransferUs) return {kEverythingSerial};
  return {kCommunicationFree, kEverythingSerial};
}

struct KernelValues {
  double disturbed = 0, undisturbed = 0;
};

KernelValues kernel_values(const Run& run, const FactSpec& spec, const std::string& metric) {
  const std::vector<TaskId> tasks = select(run, read_kernels(spec.map("kernels")));
  if (tasks.empty()) throw spec.at("kernels").error("kernels", "selects none of this scenario's");
  if (metric == kSlowdown) return {median_slowdown(run, tasks), 1};
  return {span_us(run, tasks), longest_stream_us(run, tasks)};
}

}  // namespace

std::vector<std::string> metrics_of_facts() {
  std::vector<std::string> names;
  for (const Metric* metric : run_metrics()) names.emplace_back(metric->name);
  names.insert(names.end(), {kPhaseUs, kTransferUs, kBarrierUs, kWaitUs, kLayersUs, kSlowdown, kKernelsUs});
  return names;
}

const std::vector<Run>& Predictor::runs(const FactSpec& spec, const std::string& null) {
  const std::filesystem::path path = beside(spec.at("scenario").file(), spec.text("scenario"));
  const std::vector<std::string> assignments = spec.settings();
  const std::string key = fmt::format("{}\n{}\n{}", path.string(), fmt::join(assignments, "\n"), null);
  const auto found = runs_.find(key);
  if (found != runs_.end()) return found->second;
  return used(spec, "scenario", [&]() -> const std::vector<Run>& {
    Setup setup = null_model(null, setup_of(load_candidates(path, assignments)));
    if (!null.empty()) setup.scenario.samples = std::min(setup.scenario.samples, kNullSamples);
    return runs_.emplace(key, all_samples(setup)).first->second;
  });
}

Prediction Predictor::simulate(const Fact& fact) {
  const FactSpec& spec = fact.prediction;
  const std::string metric = read_metric(spec);
  const std::vector<Run>& predicted = runs(spec, "");
  Prediction prediction;
  if (is_of_kernels(metric)) {
    const KernelValues values = kernel_values(predicted.front(), spec, metric);
    prediction.value = values.disturbed;
    prediction.nulls[kUndisturbed] = values.undisturbed;
  } else {
    const Band band = band_of(values_of(predicted, spec, metric));
    prediction.value = band.median;
    if (predicted.size() > 1) prediction.band = band;
    for (const char* null : nulls_of(predicted.front(), metric)) {
      prediction.nulls[null] = band_of(values_of(runs(spec, null), spec, metric)).median;
    }
  }
  prediction.constants = predicted.front().program.constants;
  const std::vector<ProvenanceUse>& uses = predicted.front().program.provenance;
  if (uses.empty()) return prediction;  // given slots need no machine
  const Scenario& scenario = predicted.front().setup.scenario;
  const HardwareProfile machine = load_profile(scenario.hardware, scenario.hardware_overrides, scenario.file);
  for (const ProvenanceUse& use : uses) rests_on(use.kernel_set, machine, prediction);
  return prediction;
}

}  // namespace moeline
