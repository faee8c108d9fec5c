#include "experiments/page/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <unordered_map>

#include "base/text.hpp"

namespace moeline {
namespace {

using Points = std::vector<const std::vector<std::string>*>;

// Values in the order in which points first have them: keys that change together have equal `at`.
PageAxis axis_of_key(const std::string& key, std::size_t column, const Points& points) {
  PageAxis axis{.label = key, .values = {}, .numbers = {}, .at = {}};
  std::unordered_map<std::string, std::size_t> place;
  for (const std::vector<std::string>* point : points) {
    const std::string& value = (*point)[column];
    const auto [found, added] = place.emplace(value, axis.values.size());
    if (added) axis.values.push_back(value);
    axis.at.push_back(found->second);
  }
  for (const std::string& value : axis.values) axis.numbers.push_back(as_number<double>(value).value_or(NAN));
  const bool names = std::any_of(axis.numbers.begin(), axis.numbers.end(), [](double n) { return !std::isfinite(n); });
  if (names) axis.numbers.clear();
  return axis;
}

void unite(PageAxis& axis, const PageAxis& other) {
  axis.label += " / " + other.label;
  for (std::size_t i = 0; i < axis.values.size(); ++i) axis.values[i] += " / " + other.values[i];
}

void sort_by_number(PageAxis& axis) {
  if (axis.numbers.empty()) return;
  std::vector<std::size_t> order(axis.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return axis.numbers[a] < axis.numbers[b]; });
  PageAxis sorted{.label = axis.label, .values = {}, .numbers = {}, .at = {}};
  std::vector<std::size_t> place(order.size());
  for (const std::size_t old : order) {
    place[old] = sorted.values.size();
    sorted.values.push_back(axis.values[old]);
    sorted.numbers.push_back(axis.numbers[old]);
  }
  for (const std::size_t old : axis.at) sorted.at.push_back(place[old]);
  axis = std::move(sorted);
}

// Every value of `axis` goes with one value of `follower`.
bool determines(const PageAxis& axis, const PageAxis& follower) {
  std::vector<std::size_t> with(axis.values.size(), SIZE_MAX);
  for (std::size_t point = 0; point < axis.at.size(); ++point) {
    std::size_t& value = with[axis.at[point]];
    if (value != SIZE_MAX && value != follower.at[point]) return false;
    value = follower.at[point];
  }
  return follower.values.size() < axis.values.size();
}

// "redundant_experts follows ep: 0 at 64, 128; 32 at 144".
std::string how_it_follows(const PageAxis& axis, const PageAxis& follower) {
  std::vector<std::vector<std::string>> at(follower.values.size());
  std::vector<bool> seen(axis.values.size(), false);
  for (std::size_t point = 0; point < axis.at.size(); ++point) {
    if (seen[axis.at[point]]) continue;
    seen[axis.at[point]] = true;
    at[follower.at[point]].push_back(axis.values[axis.at[point]]);
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < at.size(); ++i) {
    parts.push_back(fmt::format("{} at {}", follower.values[i], fmt::join(at[i], ", ")));
  }
  return fmt::format("{} follows {}: {}", follower.label, axis.label, fmt::join(parts, "; "));
}

// What another axis determines is nothing to choose.
void drop_followers(AxesOfSettings& result) {
  for (std::size_t i = result.axes.size(); i-- > 0;) {
    const PageAxis& follower = result.axes[i];
    const auto axis = std::find_if(result.axes.begin(), result.axes.end(),
                                   [&](const PageAxis& other) { return determines(other, follower); });
    if (axis == result.axes.end()) continue;
    result.notes.push_back(how_it_follows(*axis, follower));
    result.axes.erase(result.axes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

AxesOfSettings axes_of_settings(const std::vector<std::string>& keys, const Points& points) {
  AxesOfSettings result;
  std::vector<PageAxis>& axes = result.axes;
  std::vector<std::vector<std::string>> first_values;  // of each axis, by its first key
  for (std::size_t column = 0; column < keys.size(); ++column) {
    PageAxis axis = axis_of_key(keys[column], column, points);
    const auto with = std::find_if(axes.begin(), axes.end(), [&](const PageAxis& a) { return a.at == axis.at; });
    if (axis.values.size() < 2) {
      if (!axis.values.empty()) result.notes.push_back(fmt::format("{} = {}", keys[column], axis.values.front()));
    } else if (with == axes.end()) {
      first_values.push_back(axis.values);
      axes.push_back(std::move(axis));
    } else if (first_values[static_cast<std::size_t>(with - axes.begin())] == axis.values) {
      result.notes.push_back(fmt::format("{} = {}", keys[column], with->label));
    } else {
      unite(*with, axis);
    }
  }
  drop_followers(result);
  for (PageAxis& axis : axes) sort_by_number(axis);
  return result;
}

}  // namespace moeline
