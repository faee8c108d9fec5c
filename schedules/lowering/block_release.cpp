#include "schedules/lowering/block_release.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

constexpr double kTile = 128;
constexpr int kParts = 16;  // finer ones change nothing that one could see

}  // namespace

int releases_of(double experts, double columns, int sms) {
  const double waves = std::ceil(experts * std::ceil(columns / kTile) / sms);
  return static_cast<int>(std::clamp(std::min(experts, waves), 1.0, 1.0 * kParts));
}

int sends_of(int releases) { return (kParts + releases - 1) / releases * releases; }

std::vector<Time> parts_of(double whole_us, double part_us, int parts, Once once) {
  const Time whole = from_us(whole_us);
  if (parts == 1) return {whole};
  const Time other = std::max(Time::zero(), whole - from_us(part_us)) / (parts - 1);  // rounded down
  std::vector<Time> times(static_cast<std::size_t>(parts), other);
  (once == Once::first ? times.front() : times.back()) = whole - other * (parts - 1);
  return times;
}

}  // namespace moeline
