#include "experiments/learn/experts_reached.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "moe/fused_experts.hpp"

namespace moeline {
namespace {

struct LayerReads {
  double us = 0;               // of its products of experts
  double bytes_of_expert = 0;  // weights of one
  double all_alike = 0;        // experts that tokens reach which choose each with equal chance
  double ep = 1;
};

bool reads_experts(const Operator& op) {
  return op.experts.role == ExpertRole::gate_up || op.experts.role == ExpertRole::down;
}

double reached_if_alike(const ExpertShape& shape) {
  return shape.experts * (1 - std::pow(1 - shape.top_k / shape.experts, shape.tokens));
}

void add(const Operator& op, double us, LayerReads& reads) {
  const ExpertMatrix matrix = expert_matrix(op.experts, op.experts.role);
  reads.us += us;
  reads.bytes_of_expert += matrix.n * matrix.k * expert_weight_bytes(op.experts);
  reads.all_alike = reached_if_alike(op.experts);
  reads.ep = op.experts.ep;
}

std::map<std::uint32_t, LayerReads> reads_of(const ObservedStep& step, const AlignedStep& aligned, const Run& run) {
  std::vector<double> us(aligned.simulated.size());
  for (std::size_t i = 0; i < step.kernels.size(); ++i) {
    if (aligned.operator_of[i] >= 0)
      us[static_cast<std::size_t>(aligned.operator_of[i])] += to_us(step.kernels[i].added);
  }
  std::map<std::uint32_t, LayerReads> layers;
  for (std::size_t j = 0; j < us.size(); ++j) {
    const Operator& op = run.program.kernels[aligned.simulated[j].kernel].op;
    if (reads_experts(op)) add(op, us[j], layers[aligned.simulated[j].layer]);
  }
  return layers;
}

}  // namespace

std::optional<std::vector<double>> experts_reached(const ObservedStep& step, const AlignedStep& aligned,
                                                   const Run& run) {
  constexpr double kFewer = 0.98;
  std::vector<double> reached;
  bool fewer = false;
  for (const auto& [layer, reads] : reads_of(step, aligned, run)) {
    const double bytes = reads.us * run.setup.machine.facts.hbm_GBps * 1e3;
    const double most = reads.us > 0 ? reads.ep * bytes / reads.bytes_of_expert : reads.all_alike;
    fewer = fewer || most < kFewer * reads.all_alike;
    reached.push_back(std::min(most, reads.all_alike));
  }
  return fewer ? std::optional(reached) : std::nullopt;
}

}  // namespace moeline
