// The model families that a config.json may be of: what each one's code adds to its configuration, and which keys that
// change an architecture each one reads.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "moe/config_json.hpp"

namespace moeline {

/// What `model_type` stands for. A flag is what holds where the configuration says nothing.
struct ModelFamily {
  std::string model_type;
  std::set<std::string> reads;  ///< fields that change the architecture, by our name; all others are refused
  bool mla = false;
  bool routed = false;
  std::string expert_size = "moe_intermediate_size";  ///< the field that holds the FFN size of one expert
  bool attention_bias = false;
  bool output_bias = true;  ///< attention_bias means the output projection as well
  bool qk_norm = false;
  bool attention_sinks = false;
  bool expert_bias = false;
  bool router_bias = false;
};

/// The family of a description. Throws SpecError where the model is of none, or has a key that this family does not
/// read and that asks for something: "not modelled: mamba layers (hybrid_override_pattern)".
[[nodiscard]] const ModelFamily& family_of(const ModelFields& fields);

/// Every field that some family reads, under each of its names.
[[nodiscard]] std::vector<std::string> fields_of_families();

}  // namespace moeline
