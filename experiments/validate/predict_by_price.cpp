// Facts about kernels alone: what price() says of them, or what the machine's peaks allow.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.hpp"
#include "calib/fit/calibrate.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "experiments/validate/predictor.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"

namespace moeline {
namespace {

using Paths = std::vector<std::filesystem::path>;

// Kernels one after the other.
struct Work {
  double flops = 0;
  double bytes = 0;  // of transfers as DeepEP's bandwidths count them
  double roofline_us = 0;

  // `us` in the metric.
  [[nodiscard]] double in(const std::string& metric, double us) const {
    if (metric == "tflops") return flops / us / 1e6;
    if (metric == "GBps") return bytes / us / 1e3;
    return us;
  }
};

constexpr const char* kRooflineUs = "roofline_us";

std::vector<RequestedOp> read_ops(const FactSpec& spec, const MachineFacts& machine) {
  std::vector<RequestedOp> ops;
  for (const std::string& text : spec.at("ops").texts("ops")) {
    ops.push_back(used(spec, "ops", [&] { return parse_op(text, machine); }));
  }
  if (ops.empty()) throw spec.at("ops").error("ops", "must name at least one");
  return ops;
}

Work work_of(const std::vector<RequestedOp>& ops, const MachineFacts& machine) {
  Work work;
  for (const RequestedOp& each : ops) {
    for (const Operator& op : each.kernels) {
      work.flops += op.flops;
      work.bytes += is_all_to_all(op.family) ? logical_bytes(op) : op.bytes;
      work.roofline_us += roofline_us(op, machine);
    }
  }
  return work;
}

std::string read_metric(const FactSpec& spec, const Work& work) {
  std::string metric = spec.at("metric").choice("metric", {"us", "tflops", "GBps", kRooflineUs});
  const bool nothing = (metric == "tflops" && work.flops == 0) || (metric == "GBps" && work.bytes == 0);
  if (nothing) throw spec.at("metric").error("metric", "does not apply to these kernels");
  return metric;
}

// Tables beside the fact file, and those of others that the project does not ship.
Paths tables_of(const FactSpec& left_out) {
  Paths files;
  for (const std::string& table : left_out.at("tables").texts("tables")) {
    files.push_back(beside(left_out.at("tables").file(), table));
  }
  for (const std::string& table : left_out.at("data").texts("data")) files.push_back(measured_data() / table);
  return files;
}

// Constants that the fit took as given.
void lend_to(KernelSet& fit, const KernelSet& lender, const std::vector<std::string>& groups) {
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::find(groups.begin(), groups.end(), group_of(i)) == groups.end()) continue;
    fit.constants[i] = lender.constants[i];
    fit.origins[i] = lender.origins[i];
  }
}

// What is not there of the tables of others, or "".
std::string absent(const FactSpec& left_out) {
  for (const std::string& table : left_out.at("data").texts("data")) {
    if (!std::filesystem::exists(measured_data() / table)) return (measured_data() / table).string() + " is absent";
  }
  return "";
}

}  // namespace

const HardwareProfile& Predictor::profile(const FactSpec& spec) {
  const std::string name = spec.text("hardware");
  const std::filesystem::path file = spec.at("hardware").file();
  const std::vector<std::string> facts = spec.settings();
  const std::string key = fmt::format("{}\n{}\n{}", file.parent_path().string(), name,  // a path counts from the file
                                      fmt::join(facts, "\n"));
  const auto found = profiles_.find(key);
  if (found != profiles_.end()) return found->second;
  return used(spec, facts.empty() ? "hardware" : "set", [&]() -> const HardwareProfile& {
    return profiles_.emplace(key, load_profile(name, facts, file)).first->second;
  });
}

// The profile's own set, or one fitted anew without what the fact measures.
KernelSet Predictor::kernels(const FactSpec& spec, const HardwareProfile& profile) {
  const std::string name = spec.text("kernels");
  KernelSet whole = used(spec, "kernels", [&] { return profile.kernels(name); });
  if (!spec.has("left_out")) return whole;
  const FactSpec left_out = spec.map("left_out");
  CalibrationRequest request{.kernels = name, .left_out = left_out.text("fold")};
  if (left_out.has("given")) {
    request.given = left_out.at("given").texts("given");
    request.lender = profile.kernels("").constants;
  }
  const Paths files = tables_of(left_out);
  std::string key = profile.name + "\n" + name + "\n" + request.left_out;
  for (const std::filesystem::path& file : files) key += "\n" + file.string();
  const auto found = fits_.find(key);
  if (found != fits_.end()) return found->second;
  return used(left_out, "fold", [&] {
    KernelSet fit = calibrate(files, request, load_architecture("deepseek-v3"), profile.facts).kernels;
    if (!request.given.empty()) lend_to(fit, profile.kernels(""), request.given);
    return fits_.emplace(key, std::move(fit)).first->second;
  });
}

Prediction Predictor::price(const Fact& fact) {
  const FactSpec& spec = fact.prediction;
  spec.expect({"hardware", "set", "kernels", "ops", "metric", "times", "left_out"});
  if (spec.has("left_out")) spec.map("left_out").expect({"fold", "tables", "data", "given"});
  const double times = spec.has("times") ? spec.at("times").number("times", 1e-30, 1e30) : 1;
  const HardwareProfile& machine = profile(spec);
  const std::vector<RequestedOp> ops = read_ops(spec, machine.facts);
  const Work work = work_of(ops, machine.facts);
  const std::string metric = read_metric(spec, work);
  Prediction prediction;
  if (metric == kRooflineUs) {
    prediction.value = times * work.roofline_us;
    return prediction;
  }
  if (spec.has("left_out")) {
    const FactSpec left_out = spec.map("left_out");
    prediction.left_out = left_out.text("fold");
    prediction.skipped = absent(left_out);
    if (!prediction.skipped.empty()) return prediction;
  }
  const KernelSet set = kernels(spec, machine);
  double us = 0;
  for (const RequestedOp& each : ops) {
    const Price priced = price_all(each.kernels, each.conditions, machine.facts, set);
    us += priced.solo_us;
    prediction.constants |= priced.constants;
    rests_on(priced.kernel_set, machine, prediction);
  }
  prediction.value = times * work.in(metric, us);
  prediction.roofline = times * work.in(metric, work.roofline_us);
  prediction.nulls[kRoofline] = prediction.roofline;
  return prediction;
}

}  // namespace moeline
