// The fields of a model description, under whichever of their names they stand: in our strict YAML, or in a Hugging
// Face config.json as it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

/// One description. A field is looked for under each of its names (config_keys.hpp); one that is null counts as absent.
class ModelFields {
 public:
  /// A file that ends in .json is a Hugging Face config: `text_config` is unwrapped, and what it lacks is looked for
  /// around it. Throws SpecError.
  static ModelFields load(const std::filesystem::path& path);

  /// A key as it stands in the file, and every plain word of its value.
  struct Key {
    std::string name;
    std::vector<std::string> words;
  };
  /// All keys of the language model, in order: neither text_config itself nor the towers beside it.
  [[nodiscard]] std::vector<Key> keys() const;
  /// The towers beside the language model that stand in the file: vision_config, audio_config.
  [[nodiscard]] std::vector<std::string> towers() const;
  /// model_type around a text_config that has its own, "" if there is none.
  [[nodiscard]] std::string wrapper_type() const;
  /// Any other key is an error that suggests the nearest one: for our YAML.
  void expect(const std::vector<std::string>& names) const { outer_.expect(names); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool is_config_json() const { return is_config_json_; }
  [[nodiscard]] bool has(const std::string& field) const;
  /// Written down, as null.
  [[nodiscard]] bool is_null(const std::string& field) const;
  [[nodiscard]] bool is_list(const std::string& field) const;
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
  [[nodiscard]] std::vector<Spec> maps_or_none(const std::string& field) const;

  [[nodiscard]] SpecError error(const std::string& field, std::string_view message) const;
  /// The same where the message itself says what it is about.
  [[nodiscard]] SpecError error_at(const std::string& field, std::string_view message) const;

 private:
  ModelFields(Spec inner, Spec outer, std::filesystem::path path, bool is_config_json);
  [[nodiscard]] bool is_wrapped() const;
  // Where a field stands, under which name; the inner mapping and the field's own name if nowhere. Throws where it
  // stands under two names with two values.
  struct Place {
    const Spec* spec;
    std::string name;
    bool found;
  };
  [[nodiscard]] Place find(const std::string& field) const;

  Spec inner_, outer_;  // the same without a wrapper
  std::filesystem::path path_;
  bool is_config_json_;
};

/// JSON as our YAML reader takes it: tabs become spaces, and escaped halves of characters beyond 16 bits, which it
/// refuses, question marks. The lines stay.
[[nodiscard]] std::string json_as_yaml(std::string text);

}  // namespace moeline
