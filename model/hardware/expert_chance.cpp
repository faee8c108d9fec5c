#include "hardware/expert_chance.hpp"

#include <algorithm>
#include <cmath>

#include "curves/curve.hpp"
#include "moe/fused_experts.hpp"

namespace moeline {

double deviation_by_chance(const Operator& op, const FamilyFit& fit, int sms, const MachineFacts& machine) {
  if (op.experts.role == ExpertRole::none || op.rows_deviation <= 0) return 0;
  const ExpertRows load = expert_rows(op.experts);
  const double share = load.hit / load.local;  // probability that an expert gets any
  Operator more = op;
  more.experts.rows = load.rows + std::sqrt(load.local) * op.rows_deviation;
  more.experts.hit = std::min(load.local, load.hit + std::sqrt(load.local * share * (1 - share)));
  const auto us_of = [&](const Operator& each) {
    return evaluate(fit.form->curve(each, sms, machine), fit.constants).us;
  };
  const double us = us_of(op);
  return us > 0 ? std::max(0.0, us_of(more) / us - 1) : 0;
}

}  // namespace moeline
