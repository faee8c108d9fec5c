#include "experiments/validate/predictor.hpp"

#include <algorithm>

#include "architecture/parameters.hpp"

namespace moeline {
namespace {

double model_metric(const Architecture& model, const std::string& metric, double seq_len) {
  if (metric == "parameters") return parameters(model);
  if (metric == "active_parameters") return active_parameters(model);
  if (metric == "kv_bytes_per_token") return kv_bytes_per_token(model);
  return train_flops_per_token(model, seq_len);
}

Prediction predict_by_model(const Fact& fact) {
  const FactSpec& spec = fact.prediction;
  spec.expect({"model", "metric", "seq_len", "times"});
  const Architecture model = used(spec, "model", [&] { return load_architecture(spec.text("model")); });
  const std::string metric = spec.at("metric").choice(
      "metric", {"parameters", "active_parameters", "kv_bytes_per_token", "train_flops_per_token"});
  const bool flops = metric == "train_flops_per_token";
  if (spec.has("seq_len") && !flops) throw spec.at("seq_len").error("seq_len", "applies to train_flops_per_token");
  const double times = spec.has("times") ? spec.at("times").number("times", 1e-30, 1e30) : 1;
  Prediction prediction;
  prediction.value = times * model_metric(model, metric, flops ? spec.at("seq_len").integer("seq_len", 1, 1 << 24) : 0);
  if (flops) prediction.nulls[kSixPerParameter] = times * 6 * active_parameters(model);
  return prediction;
}

}  // namespace

Prediction Predictor::predict(const Fact& fact) {
  Prediction prediction = fact.method == "simulate"         ? simulate(fact)
                          : fact.method == "price"          ? price(fact)
                          : fact.method == "cross_validate" ? cross_validate(fact)
                                                            : predict_by_model(fact);
  prediction.nulls.insert(fact.stated_nulls.begin(), fact.stated_nulls.end());
  return prediction;
}

void Predictor::rests_on(const std::string& kernel_set, const HardwareProfile& profile, Prediction& prediction) {
  if (kernel_set.empty()) return;
  prediction.fitted_on.insert(kernel_set);
  for (const KernelSet& set : profile.kernel_sets) {
    if (set.name == kernel_set && !set.of_a_stack) kernel_sets_.try_emplace(kernel_set, set);
  }
}

}  // namespace moeline
