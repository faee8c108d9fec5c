#include "experiments/page/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace moeline {
namespace {

using Points = std::vector<const std::vector<std::string>*>;

double number_of(const std::string& text) {
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc{} && end == text.data() + text.size() ? number : NAN;
}

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
  for (const std::string& value : axis.values) axis.numbers.push_back(number_of(value));
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
  for (PageAxis& axis : axes) sort_by_number(axis);
  return result;
}

}  // namespace moeline
