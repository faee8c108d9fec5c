#include "calib/fit/observation.hpp"

#include <fmt/format.h>

#include <utility>

namespace moeline {

Observation timed(const CsvTable& table, std::size_t row, const Operator& op, double us, Curve curve) {
  Observation o;
  o.family = name_of(op.family);
  o.measured_us = us;
  o.curve = std::move(curve);
  o.size = size_of(op);
  o.where = fmt::format("{}:{} {}", table.stem(), table.line(row), op.name);
  o.ranks = op.traffic.ranks;
  o.rows = static_cast<int>(shared_rows(op));
  o.noise = Noise::timed;
  return o;
}

void keep_branch(Curve& curve, std::string_view bound) {
  std::erase_if(curve.branches, [&](const Branch& branch) { return branch.bound != bound; });
}

}  // namespace moeline
