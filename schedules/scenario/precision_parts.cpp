#include "schedules/scenario/precision_parts.hpp"

#include <fmt/format.h>

#include <optional>

#include "architecture/checkpoint_format.hpp"

namespace moeline {
namespace {

constexpr const char* kCheckpoint = "checkpoint";

// What a key asks for; nothing: the checkpoint's.
std::optional<Precision> read_format(const Spec& spec, const char* key, const std::vector<Precision>& formats,
                                     std::string& asked) {
  if (!spec.has(key)) return std::nullopt;
  std::vector<std::string> words = {kCheckpoint};
  for (const Precision format : formats) words.push_back(name_of(format));
  asked = spec.choice(key, words);
  return asked == kCheckpoint ? std::nullopt : std::optional(precision_named(asked));
}

void expect_tensor_cores(const Spec& spec, const char* key, Precision format, const MachineFacts& machine) {
  const bool fp8 = number_bytes(multiplied_in(format)) == 1;
  if (!fp8 || machine.fp8_tflops > 0) return;
  throw spec.error(key,
                   fmt::format("is {}, and the machine has no FP8 tensor cores (fp8_tflops is 0)", name_of(format)));
}

}  // namespace

void read_precision(const Spec& spec, Setup& setup) {
  spec.expect({"linear", "experts", "kv_cache"});
  Architecture& model = setup.model;
  PrecisionWords& words = setup.scenario.precision;
  const MachineFacts& machine = setup.machine.facts;
  using enum Precision;
  if (const auto linear = read_format(spec, "linear", {bf16, fp8, fp8_tensor, fp8_static, nvfp4}, words.linear)) {
    expect_tensor_cores(spec, "linear", *linear, machine);
    store_linear_as(*linear, model);
  }
  if (const auto experts = read_format(spec, "experts", {bf16, fp8, nvfp4, mxfp4, int4}, words.experts)) {
    expect_tensor_cores(spec, "experts", *experts, machine);
    store_experts_as(*experts, model);
  }
  if (const auto cache = read_format(spec, "kv_cache", {bf16, fp8}, words.kv_cache)) model.kv_cache = *cache;
}

}  // namespace moeline
