// The fields of a model description, under whichever of their names they stand: in our strict YAML, or in a Hugging
// Face config.json as it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

/// What moe_intermediate_size is where all layers are MoE layers: some families call it intermediate_size then.
inline constexpr const char* kExpertSize = "expert size";

/// One description. A field that is null counts as absent.
class ModelFields {
 public:
  /// A file that ends in .json is a Hugging Face config: `text_config` is unwrapped (what it lacks is looked for
  /// around it), and keys we do not know are left alone. In YAML they are refused with the nearest name.
  /// Throws SpecError.
  static ModelFields load(const std::filesystem::path& path);

  [[nodiscard]] bool is_config_json() const { return is_config_json_; }
  [[nodiscard]] bool has(const std::string& field) const;
  /// Written down, as null.
  [[nodiscard]] bool is_null(const std::string& field) const;
  /// Throws if any of these is absent; names all that are, with every name they were looked for under.
  void require(const std::vector<std::string>& fields) const;
  /// A whole number within [low, high].
  [[nodiscard]] int integer(const std::string& field, int low, int high) const;
  [[nodiscard]] int integer_or(const std::string& field, int low, int high, int fallback) const;
  [[nodiscard]] bool flag_or(const std::string& field, bool fallback) const;
  [[nodiscard]] std::string text_or(const std::string& field, const std::string& fallback) const;
  [[nodiscard]] std::vector<int> integers_or_none(const std::string& field, int low, int high) const;
  [[nodiscard]] std::vector<std::string> texts_or_none(const std::string& field) const;
  [[nodiscard]] std::optional<Spec> map_or_none(const std::string& field) const;
  /// The first field whose name says that there are experts, "" if none.
  [[nodiscard]] std::string expert_field() const;

  [[nodiscard]] SpecError error(const std::string& field, std::string_view message) const;

 private:
  ModelFields(Spec inner, Spec outer, bool is_config_json);
  // Where a field stands, under which name; the inner mapping and the field's own name if nowhere.
  struct Place {
    const Spec* spec;
    std::string name;
    bool found;
  };
  [[nodiscard]] Place find(const std::string& field) const;

  Spec inner_, outer_;  // the same without a wrapper
  bool is_config_json_;
};

/// JSON as our YAML reader takes it: tabs become spaces, and escaped halves of characters beyond 16 bits, which it
/// refuses, question marks. The lines stay.
[[nodiscard]] std::string json_as_yaml(std::string text);

}  // namespace moeline
