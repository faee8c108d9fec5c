#include "experiments/search/order_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "moe/inference.hpp"
#include "schedules/lowering/planned_step.hpp"
#include "schedules/lowering/training_passes.hpp"

namespace moeline {
namespace {

using Part = PlanEntry::Part;

// Between phases of a micro-batch, where they send tokens.
std::vector<PhaseDependency> training_data() {
  std::vector<PhaseDependency> data = {{"mlp(B)", "mlp(W)"}, {"attn(B)", "attn(W)"}};
  for (const auto* phases : {&forward_phases(BlockKind::moe_layer), &backward_phases(BlockKind::moe_layer)}) {
    for (std::size_t i = 0; i + 1 < phases->size(); ++i) data.push_back({(*phases)[i], (*phases)[i + 1]});
    data.push_back({phases->back(), phases->front(), true});
  }
  return data;
}

// How many layers `before` is behind `after`, if that needs it.
std::optional<int> layers_between(const PlanEntry& before, const PlanEntry& after,
                                  const std::vector<PhaseDependency>& data) {
  if (before.micro_batch != after.micro_batch) return {};
  if (before.part == Part::issue || after.part == Part::receive) {
    const bool same = before.phase == after.phase && before.part == Part::issue && after.part == Part::receive;
    return same ? std::optional(0) : std::nullopt;
  }
  for (const PhaseDependency& each : data) {
    if (each.before == before.phase && each.after == after.phase) return each.next_layer ? 1 : 0;
  }
  return {};
}

bool is_cut(const PlanEntry& entry, const OverlapPlan& plan, const PlanContents& contents) {
  const bool once = entry.part == Part::receive && plan.receives_once(entry.phase);
  return !once && std::find(contents.cut.begin(), contents.cut.end(), entry.phase) != contents.cut.end();
}

// A token's sum needs all of its experts, so that one kernel receives what groups of them send, behind the last.
bool has_piece(const PlanEntry& entry, int piece, const OverlapPlan& plan, const PlanContents& contents) {
  if (is_cut(entry, plan, contents)) return true;
  return piece == (entry.phase == "combine" ? plan.pieces - 1 : 0);
}

void add_steps(const std::vector<PlanEntry>& stream, const PlanContents& contents, OrderSpace& space) {
  for (const Bracket& bracket : brackets_of(stream)) {
    PlanStep step{.entries = {bracket.begin(), bracket.end()}, .first_unit = space.units.size()};
    for (int piece = 0; piece < space.plan.pieces; ++piece) {
      for (std::size_t i = 0; i < step.entries.size(); ++i) {
        const PlanEntry& entry = step.entries[i];
        if (!has_piece(entry, piece, space.plan, contents)) continue;
        StepUnit& unit = space.units.emplace_back(StepUnit{space.steps.size(), i, piece});
        if (entry.part == Part::issue) unit.wire = space.wires++;
      }
    }
    for (PlanEntry& entry : step.entries) entry.layer_offset = 0;
    step.end = space.units.size();
    space.steps.push_back(std::move(step));
  }
}

// A piece leads to the same piece, where both entries have any.
void add_data(const std::vector<PhaseDependency>& data, const PlanContents& contents, OrderSpace& space) {
  for (std::size_t a = 0; a < space.units.size(); ++a) {
    for (std::size_t b = 0; b < space.units.size(); ++b) {
      const StepUnit &from = space.units[a], &to = space.units[b];
      const PlanEntry &before = space.entry(from), &after = space.entry(to);
      const bool piecewise = is_cut(before, space.plan, contents) && is_cut(after, space.plan, contents);
      if (piecewise && from.piece != to.piece) continue;
      if (const std::optional<int> layers = layers_between(before, after, data)) space.data.push_back({a, b, *layers});
    }
  }
}

std::vector<char> leads_in(const OrderSpace& space) {
  const std::size_t count = space.steps.size();
  std::vector<char> leads(count * count, 0);
  for (const UnitData& data : space.data) {
    if (data.layers == 0) leads[space.units[data.before].step * count + space.units[data.after].step] = 1;
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        if (leads[i * count + k] != 0 && leads[k * count + j] != 0) leads[i * count + j] = 1;
      }
    }
  }
  return leads;
}

// Steps of a stream so that each stands behind all that lead to it.
std::vector<std::size_t> by_data(std::vector<std::size_t> stream, const OrderSpace& space) {
  const auto before = [&](std::size_t step) {
    return std::count_if(stream.begin(), stream.end(), [&](std::size_t other) { return space.leads_to(other, step); });
  };
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> ranked;
  for (const std::size_t step : stream) ranked.emplace_back(before(step), step);
  std::sort(ranked.begin(), ranked.end());
  std::transform(ranked.begin(), ranked.end(), stream.begin(), [](const auto& each) { return each.second; });
  return stream;
}

bool same_entry(const PlanEntry& a, const PlanEntry& b) {
  return a.phase == b.phase && a.micro_batch == b.micro_batch && a.part == b.part;
}

}  // namespace

bool has_searched_plan(const ScheduleKind& kind) { return !kind.plan.empty() && !kind.pipeline; }

std::vector<std::string> searched_schedules() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (has_searched_plan(kind)) names.push_back(kind.name);
  }
  return names;
}

PlanContents searched_contents(const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? training_plan_contents() : inference_plan_contents(setup);
}

OverlapPlan searched_plan(const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (!has_searched_plan(s.kind())) {
    throw SpecError(s.file, 0,
                    fmt::format("the schedule {} has no plan whose order is searched; there are: {}", s.schedule,
                                fmt::join(searched_schedules(), ", ")));
  }
  return s.phase() == WorkloadPhase::train ? training_plan(s) : inference_plan(setup);
}

OrderSpace order_space(const Setup& setup) {
  const PlanContents contents = searched_contents(setup);
  const bool training = setup.scenario.phase() == WorkloadPhase::train;
  OrderSpace space{.plan = searched_plan(setup), .steps = {}, .repeats = contents.micro_batches > 1};
  add_steps(space.plan.compute, contents, space);
  space.compute = space.steps.size();
  add_steps(space.plan.communication, contents, space);
  add_data(training ? training_data() : inference_dependencies(setup.scenario.comm.mode), contents, space);
  space.leads = leads_in(space);
  return space;
}

PhaseOrder order_of(const OverlapPlan& plan, const OrderSpace& space) {
  const auto numbers_of = [&](const std::vector<PlanEntry>& stream) {
    std::vector<std::size_t> numbers;
    for (const Bracket& bracket : brackets_of(stream)) {
      const auto found = std::find_if(space.steps.begin(), space.steps.end(), [&](const PlanStep& step) {
        return same_entry(step.entries.front(), bracket.front());
      });
      numbers.push_back(static_cast<std::size_t>(found - space.steps.begin()));
    }
    return numbers;
  };
  return {.compute = numbers_of(plan.compute), .communication = numbers_of(plan.communication)};
}

PhaseOrder plain_order(const OrderSpace& space) {
  std::vector<std::size_t> compute(space.compute), communication(space.steps.size() - space.compute);
  std::iota(compute.begin(), compute.end(), std::size_t{0});
  std::iota(communication.begin(), communication.end(), space.compute);
  PhaseOrder order{.compute = by_data(compute, space), .communication = by_data(communication, space)};
  for (auto* stream : {&order.compute, &order.communication}) {
    std::stable_sort(stream->begin(), stream->end(),
                     [&](std::size_t a, std::size_t b) { return space.micro_batch(a) < space.micro_batch(b); });
  }
  return order;
}

std::vector<int> offsets_of(const PhaseOrder& order, const OrderSpace& space) {
  std::vector<int> offsets(space.steps.size(), 0);
  if (!space.repeats) return offsets;
  for (const auto* stream : {&order.compute, &order.communication}) {
    if (stream->empty()) continue;
    const bool transfers = stream == &order.communication;
    const auto place = [&](std::size_t step) { return std::find(stream->begin(), stream->end(), step); };
    for (const std::size_t step : by_data(*stream, space)) {
      int offset = transfers && space.micro_batch(step) == 1 ? order.shift : 0;
      for (const std::size_t other : *stream) {
        if (other == step || !space.leads_to(other, step)) continue;
        offset = std::min(offset, offsets[other] - (place(step) < place(other) ? 1 : 0));
      }
      offsets[step] = offset;
    }
    // Where turns begin says nothing: as near to the turn as may be.
    const auto [least, most] = std::minmax_element(
        stream->begin(), stream->end(), [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    const int by = offsets[*most] - offsets[*least] > 1 ? -1 - offsets[*least] : -offsets[*most];
    for (const std::size_t step : *stream) offsets[step] += by;
  }
  return offsets;
}

bool can_be_said(const std::vector<int>& offsets) {
  return std::all_of(offsets.begin(), offsets.end(), [](int offset) { return offset >= -1 && offset <= 1; });
}

std::optional<OverlapPlan> plan_of(const PhaseOrder& order, const OrderSpace& space) {
  const std::vector<int> offsets = offsets_of(order, space);
  if (!can_be_said(offsets)) return {};
  OverlapPlan plan = space.plan;
  const auto set = [&](const std::vector<std::size_t>& stream, std::vector<PlanEntry>& entries) {
    entries.clear();
    int brackets = 0;
    for (const std::size_t step : stream) {
      const std::vector<PlanEntry>& together = space.steps[step].entries;
      const int bracket = together.size() > 1 ? ++brackets : 0;
      for (PlanEntry entry : together) {
        entry.layer_offset = offsets[step];
        entry.bracket = bracket;
        entries.push_back(std::move(entry));
      }
    }
  };
  set(order.compute, plan.compute);
  set(order.communication, plan.communication);
  return plan;
}

}  // namespace moeline
