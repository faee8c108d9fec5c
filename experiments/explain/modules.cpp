#include "experiments/explain/modules.hpp"

#include <algorithm>

#include "experiments/explain/measured_modules.hpp"
#include "measured/replay.hpp"

namespace moeline {
namespace {

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
