// Where a family of kernels was measured, dimension by dimension.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

class Spec;

/// Those that a family has, with their values.
using Dimensions = std::map<Dimension, double>;

/// `sms`: that it is launched on.
[[nodiscard]] Dimensions dimensions_of(const Operator& op, int sms);
/// By which sizes a serving stack's tables tell it: those of the linear layer or layer of experts that it is part of;
/// of DeepEP's transfers tokens and the model's sizes instead of bytes.
[[nodiscard]] Dimensions measured_dimensions_of(const Operator& op, int sms);

struct Bounds {
  double low = 0, high = 0;
};

/// Between which values of each dimension the measurements of a family lie. A box and not their hull: it fits into a
/// line, and each side can be named where it is crossed. So a corner of it can be inside and yet far from every
/// measurement: the most rows and the widest n, where wide GEMMs were measured with few rows only.
using MeasuredRange = std::map<Dimension, Bounds>;

void extend(MeasuredRange& range, const Dimensions& measured);

/// One value of each dimension. Not of a family without dimensions: nothing tells its kernels apart.
[[nodiscard]] bool is_point(const MeasuredRange& range);

/// A dimension in which a kernel lies outside of what was measured.
struct Outside {
  Dimension dimension{};
  double value = 0;
  double bound = 0;  ///< the end of the range that it is beyond; NaN where the family was measured without it

  [[nodiscard]] bool below() const { return value < bound; }
};

/// Values within 1 % count as equal, to the noise of measurement; numbers of SMs and ranks are what they are.
[[nodiscard]] std::vector<Outside> outside(const MeasuredRange& range, const Dimensions& dimensions);

/// "m 16 < 64"
[[nodiscard]] std::string to_text(const Outside& outside);

/// A dimension's value as a person reads it.
[[nodiscard]] std::string short_number(double value);

/// "{m: [16, 8192], n: [128, 7168]}", as it stands in a profile; empty of an empty one.
[[nodiscard]] std::string to_yaml(const MeasuredRange& range);
/// Reads it back. Throws SpecError (file, line, key).
[[nodiscard]] MeasuredRange read_measured_range(const Spec& spec);

}  // namespace moeline
