// The model families that a config.json may be of: what each one's code adds to its configuration, and which keys that
// change an architecture each one reads.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "architecture/architecture.hpp"
#include "architecture/config_json.hpp"

namespace moeline {

/// What `model_type` stands for. A flag is what holds where the configuration says nothing.
struct ModelFamily {
  std::string model_type;
  std::set<std::string> reads;  ///< fields that change the architecture, by our name; all others are refused
  bool mla = false;
  bool routed = false;
  bool may_be_dense = false;                          ///< without the key of experts it has none
  std::set<std::string> lacks{};                      ///< fields that others need and this one does not
  std::string expert_size = "moe_intermediate_size";  ///< the field that holds the FFN size of one expert
  std::string dense_size = "intermediate_size";       ///< and of a dense layer
  bool attention_bias = false;
  bool output_bias = true;  ///< attention_bias means the output projection as well
  bool qk_norm = false;
  bool attention_sinks = false;
  bool gated_attention = false;
  bool expert_bias = false;
  bool router_bias = false;
  bool shared_gate = false;
  bool tied_embeddings = false;
  bool fp8_cache = false;                  ///< stacks keep no other
  std::vector<std::string> layer_types{};  ///< words of that list beside full_attention and sliding_attention
  int (*count_layers)(const ModelFields&) = nullptr;            ///< where no key does
  void (*refine)(const ModelFields&, Architecture&) = nullptr;  ///< what the layers have that only this family does
};

/// The family of a description. Throws SpecError where the model is of none, or has a key that this family does not
/// read and that asks for something: "not modelled: mamba layers (hybrid_override_pattern)".
[[nodiscard]] const ModelFamily& family_of(const ModelFields& fields);

/// The names of all families.
[[nodiscard]] std::vector<std::string> model_types();

/// What the keys of a family may ask for that not every family reads, "sliding windows", "routed experts", each phrase
/// once, in the order of the table of meanings. REQUIRES: a name of model_types().
[[nodiscard]] std::vector<std::string> parts_of_family(const std::string& model_type);

/// Every field that some family reads, under each of its names.
[[nodiscard]] std::vector<std::string> fields_of_families();

}  // namespace moeline
