#include "experiments/search/orders_below.hpp"

#include <algorithm>
#include <numeric>

#include "base/parallel.hpp"

namespace moeline {
namespace {

using Steps = std::vector<std::size_t>;

// Two micro-batches on one stream.
bool merges(const OrderSpace& space) { return space.repeats && space.compute == space.steps.size(); }

// Orders of these steps. Of those that do not repeat nothing stands in front of what it needs; of others the first step
// stays where it is, as turns begin anywhere.
std::vector<Steps> stream_orders(const OrderSpace& space, std::size_t first, std::size_t count) {
  Steps order(count);
  std::iota(order.begin(), order.end(), first);
  const auto waits_for_later = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i + 1; j < count; ++j) {
        if (space.leads_to(order[j], order[i])) return true;
      }
    }
    return false;
  };
  std::vector<Steps> all;
  const auto begin = order.begin() + (space.repeats && count > 0 ? 1 : 0);
  do {
    if (space.repeats || !waits_for_later()) all.push_back(order);
  } while (std::next_permutation(begin, order.end()));
  return all;
}

// Of one micro-batch alone: its data are a ring, one layer around, so that it has few.
std::vector<Steps> orders_of(int micro_batch, const OrderSpace& space) {
  Steps steps;
  for (std::size_t step = 0; step < space.steps.size(); ++step) {
    if (space.micro_batch(step) == micro_batch) steps.push_back(step);
  }
  std::vector<Steps> all;
  do {
    if (can_be_planned({.compute = steps}, space)) all.push_back(steps);
  } while (std::next_permutation(steps.begin() + 1, steps.end()));
  return all;
}

std::vector<Steps> rotations_of(const std::vector<Steps>& orders) {
  std::vector<Steps> all;
  for (Steps order : orders) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      all.push_back(order);
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  }
  return all;
}

// Of merged lanes, all that begin alike.
class Branch {
 public:
  Branch(double us, const OrderSpace& space, const UnitTimes& times, const Lanes& lanes, const InTime& in_time)
      : us_(us), space_(space), times_(times), lanes_(lanes), in_time_(in_time) {
    // Data are between steps of the same micro-batch, so that how the two are merged changes no offset.
    PhaseOrder any{.compute = lanes.one};
    any.compute.insert(any.compute.end(), lanes.other.begin(), lanes.other.end());
    data_ = data_graph(space, times, offsets_of(any, space));
    first_.push_back(lanes.one.front());
  }

  std::vector<BoundedOrder> orders() && {
    follow(1, 0);
    return std::move(found_);
  }

 private:
  // Those in which so many of either lane come first.
  void follow(std::size_t one, std::size_t other) {
    const PartialOrder known{first_, {std::span(lanes_.one).subspan(one), std::span(lanes_.other).subspan(other)}};
    if (!in_time_() || takes_at_least(us_, known, data_, space_, times_)) return;
    if (first_.size() == space_.steps.size()) {
      PhaseOrder order{.compute = first_};
      const double least_us = least_layer_us(order, space_, times_);
      if (least_us < us_) found_.push_back({least_us, std::move(order)});
    }
    if (one < lanes_.one.size()) step(lanes_.one[one], one + 1, other);
    if (other < lanes_.other.size()) step(lanes_.other[other], one, other + 1);
  }

  void step(std::size_t next, std::size_t one, std::size_t other) {
    first_.push_back(next);
    follow(one, other);
    first_.pop_back();
  }

  double us_;
  const OrderSpace& space_;
  const UnitTimes& times_;
  const Lanes& lanes_;
  const InTime& in_time_;
  TurnGraph data_;
  Steps first_;
  std::vector<BoundedOrder> found_;
};

OrdersBelow merged_below(double us, const OrderSpace& space, const std::vector<Lanes>& lanes, const UnitTimes& times,
                         std::size_t workers, const InTime& in_time) {
  std::vector<std::vector<BoundedOrder>> found(lanes.size());
  parallel_for(lanes.size(), workers,
               [&](std::size_t i) { found[i] = Branch(us, space, times, lanes[i], in_time).orders(); });
  OrdersBelow below;
  for (std::vector<BoundedOrder>& orders : found) {
    std::move(orders.begin(), orders.end(), std::back_inserter(below.orders));
  }
  return below;
}

// Further ones wait for themselves.
std::vector<int> shifts_of(const OrderSpace& space) {
  const bool two_streams = space.compute < space.steps.size();
  return space.repeats && two_streams ? std::vector{0, -1, 1, -2, 2} : std::vector{0};
}

double binomial(std::size_t n, std::size_t k) {
  return k == 0 ? 1 : binomial(n - 1, k - 1) * static_cast<double>(n) / static_cast<double>(k);
}

}  // namespace

bool can_be_planned(const PhaseOrder& order, const OrderSpace& space) {
  return can_be_said(offsets_of(order, space)) && can_run(order, space);
}

std::vector<Lanes> lanes_of(const OrderSpace& space) {
  std::vector<Lanes> all;
  if (!merges(space)) return all;
  const std::vector<Steps> others = rotations_of(orders_of(1, space));
  for (const Steps& one : orders_of(0, space)) {
    for (const Steps& other : others) all.push_back({one, other});
  }
  return all;
}

double order_count(const OrderSpace& space, const std::vector<Lanes>& lanes) {
  if (merges(space)) {
    return lanes.empty() ? 0
                         : static_cast<double>(lanes.size()) * binomial(space.steps.size() - 1, lanes[0].other.size());
  }
  const std::size_t transfers = space.steps.size() - space.compute;
  return static_cast<double>(shifts_of(space).size()) *
         static_cast<double>(stream_orders(space, 0, space.compute).size() *
                             stream_orders(space, space.compute, transfers).size());
}

std::vector<PhaseOrder> all_orders(const OrderSpace& space) {
  const std::size_t transfers = space.steps.size() - space.compute;
  const auto communications = stream_orders(space, space.compute, transfers);
  std::vector<PhaseOrder> orders;
  for (const Steps& compute : stream_orders(space, 0, space.compute)) {
    for (const Steps& communication : communications) {
      for (const int shift : shifts_of(space)) {
        orders.push_back({compute, communication, shift});
      }
    }
  }
  return orders;
}

OrdersBelow orders_below(double us, const OrderSpace& space, const std::vector<Lanes>& lanes, const UnitTimes& times,
                         std::size_t workers, const InTime& in_time) {
  OrdersBelow below;
  if (merges(space)) {
    below = merged_below(us, space, lanes, times, workers, in_time);
  } else {
    for (PhaseOrder& order : all_orders(space)) {
      if (!in_time()) break;
      if (!can_be_planned(order, space)) {
        ++below.impossible;
        continue;
      }
      const double least_us = least_layer_us(order, space, times);
      if (least_us < us) below.orders.push_back({least_us, std::move(order)});
    }
  }
  below.complete = in_time();
  std::sort(below.orders.begin(), below.orders.end());
  return below;
}

}  // namespace moeline
