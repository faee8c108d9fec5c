// OPs of linear layers and of kernels bound by memory.
#include <algorithm>
#include <cmath>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/all_to_all.hpp"
#include "moe/kernels.hpp"

namespace moeline {

RequestedOp gemm_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"dtype", "m", "n", "k"});
  const Precision precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  return {text,
          {kernels::gemm(gemm_family(GemmLayout::dense, precision), text, keys.size("m", 4096), keys.size("n", 7168),
                         keys.size("k", 16384))},
          keys.all_sms(machine)};
}

RequestedOp grouped_gemm_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"layout", "dtype", "groups", "m", "n", "k"});
  const bool masked = keys.choice("layout", {"contiguous", "masked"}) == "masked";
  const Precision precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  const double groups = keys.size("groups", 4);
  double rows = keys.size("m", masked ? 256 : 8192);
  if (!masked) rows = std::ceil(rows / kRowPadding) * kRowPadding;
  const Family family = gemm_family(masked ? GemmLayout::masked : GemmLayout::contiguous, precision);
  return {text,
          {kernels::gemm(family, text, groups * rows, keys.size("n", 4096), keys.size("k", 7168), groups)},
          keys.all_sms(machine)};
}

RequestedOp memory_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"kind", "bytes"});
  const std::vector<std::pair<std::string, Family>> kinds = {
      {"streaming", Family::streaming},           {"rowwise", Family::rowwise},       {"swiglu", Family::swiglu},
      {"cast_transpose", Family::cast_transpose}, {"requantize", Family::requantize}, {"strided", Family::strided}};
  std::vector<std::string> names;
  for (const auto& [name, family] : kinds) names.push_back(name);
  const std::string kind = keys.choice("kind", names);
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
  const double bytes = keys.spec().has("bytes") ? keys.spec().number("bytes", 1, 1e15) : 4096.0 * 7168 * 4;
  return {text, {kernels::memory(found->second, text, bytes)}, keys.all_sms(machine)};
}

}  // namespace moeline
