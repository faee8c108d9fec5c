// Strict reading of our YAML: every key is known, stands once, has the right type and a sensible value; otherwise a
// SpecError says where. Loading keeps the file name with every mapping, so that any reader below can point at a line.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/yaml.hpp"

namespace moeline {

/// One mapping of a YAML file. Say which keys it may have (expect), then ask for them.
class Spec {
 public:
  /// Reads a whole file. Refuses one that is missing, empty, binary, larger than 1 MiB, not YAML, not a single mapping,
  /// repeats a key, or has tags.
  static Spec load(const std::filesystem::path& path);
  /// The same for text that came from elsewhere; `file` names it in messages.
  static Spec parse(const std::string& file, const std::string& content);
  /// `key=value` as on a command line; the key may be a dotted path. Creates what is not there. Mappings taken from
  /// this one before keep what they had.
  void set(std::string_view assignment);

  /// Any other key is an error. Called before the first key is read: a misspelt key is not reported as a missing one.
  void expect(const std::vector<std::string>& keys) const;
  [[nodiscard]] bool has(const std::string& key) const;
  /// The key stands, and its value is null, ~ or nothing.
  [[nodiscard]] bool is_null(const std::string& key) const;
  /// The key stands, and has a value.
  [[nodiscard]] bool stands(const std::string& key) const { return has(key) && !is_null(key); }
  [[nodiscard]] bool is_list(const std::string& key) const;
  [[nodiscard]] Spec map(const std::string& key) const;
  /// A list of mappings.
  [[nodiscard]] std::vector<Spec> maps(const std::string& key) const;
  /// The mapping at `key`, or an empty one.
  [[nodiscard]] Spec map_or_empty(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback) const;
  /// A whole number within [low, high].
  [[nodiscard]] int integer(const std::string& key, int low, int high) const;
  [[nodiscard]] int integer_or(const std::string& key, int low, int high, int fallback) const;
  /// A finite number within [low, high].
  [[nodiscard]] double number(const std::string& key, double low, double high) const;
  /// true or false, not quoted.
  [[nodiscard]] bool flag(const std::string& key) const;
  [[nodiscard]] std::vector<int> integers(const std::string& key, int low, int high) const;
  [[nodiscard]] std::vector<double> numbers(const std::string& key, double low, double high) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const;
  /// A list of words and of lists of words; a word that stands alone is a list of one.
  [[nodiscard]] std::vector<std::vector<std::string>> text_lists(const std::string& key) const;
  /// One of `choices`, in their spelling; the file's may differ in case.
  [[nodiscard]] std::string choice(const std::string& key, const std::vector<std::string>& choices) const;
  /// The keys that stand here, in order.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Every plain word at or below the key, in order: of a list its values, of a mapping its keys and values. Nothing
  /// (null) is the empty word.
  [[nodiscard]] std::vector<std::string> words(const std::string& key) const;

  /// A SpecError at the line of `key`, of the mapping itself where the key is absent, or at --set that gave the value.
  [[nodiscard]] SpecError error(const std::string& key, std::string_view message) const;
  /// The same where the message itself says what it is about.
  [[nodiscard]] SpecError error_at(const std::string& key, std::string_view message) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  Spec(std::string file, std::shared_ptr<const YamlNode> node, std::string prefix, std::vector<std::string> assigned);
  [[nodiscard]] const YamlNode& need(const std::string& key) const;
  template <class Number>
  [[nodiscard]] std::vector<Number> listed(const std::string& key, Number low, Number high, const char* what) const;
  [[nodiscard]] const YamlNode& word(const std::string& key) const;
  [[nodiscard]] bool is_assigned(const std::string& key) const;
  [[nodiscard]] int line(const std::string& key) const;

  std::string file_;
  std::shared_ptr<const YamlNode> node_;  // a mapping; it keeps the whole document
  std::string prefix_;                    // dotted path of this mapping, for messages
  std::vector<std::string> assigned_;     // dotted paths that set() gave a value
};

/// The value of an enumeration whose words these are, in its order. REQUIRES: `word` is one of them.
template <class Choice>
[[nodiscard]] Choice choice_of(const std::string& word, const std::vector<std::string>& words) {
  return static_cast<Choice>(std::find(words.begin(), words.end(), word) - words.begin());
}

/// The same of the word that stands at `key`. Throws SpecError for another one.
template <class Choice>
[[nodiscard]] Choice choice_at(const Spec& spec, const std::string& key, const std::vector<std::string>& words) {
  return choice_of<Choice>(spec.choice(key, words), words);
}

/// Runs `load`; a name it does not know gets the line of `key`, where it was written.
template <class Load>
auto at_key(const Spec& spec, const std::string& key, Load load) {
  try {
    return load();
  } catch (const UnknownName& error) {
    throw spec.error(key, std::string("names an ") + error.what());
  }
}

}  // namespace moeline
