#include "experiments/explain/measured_modules.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "experiments/run/shapes.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace module_names;

// "attn-1" and "attn(F)" -> "attn"
std::string base_of(const std::string& phase) { return phase.substr(0, phase.find_first_of("(-")); }

std::string transfer_or_barrier(const std::string& module, KernelClass kernel_class) {
  if (kernel_class == KernelClass::barrier) return module + "/barrier";
  return is_transfer(kernel_class) ? module + "/transfer" : module;
}

// What a phase and a class of kernels tell of a model; "" where that is nothing.
std::string module_of_phase(const std::string& phase, KernelClass kernel_class) {
  const std::string base = base_of(phase);
  if (base == "dispatch" || base == "combine") return transfer_or_barrier(base, kernel_class);
  if (kernel_class == KernelClass::attention) return kCore;
  if (kernel_class == KernelClass::grouped_gemm) return "routed experts";
  if (kernel_class == KernelClass::dispatch) return kDispatchTransfer;
  if (kernel_class == KernelClass::combine) return kCombineTransfer;
  if (base == "attn") return kAttentionPhase;
  if (base == "mlp") return kMlpPhase;
  if (base == "shared") return "shared experts";
  if (base == "embedding") return kEmbedding;
  if (base == "head" || base == "lm_head" || base == "draft_head") return "LM head";
  return kUnknownModule;
}

ModelPass pass_of(const std::string& phase) {
  if (phase.empty()) return ModelPass::neither;
  return phase.ends_with("(B)") || phase.ends_with("(W)") ? ModelPass::backward : ModelPass::forward;
}

bool multiplies(KernelClass c) {
  return c == KernelClass::gemm || c == KernelClass::grouped_gemm || c == KernelClass::attention;
}

bool may_multiply(KernelClass c) { return multiplies(c) || c == KernelClass::unclassified; }

// The scenario's kernel may be the one that ran.
bool is_like(const Operator& op, KernelClass kernel_class) {
  const KernelClass own = class_named(row_of(op.family).task_class).value();
  return multiplies(own) == multiplies(kernel_class) && is_communication(own) == is_communication(kernel_class);
}

using EventsByPhase = std::vector<std::vector<std::size_t>>;

// Events of each phase in the order of launch.
EventsByPhase events_by_phase(const Interpretation& meaning) {
  EventsByPhase events(meaning.phases.size());
  for (const std::uint32_t event : meaning.order) {
    const std::int32_t phase = meaning.places[event].phase;
    if (phase != kNoPhase) events[static_cast<std::size_t>(phase)].push_back(event);
  }
  return events;
}

std::vector<PhaseTimes> places_of_phases(const Interpretation& meaning) {
  std::vector<PhaseTimes> phases;
  for (const TracePhase& phase : meaning.phases) {
    phases.push_back({.phase = phase.name, .micro_batch = phase.place.micro_batch, .layer = phase.place.layer});
  }
  return phases;
}

// In how many of the phases of one name the kernels of one name stand.
class Repetitions {
 public:
  Repetitions(const Measured& measured, const EventsByPhase& events) : measured_(measured) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::string& phase = measured.meaning.phases[i].name;
      std::set<std::uint32_t> names;
      for (const std::size_t event : events[i]) names.insert(name_of(event));
      for (const std::uint32_t name : names) ++with_kernel_[{phase, name}];
      ++phases_[phase];
    }
  }

  // The events of a phase without those that another of its name lacks: what is made once and kept.
  std::vector<std::size_t> in_every_layer(const std::string& phase, std::vector<std::size_t> events) const {
    const int all = phases_.at(phase);
    std::erase_if(events, [&](std::size_t event) { return with_kernel_.at({phase, name_of(event)}) < all; });
    return events;
  }

 private:
  std::uint32_t name_of(std::size_t event) const { return measured_.trace.gpu_events[event].name; }

  const Measured& measured_;
  std::map<std::pair<std::string, std::uint32_t>, int> with_kernel_;
  std::map<std::string, int> phases_;
};

bool match(const std::vector<Operator>& ops, const std::vector<std::size_t>& events, const Interpretation& meaning) {
  const auto like = [&](const Operator& op, std::size_t event) { return is_like(op, meaning.classes[event]); };
  return std::equal(ops.begin(), ops.end(), events.begin(), events.end(), like);
}

// By event, where the scenario's kernels of its phase are those that ran.
using Works = std::vector<std::optional<KernelWork>>;

Works works_of(const Measured& measured, const Setup& scenario) {
  const EventsByPhase events = events_by_phase(measured.meaning);
  const Repetitions repetitions(measured, events);
  const std::vector<PhaseTimes> phases = places_of_phases(measured.meaning);
  const TracedStep step = traced_step(scenario, phases);
  Works works(measured.trace.gpu_events.size());
  bool any = false;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::vector<Operator> ops = operators_of(scenario, phases[i], step);
    any = any || !ops.empty();
    std::vector<std::size_t> own = events[i];
    if (!match(ops, own, measured.meaning)) own = repetitions.in_every_layer(phases[i].phase, std::move(own));
    if (!match(ops, own, measured.meaning)) continue;
    for (std::size_t k = 0; k < ops.size(); ++k) works[own[k]] = work_of(phases[i].phase, ops[k]);
  }
  if (!any) throw SpecError(scenario.scenario.file, 0, "has no phase in common with the trace");
  return works;
}

KernelWork work_by_phase(const Interpretation& meaning, std::size_t event) {
  const std::int32_t phase = meaning.places[event].phase;
  const std::string name = phase == kNoPhase ? "" : meaning.phases[static_cast<std::size_t>(phase)].name;
  return {module_of_phase(name, meaning.classes[event]), pass_of(name)};
}

}  // namespace

MeasuredModules measured_modules(const Measured& measured, const KernelMap& map, const Setup* scenario) {
  const Trace& trace = measured.trace;
  const NameMatcher given(map.modules);
  const Works works = scenario == nullptr ? Works(trace.gpu_events.size()) : works_of(measured, *scenario);
  MeasuredModules modules;
  ModuleUses uses;
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    const KernelClass kernel_class = measured.meaning.classes[i];
    KernelWork work = works[i] ? *works[i] : work_by_phase(measured.meaning, i);
    if (const std::string* module = given.find(trace.name(event))) work.module = *module;
    if (is_communication(kernel_class)) work.bound_by = BoundBy::communication;
    if (!works[i] && may_multiply(kernel_class)) modules.without_flops.insert(work.module);
    uses[work.module].add_kernel(work, false, to_us(std::chrono::nanoseconds(event.end_ns - event.start_ns)));
  }
  add(uses, 1 / static_cast<double>(trace.gpus.size()), modules.uses);
  return modules;
}

}  // namespace moeline
