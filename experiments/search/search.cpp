#include "experiments/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <tuple>

#include "base/parallel.hpp"
#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/search/orders_below.hpp"
#include "experiments/search/unit_times.hpp"

namespace moeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kEqual = 1e-4;  // a picosecond of a kernel, or a layer that still settles
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
// this one none but the GEMM is.
Program least_program(const Setup& setup, const OrderSpace& space) {
  if (setup.scenario.phase() == WorkloadPhase::train) return build_program(setup);
  return build_program(with_plan(setup, *plan_of(plain_order(space), space)));
}

Place place_of(const Variant& variant, bool orders) {
  Place place{.variant = &variant, .space = order_space(variant.setup)};
  place.own = order_of(place.space.plan, place.space);
  const Program program = least_program(variant.setup, place.space);
  const LayerRange layers = moe_layers(variant.setup);
  place.times = unit_times(program, place.space, layers);
  place.floor_us = std::max(least_layer_us(place.space, place.times), busiest_resource_us(program, layers));
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
  [[nodiscard]] double limit_us() const { return result_.us.best * (1 - kEqual); }

  // In parallel; noted in order, so that the answer is the same with any number of threads.
  void simulate(std::vector<Leaf>::iterator first, std::vector<Leaf>::iterator last) {
    parallel_for(static_cast<std::size_t>(last - first), request_.workers, [&](std::size_t i) {
      Leaf& leaf = first[static_cast<std::ptrdiff_t>(i)];
      const double us = simulated_us(setup_of(leaf));
      // A few layers may take a little less than such layers do in the long run.
      leaf.us = us == kNever ? kNever : std::max(leaf.order.least_us, us);
    });
    for (auto leaf = first; leaf != last; ++leaf) note(*leaf);
  }

  void note(const Leaf& leaf) {
    if (leaf.us == kNever) return static_cast<void>(++result_.impossible);
    ++result_.evaluated;
    if (leaf.us < result_.us.published * (1 - kEqual)) ++result_.faster;
    Leaf& best = best_of_[static_cast<std::size_t>(leaf.place - places_.data())];
    if (leaf.us < best.us) best = leaf;
    result_.us.best = std::min(result_.us.best, leaf.us);
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
    while (left != leaves.end() && result_.evaluated < request_.most && in_time()) {
      const auto worth = [&](const Leaf& leaf) { return leaf.order.least_us < limit_us(); };
      const auto first = std::find_if(left, leaves.end(), worth);
      left = std::find_if_not(first, leaves.end() - first > kRound ? first + kRound : leaves.end(), worth);
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
      if (!in_time()) {
        leave_out(place.floor_us, place.orders - 1);
        continue;
      }
      OrdersBelow below = orders_below(limit_us(), place.space, place.lanes, place.times, request_.workers);
      result_.impossible += below.impossible;
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
    const std::vector<Leaf> best = best_variants();
    if (best.empty()) throw SpecError(request_.scenario.string(), 0, "none of the plans searched for can run");
    choose(best);
    result_.plan = searched_plan(result_.best);
    result_.text = plan_text(result_.plan, searched_contents(result_.best), head());
  }

  // The best plan of each variant that has one, the fastest first, and few of them.
  [[nodiscard]] std::vector<Leaf> best_variants() const {
    constexpr std::size_t kVariants = 8;
    std::vector<Leaf> best;
    std::copy_if(best_of_.begin(), best_of_.end(), std::back_inserter(best),
                 [](const Leaf& leaf) { return leaf.us < kNever; });
    std::stable_sort(best.begin(), best.end(), [](const Leaf& a, const Leaf& b) { return a.us < b.us; });
    if (best.size() > kVariants) best.resize(kVariants);
    return best;
  }

  // The scenario's own where none is faster. Where it simulates all ranks, these decide.
  void choose(const std::vector<Leaf>& best) {
    const Setup asked = load_setup(request_.scenario, request_.assignments);
    std::vector<double> us;
    for (const Leaf& leaf : best) us.push_back(leaf.us);
    if (asked.every_rank) us = all_ranks_us(asked, best);
    const auto least = std::min_element(us.begin(), us.end());
    const double own_us = asked.every_rank ? result_.all_ranks_us->published : result_.us.published;
    const bool keeps = has_searched_plan(asked_.scenario.kind()) && *least >= own_us * (1 - kEqual);
    result_.chosen_us = result_.us.published;
    result_.best = asked_;
    if (!keeps) {
      const Leaf& leaf = best[static_cast<std::size_t>(least - us.begin())];
      result_.chosen_us = leaf.us;
      result_.best = setup_of(leaf);
      result_.changes = leaf.place->variant->changes;
    }
    if (asked.every_rank) result_.all_ranks_us->best = keeps ? own_us : *least;
  }

  [[nodiscard]] static Setup setup_of(const Leaf& leaf) {
    const Setup& setup = leaf.place->variant->setup;
    const bool is_own = leaf.order.order == leaf.place->own;
    return is_own ? setup : with_plan(setup, *plan_of(leaf.order.order, leaf.place->space));
  }

  std::vector<double> all_ranks_us(const Setup& asked, const std::vector<Leaf>& best) {
    result_.all_ranks_us = PlanTimes{.published = layer_us(run_scenario(asked))};
    std::vector<double> us(best.size());
    std::size_t done = 0;
    std::mutex mutex;
    parallel_for(best.size(), request_.workers, [&](std::size_t i) {
      std::vector<std::string> assignments = request_.assignments;
      const std::vector<std::string>& changes = best[i].place->variant->changes;
      assignments.insert(assignments.end(), changes.begin(), changes.end());
      us[i] = simulated_us(with_plan(load_setup(request_.scenario, assignments), *setup_of(best[i]).scenario.plan));
      const std::scoped_lock lock(mutex);
      progress_("plans with all ranks", ++done, best.size());
    });
    return us;
  }

  [[nodiscard]] std::string head() const {
    const Scenario& s = result_.best.scenario;
    return fmt::format(
        "# Found by `moeline search` for {} on {} ({}), {}, EP{}, {} communication SMs: {:.1f} us a layer, where the "
        "plan\n"
        "# of the scenario takes {:.1f} and none can take less than {:.1f}. {}\n",
        s.model, s.hardware, s.kernels, s.schedule, s.parallelism.ep, s.comm.num_sms, result_.chosen_us,
        result_.us.published, result_.bound_us,
        result_.exhaustive ? "Nothing searched for is faster." : "Not every order was tried.");
  }

  const SearchRequest& request_;
  const Progress& progress_;
  Clock::time_point begin_ = Clock::now();
  Setup asked_;
  Variants variants_;
  std::vector<Place> places_;
  std::vector<Leaf> best_of_;  ///< of each place
  double bound_us_ = kNever;   ///< of what was not tried
  SearchResult result_;
};

}  // namespace

SearchResult search(const SearchRequest& request, const Progress& progress) { return Search(request, progress).run(); }

}  // namespace moeline
