#include "experiments/plan/deployment.hpp"

#include <cmath>

namespace moeline {

void set_totals(Deployment& d, double output_tokens_per_s) {
  constexpr double kRounding = 1e-9;
  const auto rented = [&](Side& side, int gpus_per_unit) {
    side.gpus = side.all_units() * gpus_per_unit;
    return side.all_units() * rented_gpus(gpus_per_unit, d.gpus_per_node);
  };
  const double prefill = rented(d.prefill, d.prefill_choice.gpus());
  const double decode = rented(d.decode, d.decode_choice.gpus());
  d.gpus = d.colocated ? d.decode.gpus : d.prefill.gpus + d.decode.gpus;
  const double all = d.colocated ? decode : prefill + decode;
  d.nodes = static_cast<int>(std::ceil(all / d.gpus_per_node - kRounding));
  d.tokens_per_s_per_gpu = output_tokens_per_s / d.gpus;
  d.usd_per_hour = d.usd_per_gpu_hour * d.nodes * d.gpus_per_node;
  d.cost_per_million_tokens = d.usd_per_hour / 3600 / output_tokens_per_s * 1e6;
}

}  // namespace moeline
