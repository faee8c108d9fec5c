#include "experiments/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>

#include "base/parallel.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/samples.hpp"
#include "experiments/search/order_space.hpp"
#include "experiments/search/orders_below.hpp"
#include "experiments/search/turn_graph.hpp"

namespace moeline {
namespace {

constexpr double kNotRun = std::numeric_limits<double>::infinity();
constexpr double kEqualTimes = 1e-4;
constexpr int kSamples = 16;

struct Whole {
  double run_ms = kNotRun, layer_us = kNotRun;
};

Whole whole(const Setup& setup) {
  Setup few = setup;
  few.scenario.samples = std::min(few.scenario.samples, kSamples);
  const auto count = static_cast<std::size_t>(few.scenario.samples);
  std::vector<double> ms(count), us(count);
  const auto note = [&](std::size_t i, const Run& run) {
    ms[i] = to_us(run.metrics.span) / 1e3;
    us[i] = layer_us(run);
  };
  count > 1 ? for_each_sample(few, note) : note(0, run_scenario(few));
  return {band_of(ms).median, band_of(us).median};
}

// Never, where the streams wait for each other after all.
Whole whole_if_it_runs(const Setup& setup) {
  try {
    return whole(setup);
  } catch (const SpecError&) {
    return {};
  }
}

double time_of(const Whole& whole, const Setup& setup) {
  return setup.scenario.phase() == WorkloadPhase::train ? whole.layer_us : whole.run_ms;
}

struct Timed {
  const PlanCandidate* candidate = nullptr;
  Whole whole{};
};

// `setup_of`: of a candidate, as it is to be run.
template <class SetupOf>
Timed fastest(const std::vector<const PlanCandidate*>& candidates, std::size_t workers, const SetupOf& setup_of,
              const Progress& progress) {
  std::vector<Timed> timed(candidates.size());
  std::size_t done = 0;
  std::mutex mutex;
  parallel_for(candidates.size(), workers, [&](std::size_t i) {
    timed[i] = {candidates[i], whole_if_it_runs(setup_of(*candidates[i]))};
    const std::scoped_lock lock(mutex);
    progress("whole runs", ++done, candidates.size());
  });
  return *std::min_element(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    return time_of(a.whole, a.candidate->setup) < time_of(b.whole, b.candidate->setup);
  });
}

Setup with_all_ranks(const VariantRequest& request, const PlanCandidate& candidate) {
  std::vector<std::string> assignments = request.assignments;
  assignments.insert(assignments.end(), candidate.changes.begin(), candidate.changes.end());
  return with_plan(load_setup(request.scenario, assignments), searched_plan(candidate.setup));
}

}  // namespace

Choice choose(const VariantRequest& request, std::size_t workers, const PlanCandidate& own,
              const std::vector<std::vector<PlanCandidate>>& by_variant, const Progress& progress) {
  const Setup asked = load_setup(request.scenario, request.assignments);
  const auto quick = [](const PlanCandidate& candidate) { return candidate.setup; };
  const auto as_asked = [&](const PlanCandidate& candidate) {
    return asked.every_rank ? with_all_ranks(request, candidate) : candidate.setup;
  };
  std::vector<const PlanCandidate*> best;
  for (const std::vector<PlanCandidate>& candidates : by_variant) {
    std::vector<const PlanCandidate*> all;
    for (const PlanCandidate& candidate : candidates) all.push_back(&candidate);
    best.push_back(fastest(all, workers, quick, progress).candidate);
  }
  const bool samples = asked.every_rank && asked.scenario.samples > 1;  // on all cores, one after the other
  const Timed chosen = fastest(best, samples ? 1 : workers, as_asked, progress);
  const Whole published = whole(asked.every_rank ? asked : own.setup);
  const bool keeps = has_searched_plan(own.setup.scenario.kind()) &&
                     time_of(chosen.whole, own.setup) >= time_of(published, own.setup) * (1 - kEqualTimes);
  const Whole& whole_of_best = keeps ? published : chosen.whole;
  Choice choice{.best = keeps ? own : *chosen.candidate, .run_ms = {published.run_ms, whole_of_best.run_ms}};
  if (!asked.every_rank) return choice;
  choice.all_ranks_us = PlanTimes{published.layer_us, whole_of_best.layer_us};
  choice.samples = std::min(asked.scenario.samples, kSamples);
  return choice;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kEqualLayers = 1e-4;  // within which layers of a simulated step repeat
using Clock = std::chrono::steady_clock;

// A variant, for which kernels take what they take.
struct Place {
  const Variant* variant = nullptr;
  OrderSpace space;
  PhaseOrder own{};  ///< the plan's
  UnitTimes times{};
  double floor_us = 0;
  std::vector<Lanes> lanes{};
  double orders = 1;
};

struct Leaf {
  const Place* place = nullptr;
  BoundedOrder order;
  std::size_t turn = 0;  ///< in which it is tried: so that no variant waits for all of another's orders
  double us = kNever;
};

// Infinite where the streams wait for each other after all.
double simulated_us(const Setup& setup) {
  try {
    return layer_us(run_scenario(setup));
  } catch (const SpecError&) {
    return kNever;
  }
}

// Kernels beside a combine that is released block by block have fewer SMs, and which those are goes by the order: in
// one of these a kernel has none beside it, in another one that can have any has.
std::vector<Setup> priced_setups(const Setup& setup, const OrderSpace& space) {
  std::vector<Setup> setups = {setup};
  if (setup.scenario.phase() == WorkloadPhase::train || !setup.scenario.comm.releases()) return setups;
  for (const PhaseOrder& order : {plain_order(space), late_order(space)}) {
    if (can_be_planned(order, space)) setups.push_back(with_plan(setup, *plan_of(order, space)));
  }
  return setups;
}

Place place_of(const Variant& variant, bool orders) {
  Place place{.variant = &variant, .space = order_space(variant.setup)};
  place.own = order_of(place.space.plan, place.space);
  const LayerRange layers = moe_layers(variant.setup);
  double busiest_us = kNever;
  for (const Setup& setup : priced_setups(variant.setup, place.space)) {
    const Program program = build_program(setup);
    const UnitTimes times = unit_times(program, place.space, layers);
    place.times = place.times.empty() ? times : least(place.times, times);
    busiest_us = std::min(busiest_us, busiest_resource_us(program, layers));
  }
  place.floor_us = std::max(least_layer_us(place.space, place.times), busiest_us);
  if (!orders) return place;
  place.lanes = lanes_of(place.space);
  place.orders = order_count(place.space, place.lanes);
  return place;
}

class Search {
 public:
  Search(const SearchRequest& request, const Progress& progress)
      : request_(request), progress_(progress), asked_(quick_setup(request)), variants_(variants_of(request)) {
    result_.us.published = layer_us(run_scenario(asked_));
    result_.us.best = has_searched_plan(asked_.scenario.kind()) ? result_.us.published : kNever;
    result_.refused = variants_.refused;
    result_.floor_us = kNever;
    for (const Variant& variant : variants_.variants) add(variant);
    if (places_.empty()) throw SpecError(request.scenario.string(), 0, result_.refused.front().why);
  }

  SearchResult run() && {
    try_own_orders();
    if (request_.orders) try_orders();
    finish();
    return std::move(result_);
  }

 private:
  // What the variant does not allow, more pieces than experts, is told.
  void add(const Variant& variant) {
    try {
      places_.push_back(place_of(variant, request_.orders));
    } catch (const SpecError& error) {
      if (variants_.variants.size() == 1) throw;
      add_refused(error, result_.refused);
      return;
    }
    result_.plans += places_.back().orders;
    result_.floor_us = std::min(result_.floor_us, places_.back().floor_us);
  }

  [[nodiscard]] bool in_time() const {
    return request_.seconds == 0 || std::chrono::duration<double>(Clock::now() - begin_).count() < request_.seconds;
  }

  // What is not faster than that is no better.
  [[nodiscard]] double limit_us() const { return result_.us.best * (1 - kEqualLayers); }

  // In parallel; noted in order, so that the answer is the same with any number of threads.
  void simulate(std::vector<Leaf>::iterator first, std::vector<Leaf>::iterator last) {
    parallel_for(static_cast<std::size_t>(last - first), request_.workers, [&](std::size_t i) {
      Leaf& leaf = first[static_cast<std::ptrdiff_t>(i)];
      leaf.us = simulated_us(setup_of(leaf));
    });
    for (auto leaf = first; leaf != last; ++leaf) note(*leaf);
  }

  void note(const Leaf& leaf) {
    // One's own order is counted again where all are gone through.
    const bool counted_later = request_.orders && leaf.order.order == leaf.place->own;
    if (leaf.us == kNever) return static_cast<void>(result_.impossible += counted_later ? 0 : 1);
    ++result_.evaluated;
    if (leaf.us < result_.us.published * (1 - kEqualLayers)) ++result_.faster;
    keep(leaf, best_of_[static_cast<std::size_t>(leaf.place - places_.data())]);
    result_.us.best = std::min(result_.us.best, leaf.us);
  }

  static void keep(const Leaf& leaf, std::vector<Leaf>& best) {
    constexpr std::size_t kKept = 8;
    const auto is_slower = [&](const Leaf& other) { return leaf.us < other.us; };
    best.insert(std::find_if(best.begin(), best.end(), is_slower), leaf);
    if (best.size() > kKept) best.pop_back();
  }

  // The plan of each variant as it is.
  void try_own_orders() {
    best_of_.resize(places_.size());
    std::vector<Leaf> leaves;
    for (const Place& place : places_) leaves.push_back({&place, {place.floor_us, place.own}});
    simulate(leaves.begin(), leaves.end());
  }

  // Those that may be faster, the most promising first.
  void try_orders() {
    std::vector<Leaf> leaves = promising();
    std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
      return std::tie(a.turn, a.order.least_us, a.place, a.order.order) <
             std::tie(b.turn, b.order.least_us, b.place, b.order.order);
    });
    constexpr std::ptrdiff_t kRound = 32;
    auto left = leaves.begin();
    const std::size_t own = result_.evaluated;
    while (left != leaves.end() && result_.evaluated - own < request_.most && in_time()) {
      const auto most = std::min(kRound, static_cast<std::ptrdiff_t>(request_.most - (result_.evaluated - own)));
      const auto worth = [&](const Leaf& leaf) { return leaf.order.least_us < limit_us(); };
      const auto first = std::find_if(left, leaves.end(), worth);
      left = std::find_if_not(first, leaves.end() - first > most ? first + most : leaves.end(), worth);
      simulate(first, left);
      progress_("plans", static_cast<std::size_t>(left - leaves.begin()), leaves.size());
    }
    for (; left != leaves.end(); ++left) {
      if (left->order.least_us < limit_us()) leave_out(left->order.least_us, 1);
    }
  }

  // Plans that might have been faster, and are not tried.
  void leave_out(double least_us, double plans) {
    bound_us_ = std::min(bound_us_, least_us);
    result_.left_out += plans;
  }

  std::vector<Leaf> promising() {
    constexpr std::size_t kTurn = 32;
    std::vector<Leaf> leaves;
    for (const Place& place : places_) {
      if (place.floor_us >= limit_us()) continue;
      OrdersBelow below =
          orders_below(limit_us(), place.space, place.lanes, place.times, request_.workers, [&] { return in_time(); });
      result_.impossible += below.impossible;
      if (!below.complete) {
        leave_out(place.floor_us, place.orders - 1 - below.impossible);
        continue;
      }
      std::size_t number = 0;
      for (BoundedOrder& order : below.orders) {
        order.least_us = std::max(order.least_us, place.floor_us);
        if (order.order != place.own) leaves.push_back({&place, std::move(order), number++ / kTurn});
      }
      progress_("variants", static_cast<std::size_t>(&place - places_.data()) + 1, places_.size());
    }
    return leaves;
  }

  void finish() {
    result_.bound_us = std::min(bound_us_, result_.us.best);
    result_.exhaustive = result_.left_out == 0;
    result_.pruned = result_.plans - static_cast<double>(result_.evaluated) - result_.impossible - result_.left_out;
    Choice choice = choose(request_, request_.workers, {asked_, {}, result_.us.published}, best_variants(), progress_);
    result_.best = std::move(choice.best.setup);
    result_.changes = std::move(choice.best.changes);
    result_.chosen_us = choice.best.us;
    result_.run_ms = choice.run_ms;
    result_.all_ranks_us = choice.all_ranks_us;
    result_.samples = choice.samples;
    result_.plan = searched_plan(result_.best);
    result_.text = plan_text(result_.plan, searched_contents(result_.best), head());
  }

  // The fastest variants of each schedule and of all, each with its fastest plans.
  [[nodiscard]] std::vector<std::vector<PlanCandidate>> best_variants() const {
    constexpr std::size_t kVariants = 8;
    std::vector<const std::vector<Leaf>*> best;
    for (const std::vector<Leaf>& leaves : best_of_) {
      if (!leaves.empty()) best.push_back(&leaves);
    }
    std::stable_sort(best.begin(), best.end(), [](const auto* a, const auto* b) { return (*a)[0].us < (*b)[0].us; });
    std::set<std::string> schedules;
    // One rank that stands for all does not know what each kind of schedule waits: the best of each is there.
    std::stable_partition(best.begin(), best.end(), [&](const std::vector<Leaf>* leaves) {
      return schedules.insert((*leaves)[0].place->variant->setup.scenario.schedule).second;
    });
    if (best.size() > kVariants) best.resize(kVariants);
    if (best.empty()) throw SpecError(request_.scenario.string(), 0, "none of the plans searched for can run");
    std::vector<std::vector<PlanCandidate>> candidates;
    for (const std::vector<Leaf>* leaves : best) {
      std::vector<PlanCandidate>& of_variant = candidates.emplace_back();
      for (const Leaf& leaf : *leaves) of_variant.push_back({setup_of(leaf), leaf.place->variant->changes, leaf.us});
    }
    return candidates;
  }

  [[nodiscard]] static Setup setup_of(const Leaf& leaf) {
    const Setup& setup = leaf.place->variant->setup;
    const bool is_own = leaf.order.order == leaf.place->own;
    return is_own ? setup : with_plan(setup, *plan_of(leaf.order.order, leaf.place->space));
  }

  [[nodiscard]] std::string head() const {
    const Scenario& s = result_.best.scenario;
    const std::string sms = result_.plan.sms.empty() ? fmt::format(", {} communication SMs", s.comm.num_sms) : "";
    return fmt::format(
        "# Found by `moeline search` for {} on {} ({}), {}, EP{}{}: {:.1f} us a layer, where the plan\n"
        "# of the scenario takes {:.1f} and none can take less than {:.1f}. {}\n",
        s.model, s.hardware, s.kernels, s.schedule, s.parallelism.ep, sms, result_.chosen_us, result_.us.published,
        result_.bound_us, result_.exhaustive ? "Nothing searched for is faster." : "Not every order was tried.");
  }

  const SearchRequest& request_;
  const Progress& progress_;
  Clock::time_point begin_ = Clock::now();
  Setup asked_;
  Variants variants_;
  std::vector<Place> places_;
  std::vector<std::vector<Leaf>> best_of_;  ///< of each place, the fastest first
  double bound_us_ = kNever;                ///< of what was not tried
  SearchResult result_;
};

}  // namespace

SearchResult search(const SearchRequest& request, const Progress& progress) { return Search(request, progress).run(); }

}  // namespace moeline
