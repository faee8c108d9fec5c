#include "experiments/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <set>

#include "base/parallel.hpp"
#include "base/random.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/entry_times.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kFewPlans = 20'000;  // that are all tried
using Clock = std::chrono::steady_clock;

// One number of SMs and one side set, for which kernels take what they take.
struct Place {
  Setup setup;  ///< with the published order
  OrderSpace space;
  PhaseOrder published{};
  EntryTimes times{};
  double bound_us = 0;  ///< of any order
};

struct Leaf {
  const Place* place = nullptr;
  PhaseOrder order;
  std::optional<OverlapPlan> plan{};  ///< of the order; nothing where it cannot run
  double us = kNever;
};

bool faster(const Leaf& a, const Leaf& b) { return std::tie(a.us, a.order) < std::tie(b.us, b.order); }

// One rank that stands for all, and layers that are alike once.
Setup quick(const SearchRequest& request, std::optional<int> num_sms) {
  std::vector<std::string> assignments = request.assignments;
  assignments.insert(assignments.end(), {"ranks=folded", "samples=1"});
  if (num_sms) assignments.push_back(fmt::format("comm.num_sms={}", *num_sms));
  Setup setup = load_setup(request.scenario, assignments);
  return setup.scenario.phase() == WorkloadPhase::train ? setup : folded(std::move(setup));
}

Setup with_plan(const Setup& setup, OverlapPlan plan) {
  Setup with = setup;
  with.scenario.plan = std::make_shared<const OverlapPlan>(std::move(plan));
  return with;
}

// Infinite where the streams wait for each other after all.
double simulated_us(const Setup& setup) {
  try {
    return layer_us(run_scenario(setup));
  } catch (const SpecError&) {
    return kNever;
  }
}

std::vector<std::vector<std::string>> side_sets(const SearchRequest& request, const OverlapPlan& plan) {
  if (!request.sides) return {plan.side};
  std::vector<std::string> weights;
  for (const PlanEntry& entry : plan.compute) {
    if (entry.phase.ends_with("(W)")) weights.push_back(entry.phase);
  }
  if (weights.empty()) {
    throw SpecError(request.scenario.string(), 0,
                    "--over side: there are no weight gradients that a side stream could take");
  }
  std::vector<std::vector<std::string>> sets;
  for (std::size_t bits = 0; bits < (std::size_t{1} << weights.size()); ++bits) {
    sets.emplace_back();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if ((bits >> i & 1U) != 0) sets.back().push_back(weights[i]);
    }
  }
  return sets;
}

Place place_of(const Setup& setup, const std::vector<std::string>& side) {
  OverlapPlan plan = searched_plan(setup);
  plan.side = side;
  Place place{.setup = with_plan(setup, plan), .space = order_space(setup)};
  place.published = order_of(plan, place.space);
  const Program program = build_program(place.setup);
  const LayerRange layers = moe_layers(setup);
  place.times = entry_times(program, place.space, layers);
  place.bound_us = std::max(least_layer_us(place.space, place.times), busiest_resource_us(program, layers));
  return place;
}

std::optional<OverlapPlan> plan_at(const Place& place, const PhaseOrder& order) {
  std::optional<OverlapPlan> plan = plan_of(order, place.space);
  if (plan) plan->side = place.setup.scenario.plan->side;
  return plan;
}

PhaseOrder moved(PhaseOrder order, std::size_t steps, Random& random) {
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t compute = order.compute.size(), all = compute + order.communication.size();
    auto& stream = random.next() % all < compute ? order.compute : order.communication;
    const std::size_t from = random.next() % stream.size(), to = random.next() % stream.size();
    const std::size_t entry = stream[from];
    stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(from));
    stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(to), entry);
  }
  return order;
}

class Search {
 public:
  Search(const SearchRequest& request, const Progress& progress)
      : request_(request), progress_(progress), asked_(quick(request, {})) {
    if (request.num_sms.empty()) add_places(asked_);
    for (const int num_sms : request.num_sms) add_places(quick(request, num_sms));
  }

  SearchResult run() && {
    result_.us.published = layer_us(run_scenario(asked_));
    result_.bound_us = kNever;
    for (const Place& place : places_) {
      result_.bound_us = std::min(result_.bound_us, place.bound_us);
      result_.plans += request_.orders ? order_count(place.space) : 1;
    }
    try_published_orders();
    result_.exhaustive = !request_.orders;
    if (request_.orders) result_.plans <= kFewPlans ? try_all() : climb();
    finish();
    return std::move(result_);
  }

 private:
  void add_places(const Setup& setup) {
    for (const std::vector<std::string>& side : side_sets(request_, searched_plan(setup))) {
      places_.push_back(place_of(setup, side));
    }
  }

  [[nodiscard]] bool in_time() const {
    return request_.seconds == 0 || std::chrono::duration<double>(Clock::now() - begin_).count() < request_.seconds;
  }

  // Nothing can be faster.
  [[nodiscard]] bool meets_bound(double us) const { return us <= result_.bound_us * (1 + kEqual); }

  // Simulates those that are worth it, in parallel: the same ones whatever the number of threads. `most_us`: what is
  // no faster even without neighbours is not.
  void evaluate(std::vector<Leaf>& leaves, double most_us, bool reports) {
    std::size_t done = 0;
    parallel_for(leaves.size(), request_.workers, [&](std::size_t i) {
      Leaf& leaf = leaves[i];
      const Place& place = *leaf.place;
      if (!leaf.plan) leaf.plan = plan_at(place, leaf.order);
      const bool begins = leaf.plan && in_time();
      const double least_us = begins ? least_layer_us(leaf.order, place.space, place.times) : 0;
      const bool worth = begins && least_us < most_us;
      // A few layers may take a little less than such layers do in the long run.
      if (worth) leaf.us = std::max(least_us, simulated_us(with_plan(place.setup, *leaf.plan)));
      const std::scoped_lock lock(mutex_);
      if (!leaf.plan || (worth && leaf.us == kNever)) ++result_.impossible;
      if (leaf.plan && !begins) late_ = true;
      if (begins && !worth) ++result_.pruned;
      if (worth && leaf.us < kNever) note(leaf);
      if (reports) progress_("orders", ++done, leaves.size());
    });
  }

  void note(const Leaf& leaf) {
    ++result_.evaluated;
    if (leaf.us < result_.us.published * (1 - kEqual)) ++result_.faster;
    if (best_.place == nullptr || faster(leaf, best_)) best_ = leaf;
  }

  // The published order with each number of SMs and side set.
  void try_published_orders() {
    for (const Place& place : places_) {
      note({&place, place.published, *place.setup.scenario.plan, simulated_us(place.setup)});
    }
  }

  void try_all() {
    std::vector<Leaf> leaves;
    for (const Place& place : places_) {
      for (PhaseOrder& order : all_orders(place.space)) {
        if (order != place.published) leaves.push_back({&place, std::move(order)});
      }
    }
    evaluate(leaves, result_.us.published, true);
    result_.exhaustive = !late_;
  }

  // Orders that run and were not seen before, so many steps away.
  static std::vector<Leaf> neighbours(const Leaf& here, std::size_t steps, std::set<PhaseOrder>& seen, Random& random) {
    constexpr std::size_t kRound = 16, kTries = 64 * kRound;
    std::vector<Leaf> round;
    for (std::size_t i = 0; round.size() < kRound && i < kTries; ++i) {
      PhaseOrder order = moved(here.order, steps, random);
      if (!seen.insert(order).second) continue;
      if (auto plan = plan_at(*here.place, order)) round.push_back({here.place, std::move(order), std::move(plan)});
    }
    return round;
  }

  // To the best neighbour of the best plan so far; where none is better, several steps away from it.
  void climb() {
    for (const Place& place : places_) {
      Random random(request_.seed, static_cast<std::uint64_t>(&place - places_.data()));
      std::set<PhaseOrder> seen = {place.published};
      Leaf here{.place = &place, .order = place.published, .us = result_.us.published};
      std::size_t steps = 1;
      const std::size_t share = request_.most / places_.size();
      const std::size_t until = result_.evaluated + share;
      for (std::size_t i = 0; i < share && result_.evaluated < until && in_time() && !meets_bound(best_.us); ++i) {
        std::vector<Leaf> round = neighbours(here, steps, seen, random);
        evaluate(round, std::min(best_.us, result_.us.published), false);
        progress_("plans", result_.evaluated, request_.most);
        const auto next = std::min_element(round.begin(), round.end(), faster);
        if (next != round.end() && next->us < here.us) {
          here = *next;
          steps = 1;
        } else {
          steps = steps % 4 + 1;
          if (steps == 1 && best_.place == &place) here = best_;
        }
      }
    }
  }

  void finish() {
    const bool beaten = best_.us < result_.us.published;
    const Setup& setup = beaten ? best_.place->setup : asked_;
    result_.us.best = beaten ? best_.us : result_.us.published;
    result_.plan = beaten ? *best_.plan : searched_plan(asked_);
    result_.num_sms = setup.scenario.comm.num_sms;
    result_.proven = result_.exhaustive || meets_bound(result_.us.best);
    result_.text = plan_text(result_.plan, searched_contents(asked_), head());
    confirm();
  }

  [[nodiscard]] std::string head() const {
    const Scenario& s = asked_.scenario;
    return fmt::format(
        "# Found by `moeline search` for {} on {} ({}), {}, EP{}, {} communication SMs: {:.1f} us a layer, where the "
        "plan\n"
        "# of the scenario takes {:.1f} and none can take less than {:.1f}. {}\n",
        s.model, s.hardware, s.kernels, s.schedule, s.parallelism.ep, result_.num_sms, result_.us.best,
        result_.us.published, result_.bound_us,
        result_.proven ? "Nothing searched for is faster." : "Not every order was tried.");
  }

  void confirm() {
    const Setup asked = load_setup(request_.scenario, request_.assignments);
    if (!asked.every_rank) return;
    std::vector<std::string> assignments = request_.assignments;
    if (!request_.num_sms.empty()) assignments.push_back(fmt::format("comm.num_sms={}", result_.num_sms));
    PlanTimes us{.published = layer_us(run_scenario(asked))};
    progress_("plans with all ranks", 1, 2);
    us.best = simulated_us(with_plan(load_setup(request_.scenario, assignments), result_.plan));
    progress_("plans with all ranks", 2, 2);
    result_.all_ranks_us = us;
  }

  static constexpr double kEqual = 1e-4;  // a picosecond of a kernel, or a layer that still settles

  const SearchRequest& request_;
  const Progress& progress_;
  Clock::time_point begin_ = Clock::now();
  Setup asked_;
  std::vector<Place> places_;
  std::mutex mutex_;
  Leaf best_;
  bool late_ = false;
  SearchResult result_;
};

}  // namespace

SearchResult search(const SearchRequest& request, const Progress& progress) { return Search(request, progress).run(); }

}  // namespace moeline
