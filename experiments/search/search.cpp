#include "experiments/search/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  Setup setup;
  std::vector<std::string> side;
  OrderSpace space;
  PhaseOrder published{};
  EntryTimes times{};
  double bound_us = 0;  ///< of any order
};

struct Leaf {
  const Place* place = nullptr;
  PhaseOrder order;
  double us = kNever;
};

bool faster(const Leaf& a, const Leaf& b) { return std::tie(a.us, a.order) < std::tie(b.us, b.order); }

// One rank that stands for all, and layers that are alike once.
Setup quick(const SearchRequest& request, int num_sms) {
  std::vector<std::string> assignments = request.assignments;
  assignments.insert(assignments.end(), {"ranks=folded", "samples=1"});
  if (num_sms > 0) assignments.push_back(fmt::format("comm.num_sms={}", num_sms));
  Setup setup = load_setup(request.scenario, assignments);
  return setup.scenario.phase() == WorkloadPhase::train ? setup : folded(std::move(setup));
}

Setup with_plan(const Setup& setup, const OverlapPlan& plan) {
  Setup with = setup;
  with.scenario.plan = std::make_shared<const OverlapPlan>(plan);
  return with;
}

// Infinite where the streams wait for each other after all.
double simulated_us(const Setup& setup, const OverlapPlan& plan) {
  try {
    return layer_us(run_scenario(with_plan(setup, plan)));
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
  Place place{.setup = with_plan(setup, plan), .side = side, .space = order_space(setup)};
  place.published = order_of(plan, place.space);
  const Program program = build_program(place.setup);
  const LayerRange layers = moe_layers(setup);
  place.times = entry_times(program, place.space, layers);
  place.bound_us = std::max(least_layer_us(place.space, place.times), busiest_resource_us(program, layers));
  return place;
}

class Search {
 public:
  Search(const SearchRequest& request, const SearchProgress& progress) : request_(request), progress_(progress) {
    for (const int num_sms : request.num_sms.empty() ? std::vector{0} : request.num_sms) {
      const Setup setup = quick(request, num_sms);
      for (const std::vector<std::string>& side : side_sets(request, searched_plan(setup))) {
        places_.push_back(place_of(setup, side));
      }
    }
  }

  SearchResult run() && {
    const Setup asked = quick(request_, 0);
    published_plan_ = searched_plan(asked);
    result_.published_us = layer_us(run_scenario(asked));
    result_.bound_us = kNever;
    for (const Place& place : places_) {
      result_.bound_us = std::min(result_.bound_us, place.bound_us);
      result_.plans += request_.orders ? order_count(place.space) : 1;
    }
    try_published_orders();
    if (request_.orders) result_.plans <= kFewPlans ? try_all() : climb();
    if (!request_.orders) result_.exhaustive = true;
    finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool in_time() const {
    return request_.seconds == 0 || std::chrono::duration<double>(Clock::now() - begin_).count() < request_.seconds;
  }

  // Nothing can be faster.
  [[nodiscard]] bool is_proven() const { return best_.us <= result_.bound_us * (1 + kEqual); }

  [[nodiscard]] OverlapPlan plan_at(const Leaf& leaf) const {
    OverlapPlan plan = *plan_of(leaf.order, leaf.place->space);
    plan.side = leaf.place->side;
    return plan;
  }

  // Simulates those that are worth it, in parallel: the same ones whatever the number of threads. `most_us`: what is
  // no faster even without neighbours is not.
  void evaluate(std::vector<Leaf>& leaves, double most_us, bool reports) {
    std::size_t done = 0;
    parallel_for(leaves.size(), request_.workers, [&](std::size_t i) {
      Leaf& leaf = leaves[i];
      const std::optional<OverlapPlan> plan = plan_of(leaf.order, leaf.place->space);
      const bool runs = plan.has_value(), begins = runs && in_time();
      const double least_us = begins ? least_layer_us(leaf.order, leaf.place->space, leaf.place->times) : 0;
      const bool worth = begins && least_us < most_us;
      // A few layers may take a little less than such layers do in the long run.
      if (worth) leaf.us = std::max(least_us, simulated_us(leaf.place->setup, plan_at(leaf)));
      const std::scoped_lock lock(mutex_);
      if (!runs || (worth && leaf.us == kNever)) ++result_.impossible;
      if (runs && !begins) late_ = true;
      if (begins && !worth) ++result_.pruned;
      if (worth && leaf.us < kNever) note(leaf);
      if (reports) progress_("orders", ++done, leaves.size());
    });
  }

  void note(const Leaf& leaf) {
    ++result_.evaluated;
    if (leaf.us < result_.published_us * (1 - kEqual)) ++result_.faster;
    if (best_.place == nullptr || faster(leaf, best_)) best_ = leaf;
  }

  // The published order with each number of SMs and side set.
  void try_published_orders() {
    for (const Place& place : places_) {
      Leaf leaf{&place, place.published};
      OverlapPlan plan = searched_plan(place.setup);
      plan.side = place.side;
      leaf.us = simulated_us(place.setup, plan);
      note(leaf);
      known_[&place] = plan;
    }
  }

  void try_all() {
    std::vector<Leaf> leaves;
    for (const Place& place : places_) {
      for (PhaseOrder& order : all_orders(place.space)) {
        if (order != place.published) leaves.push_back({&place, std::move(order)});
      }
    }
    evaluate(leaves, result_.published_us, true);
    result_.exhaustive = !late_;
  }

  // Neighbours of the best plan so far; where none is better, a jump of several steps from it.
  void climb() {
    constexpr std::size_t kRound = 16;
    for (const Place& place : places_) {
      Random random(request_.seed, static_cast<std::uint64_t>(&place - places_.data()));
      std::set<PhaseOrder> seen = {place.published};
      Leaf here{&place, place.published, result_.published_us};
      std::size_t steps = 1;
      const std::size_t share = request_.most / places_.size();
      const std::size_t until = result_.evaluated + share;
      for (std::size_t i = 0; i < share && result_.evaluated < until && in_time() && !is_proven(); ++i) {
        std::vector<Leaf> round;
        for (std::size_t tries = 0; round.size() < kRound && tries < 64 * kRound; ++tries) {
          PhaseOrder order = moved(here.order, steps, random);
          if (seen.insert(order).second && plan_of(order, place.space)) round.push_back({&place, std::move(order)});
        }
        evaluate(round, std::min(best_.us, result_.published_us), false);
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

  static PhaseOrder moved(PhaseOrder order, std::size_t steps, Random& random) {
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

  void finish() {
    const bool own = best_.us >= result_.published_us;  // nothing is faster than what was there
    const bool known = best_.order == best_.place->published;
    result_.best_us = own ? result_.published_us : best_.us;
    result_.plan = own ? published_plan_ : known ? known_.at(best_.place) : plan_at(best_);
    result_.proven = result_.exhaustive || result_.best_us <= result_.bound_us * (1 + kEqual);
    result_.num_sms = own ? quick(request_, 0).scenario.comm.num_sms : best_.place->setup.scenario.comm.num_sms;
    confirm();
  }

  void confirm() {
    const Setup asked = load_setup(request_.scenario, request_.assignments);
    result_.confirms = asked.every_rank;
    if (!asked.every_rank) return;
    std::vector<std::string> assignments = request_.assignments;
    if (!request_.num_sms.empty()) assignments.push_back(fmt::format("comm.num_sms={}", result_.num_sms));
    progress_("with all ranks", 0, 2);
    result_.confirmed_published_us = layer_us(run_scenario(asked));
    progress_("with all ranks", 1, 2);
    result_.confirmed_best_us = simulated_us(load_setup(request_.scenario, assignments), result_.plan);
    progress_("with all ranks", 2, 2);
  }

  static constexpr double kEqual = 1e-4;  // a picosecond of a kernel, or a layer that still settles

  const SearchRequest& request_;
  const SearchProgress& progress_;
  Clock::time_point begin_ = Clock::now();
  std::vector<Place> places_;
  std::map<const Place*, OverlapPlan> known_;  // the published order with the side set of a place
  OverlapPlan published_plan_;
  std::mutex mutex_;
  Leaf best_;
  bool late_ = false;
  SearchResult result_;
};

}  // namespace

SearchResult search(const SearchRequest& request, const SearchProgress& progress) {
  return Search(request, progress).run();
}

std::string searched_plan_text(const SearchRequest& request, const SearchResult& result) {
  const Setup setup = load_setup(request.scenario, request.assignments);
  const Scenario& s = setup.scenario;
  std::string head = fmt::format(
      "# Found by `moeline search` for {} on {} ({}), {}, EP{}, {} communication SMs: {:.1f} us a layer, where the "
      "plan\n"
      "# of the scenario takes {:.1f} and none can take less than {:.1f}. {}\n",
      s.model, s.hardware, s.kernels, s.schedule, s.parallelism.ep, result.num_sms, result.best_us, result.published_us,
      result.bound_us, result.proven ? "Nothing searched for is faster." : "Not every order was tried.");
  return plan_text(result.plan, searched_contents(setup), head);
}

}  // namespace moeline
