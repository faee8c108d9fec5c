// Strict reading of our YAML: every key is known, stands once, has the right type and a sensible value; otherwise a
// SpecError says where. Loading keeps the file name with every mapping, so that any reader below can point at a line.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace moeline {

/// One mapping of a YAML file. Ask for each key it may have, then call done(): keys nobody asked for are errors.
class Spec {
 public:
  /// Reads a whole file. Refuses one that is missing, empty, binary, not YAML, not a mapping, or repeats a key.
  static Spec load(const std::filesystem::path& path);
  /// The same for text that came from elsewhere; `file` names it in messages.
  static Spec parse(const std::string& file, const std::string& content);
  /// `key=value` as on a command line; the key may be a dotted path. Creates what is not there.
  void set(std::string_view assignment);

  [[nodiscard]] bool has(const std::string& key);
  [[nodiscard]] Spec map(const std::string& key);
  /// The mapping at `key`, or an empty one.
  [[nodiscard]] Spec map_or_empty(const std::string& key);
  [[nodiscard]] std::string text(const std::string& key);
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback);
  [[nodiscard]] bool flag_or(const std::string& key, bool fallback);
  /// A whole number within [low, high].
  [[nodiscard]] int integer(const std::string& key, int low, int high);
  [[nodiscard]] int integer_or(const std::string& key, int low, int high, int fallback);
  /// A finite number within [low, high].
  [[nodiscard]] double number(const std::string& key, double low, double high);
  [[nodiscard]] double number_or(const std::string& key, double low, double high, double fallback);
  [[nodiscard]] std::vector<int> integers(const std::string& key, int low, int high);
  [[nodiscard]] std::vector<std::string> texts(const std::string& key);
  /// One of `choices`.
  [[nodiscard]] std::string choice(const std::string& key, const std::vector<std::string>& choices);
  /// The keys that stand here, in order.
  [[nodiscard]] std::vector<std::string> keys() const;

  void done() const;
  /// A SpecError at the line of `key`, or of the mapping itself where the key is absent.
  [[nodiscard]] SpecError error(const std::string& key, std::string_view message) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  Spec(std::string file, YAML::Node node, std::string prefix);
  YAML::Node need(const std::string& key);
  YAML::Node scalar(const std::string& key);
  [[nodiscard]] int line(const std::string& key) const;

  std::string file_;
  YAML::Node node_;
  std::string prefix_;  // dotted path of this mapping, for messages
  std::set<std::string> asked_;
};

}  // namespace moeline
