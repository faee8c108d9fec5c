#include "calib/fit/observation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <utility>

namespace moeline {

Observation timed(const CsvTable& table, std::size_t row, const Operator& op, int sms, double us, Curve curve) {
  Observation o;
  o.family = name_of(op.family);
  o.measured_us = us;
  o.curves = {std::move(curve)};
  o.dimensions = dimensions_of(op, sms);
  o.where = fmt::format("{}:{} {}", table.stem(), table.line(row), op.name);
  o.noise = Noise::timed;
  return o;
}

double evaluate(const Observation& observation, const Constants& constants) {
  double us = 0;
  for (const Curve& curve : observation.curves) us += evaluate(curve, constants).us;
  return us;
}

bool is_for(const std::string& kernel_set, const CsvTable& table, std::size_t row) {
  std::istringstream names(table.text(row, "kernels"));
  return std::find(std::istream_iterator<std::string>(names), {}, kernel_set) != std::istream_iterator<std::string>();
}

void give(const Constants& constants, Curve& curve) {
  const auto known = [&](const Term& term) { return !std::isnan(constants[static_cast<std::size_t>(term.constant)]); };
  for (const Term& term : curve.always) {
    if (known(term)) curve.fixed_us += constants[static_cast<std::size_t>(term.constant)] * term.feature;
  }
  std::erase_if(curve.always, known);
}

void keep_branch(Curve& curve, std::string_view bound) {
  std::erase_if(curve.branches, [&](const Branch& branch) { return branch.bound != bound; });
}

}  // namespace moeline
