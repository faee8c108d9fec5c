// Which modules of a checkpoint a list of patterns means, as quantizers write them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace re2 {
class RE2;
}

namespace moeline {

/// "model.language_model.layers.3.mlp.experts" -> "layers.3.mlp.experts"; names of MTP modules, and those with
/// wildcards in front of their layer, stay.
[[nodiscard]] std::string from_layers(const std::string& name);

/// Entries are plain names of a module, of one around it, or of a part of its path ("lm_head", "gate",
/// "model.layers.0.self_attn"); globs ("*.shared_experts.*", "model.layers.0*"); or, after "re:", regular expressions
/// that must match from the beginning. What stands before "layers." in a name is left out of account.
class NamePatterns {
 public:
  NamePatterns() = default;
  /// Throws std::invalid_argument with the entry that is no regular expression.
  explicit NamePatterns(const std::vector<std::string>& entries);
  /// The module, "layers.3.mlp.gate_proj", or one around it is meant.
  [[nodiscard]] bool match(const std::string& name) const;

 private:
  [[nodiscard]] bool match_path(const std::string& path) const;

  std::set<std::string> modules_;        // of a layer
  std::vector<std::string> parts_;       // of any path, between dots
  std::vector<std::string> beginnings_;  // "layers.0*" without its star
  std::vector<std::string> globs_;
  std::vector<std::shared_ptr<re2::RE2>> expressions_;
};

}  // namespace moeline
