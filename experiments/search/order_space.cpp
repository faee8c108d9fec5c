#include "experiments/search/order_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "architecture/blocks.hpp"
#include "moe/inference.hpp"
#include "schedules/lowering/inference_step.hpp"
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
  return !once && is_cut(entry, contents);
}

// What turns of such a plan take in the long run is not known.
void check_searched(const Setup& setup, const OverlapPlan& plan, const PlanContents& contents) {
  const auto refuse = [&](const std::string& what) { throw SpecError(plan.file, 0, "cannot be searched: " + what); };
  for (const auto* stream : {&plan.compute, &plan.communication}) {
    for (const Bracket& bracket : brackets_of(*stream)) {
      const auto differs = [&](const PlanEntry& entry) { return entry.micro_batch != bracket.front().micro_batch; };
      if (std::any_of(bracket.begin(), bracket.end(), differs)) refuse("a bracket has entries of both micro-batches");
    }
  }
  if (!contents.halved.empty() && !plan.communication.empty()) {
    refuse("low-latency transfers are on the communication stream; the compute stream can issue and receive them");
  }
  const std::vector<Block> layers = main_layers_alone(setup.model, setup.model.main_layers());
  const auto routes = [](const Block& layer) { return layer.kind == BlockKind::moe_layer; };
  if (!std::all_of(layers.begin(), layers.end(), routes)) {
    throw SpecError(setup.scenario.file, 0,
                    fmt::format("cannot be searched: {} has layers without routed experts between those with them, so "
                                "that no turn of a plan runs into the next",
                                setup.scenario.model));
  }
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

// Where a step stands in front of one that it needs, that is of the layer before. Micro-batch 1's transfers are so many
// layers ahead as the order says.
std::vector<int> offsets_in_turns(const PhaseOrder& order, const OrderSpace& space) {
  std::vector<int> offsets(space.steps.size(), 0);
  for (const auto* stream : {&order.compute, &order.communication}) {
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
  }
  return offsets;
}

// What `offsets` have of PhaseOrder::shift, beyond those of an order that has none.
int shift_between(const std::vector<int>& offsets, const std::vector<int>& without, const PhaseOrder& order,
                  const OrderSpace& space) {
  const auto lag = [&](const std::vector<std::size_t>& stream) {
    int by[2] = {0, 0};
    for (const std::size_t step : stream) by[space.micro_batch(step)] = offsets[step] - without[step];
    return by[1] - by[0];
  };
  return order.communication.empty() ? 0 : lag(order.communication) - lag(order.compute);
}

// Where a stream's turns begin says nothing: so that most steps are of their turn's layer, and the others near. Returns
// how far its offsets are apart.
int near_turns(const std::vector<std::size_t>& stream, std::vector<int>& offsets) {
  if (stream.empty()) return 0;
  const auto [least, most] = std::minmax_element(stream.begin(), stream.end(),
                                                 [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  const int first = offsets[*least], spread = offsets[*most] - first;
  const auto has = [&](int offset) {
    return std::count_if(stream.begin(), stream.end(), [&](std::size_t step) { return offsets[step] == offset; });
  };
  const int of_turn = spread > 1 || has(first + 1) >= has(first) ? first + std::min(1, spread) : first;
  for (const std::size_t step : stream) offsets[step] -= of_turn;
  return spread;
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
  check_searched(setup, space.plan, contents);
  add_steps(space.plan.compute, contents, space);
  space.compute = space.steps.size();
  add_steps(space.plan.communication, contents, space);
  add_data(training ? training_data() : inference_dependencies(setup.scenario.comm.mode), contents, space);
  space.leads = leads_in(space);
  return space;
}

PhaseOrder order_of(const OverlapPlan& plan, const OrderSpace& space) {
  const auto number_of = [&](const PlanEntry& entry) {
    const auto found = std::find_if(space.steps.begin(), space.steps.end(),
                                    [&](const PlanStep& step) { return same_entry(step.entries.front(), entry); });
    return static_cast<std::size_t>(found - space.steps.begin());
  };
  std::vector<int> offsets(space.steps.size(), 0);
  const auto numbers_of = [&](const std::vector<PlanEntry>& stream) {
    std::vector<std::size_t> numbers;
    for (const Bracket& bracket : brackets_of(stream)) {
      numbers.push_back(number_of(bracket.front()));
      offsets[numbers.back()] = bracket.front().layer_offset;
    }
    return numbers;
  };
  PhaseOrder order{.compute = numbers_of(plan.compute), .communication = numbers_of(plan.communication)};
  order.shift = shift_between(offsets, offsets_in_turns(order, space), order, space);
  return order;
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

PhaseOrder late_order(const OrderSpace& space) {
  PhaseOrder order = plain_order(space);
  const auto is_received = [&](std::size_t step) {
    const PlanEntry& entry = space.steps[step].entries.front();
    return entry.phase == "combine" && entry.part == Part::receive;
  };
  for (auto first = order.compute.begin(); first != order.compute.end();) {
    const auto last = std::find_if(first, order.compute.end(), [&](std::size_t step) {
      return space.micro_batch(step) != space.micro_batch(*first);
    });
    std::stable_partition(first, last, is_received);
    first = last;
  }
  return order;
}

std::vector<int> offsets_of(const PhaseOrder& order, const OrderSpace& space) {
  if (!space.repeats) return std::vector<int>(space.steps.size(), 0);
  const std::vector<int> in_turns = offsets_in_turns(order, space);
  std::vector<int> best;
  int least = std::numeric_limits<int>::max();
  for (const int lag : {0, -1, 1, -2, 2}) {
    std::vector<int> offsets = in_turns;
    for (std::size_t step = 0; step < offsets.size(); ++step) {
      if (space.micro_batch(step) == 1) offsets[step] += lag;
    }
    const int spread = near_turns(order.compute, offsets) + near_turns(order.communication, offsets);
    if (spread < least) best = offsets;
    least = std::min(least, spread);
  }
  return best;
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
