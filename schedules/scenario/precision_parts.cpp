#include "schedules/scenario/precision_parts.hpp"

#include <fmt/format.h>

#include <optional>

#include "architecture/checkpoint_format.hpp"
#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

// What a word asks for; nothing: the checkpoint's.
std::optional<Precision> asked_format(const std::string& word) {
  return word == "checkpoint" ? std::nullopt : std::optional(precision_named(word));
}

void expect_tensor_cores(const Spec& spec, const char* key, Precision format, const MachineFacts& machine) {
  const bool fp8 = number_bytes(multiplied_in(format)) == 1;
  if (!fp8 || machine.fp8_tflops > 0) return;
  throw spec.error(key,
                   fmt::format("is {}, and the machine has no FP8 tensor cores (fp8_tflops is 0)", name_of(format)));
}

}  // namespace

void read_precision(const Spec& spec, Setup& setup) {
  spec.expect(keys::precision().names());
  Architecture& model = setup.model;
  PrecisionWords& words = setup.scenario.precision;
  keys::precision().read_all(spec, words);
  const MachineFacts& machine = setup.machine.facts;
  if (const auto linear = asked_format(words.linear)) {
    expect_tensor_cores(spec, "linear", *linear, machine);
    store_linear_as(*linear, model);
  }
  if (const auto experts = asked_format(words.experts)) {
    expect_tensor_cores(spec, "experts", *experts, machine);
    store_experts_as(*experts, model);
  }
  if (const auto cache = asked_format(words.kv_cache)) model.kv_cache = *cache;
}

}  // namespace moeline
