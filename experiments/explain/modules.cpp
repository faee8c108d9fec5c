#include "experiments/explain/modules.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "experiments/run/module_use.hpp"
#include "experiments/run/shapes.hpp"
#include "measured/release.hpp"
#include "measured/replay.hpp"
#include "moe/module_names.hpp"
#include "trace/kernel_class.hpp"

namespace moeline {

// Which module of the model each kernel of a measured trace is part of.

namespace {

struct MeasuredModules {
  ModuleUses uses;                      ///< of one GPU, on average over those of the trace
  std::set<std::string> without_flops;  ///< modules with kernels whose shapes are not known
};

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

/// As module_table() says. `scenario` null: none.
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

ModuleUses uses_of(const Run& run) {
  ModuleUses uses = run.slot_modules;
  add(module_uses(run.setup, run.program, run.timeline), 1, uses);
  return uses;
}

double tokens_of(const Setup& setup) {
  const Workload& workload = setup.scenario.workload;
  if (const auto* w = std::get_if<TrainWorkload>(&workload)) {
    const double micro_batch = w->micro_batch_size * mean_seq_len(setup.scenario);
    const Parallelism& p = setup.scenario.parallelism;
    if (!is_training_step(setup.scenario)) return micro_batch / p.attention_ranks();
    return micro_batch * micro_batches(setup.scenario) / p.gpus_of_request();
  }
  const double gpus = setup.scenario.parallelism.gpus_of_request();
  const DecodeWorkload* answers = decode_of(workload);
  const PrefillWorkload* prompts = prefill_of(workload);
  const double decoded = answers == nullptr ? 0 : 1.0 * answers->batch_size * answers->query_len;
  return (decoded + (prompts == nullptr ? 0 : prompts->tokens)) / gpus;
}

// Parts stand behind what they are parts of.
void add_to_parents(std::vector<ModuleRow>& rows) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto parent = std::find_if(row, rows.rend(), [&](const ModuleRow& r) { return r.module == row->parent; });
    if (parent == rows.rend()) continue;
    parent->use.add(row->use);
    parent->knows_flops = parent->knows_flops && row->knows_flops;
  }
}

// `model` null: not known.
std::vector<ModuleRow> rows_of(const Architecture* model, const ModuleUses& uses,
                               const std::set<std::string>& without_flops = {}) {
  std::set<std::string> in_use;
  for (const auto& [module, use] : uses) in_use.insert(module);
  std::vector<ModuleRow> rows;
  for (const ModuleNode& node : model == nullptr ? module_tree(in_use) : module_tree(*model, in_use)) {
    ModuleRow& row = rows.emplace_back(ModuleRow{node.name, node.parent, node.depth});
    if (model != nullptr) row.parameters = node.parameters;
    row.knows_flops = !without_flops.contains(node.name);
    const auto found = uses.find(node.name);
    if (found != uses.end()) row.use = found->second;
  }
  add_to_parents(rows);
  return rows;
}

}  // namespace

std::optional<double> ModuleRow::tflops() const {
  const double us = use.total_us();
  if (!knows_flops || us == 0) return std::nullopt;
  return use.flops() / us / 1e6;
}

std::optional<BoundBy> ModuleRow::bound_by() const {
  std::array<double, kBoundBys> us = use.bound_us;
  us[static_cast<std::size_t>(BoundBy::launch)] += use.gap_us;
  const auto most = std::max_element(us.begin(), us.end());
  const auto bound = static_cast<BoundBy>(most - us.begin());
  if (*most == 0 || bound == BoundBy::unknown) return std::nullopt;
  return bound;
}

std::optional<ModuleTable> module_table(const Run& run) {
  if (run.has_given_slots()) return std::nullopt;
  return ModuleTable{rows_of(&run.setup.model, uses_of(run)), to_us(run.metrics.span), tokens_of(run.setup)};
}

ModuleTable module_table(const Measured& measured, const KernelMap& map, const Setup* scenario) {
  const MeasuredModules modules = measured_modules(measured, map, scenario);
  ModuleTable table{rows_of(scenario == nullptr ? nullptr : &scenario->model, modules.uses, modules.without_flops),
                    to_us(measured_span(measured.trace))};
  if (scenario != nullptr) table.tokens = tokens_of(*scenario);
  table.is_measured = true;
  return table;
}

ModuleTable cut(ModuleTable table, int depth) {
  std::erase_if(table.rows, [&](const ModuleRow& row) { return row.depth > depth; });
  return table;
}

}  // namespace moeline
