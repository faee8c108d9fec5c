#include "hardware/measured_range.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "curves/gemm_tiles.hpp"
#include "moe/fused_experts.hpp"
#include "moe/small_kernels.hpp"

namespace moeline {
namespace {

double bytes_of(const Operator& op) {
  if (is_collective(op.family)) return op.traffic.message_bytes;
  return is_all_to_all(op.family) ? op.traffic.copied_bytes : op.bytes;
}

double value_of(Dimension dimension, const Operator& op) {
  switch (dimension) {
    case Dimension::m:
      return tile_per_group(op.family) ? op.m / op.groups : op.m;
    case Dimension::n:
      return op.n;
    case Dimension::k:
      return op.k;
    case Dimension::groups:
      return op.groups;
    case Dimension::batch:
      return op.attention.batch;
    case Dimension::kv_heads:
      return op.attention.kv_heads;
    case Dimension::heads_per_kv:
      return op.attention.heads / std::max(op.attention.kv_heads, 1.0);
    case Dimension::rows:
      return value_of(Dimension::heads_per_kv, op) * op.attention.query_len;
    case Dimension::query_len:
      return op.attention.query_len;
    case Dimension::kv_len:
      return op.attention.kv_len;
    case Dimension::cached:
      return op.attention.kv_len - op.attention.query_len;
    case Dimension::window:
      return op.attention.window;
    case Dimension::qk_dim:
      return op.attention.qk_dim;
    case Dimension::v_dim:
      return op.attention.v_dim;
    case Dimension::bytes:
      return bytes_of(op);
    case Dimension::items:
      return op.items;
    case Dimension::ranks:
      return is_collective(op.family) && op.traffic.members > 0 ? op.traffic.members : op.traffic.ranks;
    case Dimension::tokens:
      return op.traffic.tokens;
    case Dimension::hidden:
      return op.traffic.hidden;
    case Dimension::top_k:
      return op.traffic.top_k;
    case Dimension::experts:
      return op.traffic.experts;
    case Dimension::sms:
      break;
  }
  moeline::check_failed("a dimension of operators", __FILE__, __LINE__, name_of(dimension));
}

// Of others the time does not depend on the SMs: few blocks, or the wire.
bool takes_all_sms(Family family) {
  return is_gemm(family) || is_attention(family) || is_memory_bound(family) || row_of(family).is_resident;
}

constexpr double kWidestOutput = 65536;

double slack(Dimension dimension) { return dimension == Dimension::sms || dimension == Dimension::ranks ? 0 : 0.01; }

bool is_above(double value, double high, Dimension dimension) { return value > high * (1 + slack(dimension)); }
bool is_below(double value, double low, Dimension dimension) { return value < low * (1 - slack(dimension)); }

}  // namespace

Dimensions dimensions_of(const Operator& op, int sms) {
  Dimensions values;
  for (const Dimension dimension : row_of(op.family).dimensions) values[dimension] = value_of(dimension, op);
  if (takes_all_sms(op.family)) values[Dimension::sms] = sms;
  return values;
}

Dimensions measured_dimensions_of(const Operator& op, int sms) {
  if (op.experts.role != ExpertRole::none) {
    const ExpertShape& e = op.experts;
    const ExpertRows load = expert_rows(e);
    return {{Dimension::m, std::max(1.0, load.each)},  // of no row it is what a start takes, which all have
            {Dimension::n, e.width},
            {Dimension::k, e.hidden},
            {Dimension::groups, load.local},
            {Dimension::sms, sms}};
  }
  if (op.measured_as.starts_with("linear")) {
    // An output wider than any that was measured is several beside each other, each of which fills the machine.
    const double beside = std::ceil(op.n / kWidestOutput);
    return {{Dimension::m, op.m}, {Dimension::n, op.n / beside}, {Dimension::k, op.k}, {Dimension::sms, sms}};
  }
  if (is_memory_bound(op.family) && op.attention.kv_len > 0) {  // a choice among keys
    Dimensions values{{Dimension::sms, sms}};
    for (const Dimension dimension : {Dimension::n, Dimension::batch, Dimension::query_len, Dimension::kv_len}) {
      values[dimension] = value_of(dimension, op);
    }
    return values;
  }
  if (is_small_kernel(op)) return {};  // a floor holds whatever the size
  Dimensions values = dimensions_of(op, sms);
  if (!is_all_to_all(op.family) || op.measured_as.empty()) return values;
  values.erase(Dimension::bytes);  // which tokens, hidden and top_k make
  for (const Dimension dimension : {Dimension::tokens, Dimension::hidden, Dimension::top_k, Dimension::experts}) {
    values[dimension] = value_of(dimension, op);
  }
  return values;
}

void extend(MeasuredRange& range, const Dimensions& measured) {
  for (const auto& [dimension, value] : measured) {
    Bounds& interval = range.try_emplace(dimension, Bounds{value, value}).first->second;
    interval.low = std::min(interval.low, value);
    interval.high = std::max(interval.high, value);
  }
}

bool is_point(const MeasuredRange& range) {
  for (const auto& [dimension, interval] : range) {
    if (is_above(interval.high, interval.low, dimension)) return false;
  }
  return !range.empty();
}

std::vector<Outside> outside(const MeasuredRange& range, const Dimensions& dimensions) {
  std::vector<Outside> crossed;
  for (const auto& [dimension, value] : dimensions) {
    const auto found = range.find(dimension);
    if (found == range.end()) {
      crossed.push_back({dimension, value, std::numeric_limits<double>::quiet_NaN()});
    } else if (is_below(value, found->second.low, dimension)) {
      crossed.push_back({dimension, value, found->second.low});
    } else if (is_above(value, found->second.high, dimension)) {
      crossed.push_back({dimension, value, found->second.high});
    }
  }
  return crossed;
}

std::string to_text(const Outside& outside) {
  if (std::isnan(outside.bound)) return name_of(outside.dimension) + " not measured";
  return fmt::format("{} {} {} {}", name_of(outside.dimension), short_number(outside.value),
                     outside.below() ? '<' : '>', short_number(outside.bound));
}

std::string short_number(double value) {
  constexpr double kLongest = 1e6;  // whole number that is written in full
  const bool in_full = value < kLongest && value == std::floor(value);
  return in_full ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string to_yaml(const MeasuredRange& range) {
  std::vector<std::string> intervals;
  for (const auto& [dimension, bounds] : range) {
    intervals.push_back(fmt::format("{}: [{:.8g}, {:.8g}]", name_of(dimension), bounds.low, bounds.high));
  }
  return intervals.empty() ? "" : fmt::format("{{{}}}", fmt::join(intervals, ", "));
}

MeasuredRange read_measured_range(const Spec& spec) {
  spec.expect(dimension_names());
  MeasuredRange range;
  for (std::size_t i = 0; i < dimension_names().size(); ++i) {
    const std::string& name = dimension_names()[i];
    if (!spec.has(name)) continue;
    const std::vector<double> ends = spec.numbers(name, 0, 1e30);
    if (ends.size() != 2) throw spec.error(name, "must be [LEAST, MOST]");
    if (ends[0] > ends[1]) {
      throw spec.error(name, fmt::format("must be [LEAST, MOST]: {} is above {}", ends[0], ends[1]));
    }
    range[static_cast<Dimension>(i)] = {ends[0], ends[1]};
  }
  return range;
}

}  // namespace moeline
