#include "base/spec.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/file.hpp"

namespace moeline {
namespace {

constexpr int kDeepest = 32;

// yaml-cpp keeps repeated keys silently: refuse them, everywhere.
void refuse_repeats(const std::string& file, const YAML::Node& node, int depth = 0) {
  if (depth > kDeepest) throw SpecError(file, node.Mark().line + 1, "nested too deeply");
  if (node.IsSequence()) {
    for (const auto& item : node) refuse_repeats(file, item, depth + 1);
  }
  if (!node.IsMap()) return;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) throw SpecError(file, line, "a key must be a plain word");
    if (!seen.insert(entry.first.Scalar()).second) {
      throw SpecError(file, line, fmt::format("key '{}' is repeated", entry.first.Scalar()));
    }
    refuse_repeats(file, entry.second, depth + 1);
  }
}

std::string shown(const YAML::Node& node) {
  if (!node.IsScalar()) return node.IsNull() ? "nothing" : node.IsMap() ? "a mapping" : "a list";
  return fmt::format("'{}'", node.Scalar().substr(0, 40));
}

}  // namespace

Spec::Spec(std::string file, YAML::Node node, std::string prefix)
    : file_(std::move(file)), node_(std::move(node)), prefix_(std::move(prefix)) {}

Spec Spec::load(const std::filesystem::path& path) { return parse(path.string(), read_text(path)); }

Spec Spec::parse(const std::string& file, const std::string& content) {
  YAML::Node node;
  try {
    node = YAML::Load(content);
  } catch (const YAML::Exception& error) {
    throw SpecError(file, error.mark.line + 1, "not valid YAML: " + error.msg);
  }
  if (!node.IsMap()) throw SpecError(file, 1, "must be a mapping of keys to values");
  refuse_repeats(file, node);
  return {file, node, ""};
}

void Spec::set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw SpecError("--set", 0, fmt::format("'{}' is not of the form key=value", assignment));
  }
  YAML::Node value;
  try {
    value = YAML::Load(std::string(assignment.substr(equals + 1)));
  } catch (const YAML::Exception& error) {
    throw SpecError("--set", 0, fmt::format("'{}': the value is not valid YAML: {}", assignment, error.msg));
  }
  refuse_repeats("--set", value);
  std::string_view path = assignment.substr(0, equals);
  YAML::Node at = node_;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string key(path.substr(0, dot));
    if (at[key] && !at[key].IsMap()) {
      throw SpecError("--set", 0, fmt::format("'{}': '{}' is not a mapping", assignment, key));
    }
    at.reset(at[key]);
    path.remove_prefix(dot + 1);
  }
  at[std::string(path)] = value;
}

bool Spec::has(const std::string& key) {
  asked_.insert(key);
  return static_cast<bool>(std::as_const(node_)[key]);
}

YAML::Node Spec::need(const std::string& key) {
  if (!has(key)) throw error(key, "is missing");
  return std::as_const(node_)[key];
}

YAML::Node Spec::scalar(const std::string& key) {
  YAML::Node node = need(key);
  if (!node.IsScalar()) throw error(key, "must be a single value, not " + shown(node));
  return node;
}

Spec Spec::map(const std::string& key) {
  const YAML::Node node = need(key);
  if (!node.IsMap()) throw error(key, "must be a mapping, not " + shown(node));
  return {file_, node, prefix_ + key + "."};
}

Spec Spec::map_or_empty(const std::string& key) {
  if (has(key)) return map(key);
  return {file_, YAML::Node(YAML::NodeType::Map), prefix_ + key + "."};
}

std::string Spec::text(const std::string& key) {
  std::string value = scalar(key).Scalar();
  if (value.empty()) throw error(key, "must not be empty");
  return value;
}

std::string Spec::text_or(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

bool Spec::flag_or(const std::string& key, bool fallback) {
  if (!has(key)) return fallback;
  bool value = false;
  const YAML::Node node = scalar(key);
  if (!YAML::convert<bool>::decode(node, value)) throw error(key, "must be true or false, not " + shown(node));
  return value;
}

int Spec::integer(const std::string& key, int low, int high) {
  const YAML::Node node = scalar(key);
  long long value = 0;
  if (!YAML::convert<long long>::decode(node, value)) throw error(key, "must be a whole number, not " + shown(node));
  if (value < low || value > high) {
    throw error(key, fmt::format("must be from {} to {}, not {}", low, high, node.Scalar()));
  }
  return static_cast<int>(value);
}

int Spec::integer_or(const std::string& key, int low, int high, int fallback) {
  return has(key) ? integer(key, low, high) : fallback;
}

double Spec::number(const std::string& key, double low, double high) {
  const YAML::Node node = scalar(key);
  double value = 0;
  if (!YAML::convert<double>::decode(node, value) || !std::isfinite(value)) {
    throw error(key, "must be a number, not " + shown(node));
  }
  if (value < low || value > high) {
    throw error(key, fmt::format("must be from {} to {}, not {}", low, high, node.Scalar()));
  }
  return value;
}

double Spec::number_or(const std::string& key, double low, double high, double fallback) {
  return has(key) ? number(key, low, high) : fallback;
}

std::vector<int> Spec::integers(const std::string& key, int low, int high) {
  const YAML::Node list = need(key);
  if (!list.IsSequence()) throw error(key, "must be a list of whole numbers, not " + shown(list));
  std::vector<int> values;
  for (const auto& item : list) {
    int value = 0;
    if (!item.IsScalar() || !YAML::convert<int>::decode(item, value) || value < low || value > high) {
      throw error(key, fmt::format("must list whole numbers from {} to {}; it has {}", low, high, shown(item)));
    }
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> Spec::texts(const std::string& key) {
  const YAML::Node list = need(key);
  if (!list.IsSequence()) throw error(key, "must be a list, not " + shown(list));
  std::vector<std::string> values;
  for (const auto& item : list) {
    if (!item.IsScalar()) throw error(key, "must list plain words; it has " + shown(item));
    values.push_back(item.Scalar());
  }
  return values;
}

std::string Spec::choice(const std::string& key, const std::vector<std::string>& choices) {
  std::string value = text(key);
  for (const std::string& candidate : choices) {
    if (candidate == value) return value;
  }
  throw error(key, unknown_name("value", value, choices));
}

std::vector<std::string> Spec::keys() const {
  std::vector<std::string> names;
  for (const auto& entry : node_) names.push_back(entry.first.Scalar());
  return names;
}

void Spec::done() const {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (!asked_.contains(key)) {
      throw SpecError(file_, line(key), unknown_name("key", prefix_ + key, [&] {
                        std::vector<std::string> full;
                        for (const std::string& name : known) full.push_back(prefix_ + name);
                        return full;
                      }()));
    }
  }
}

int Spec::line(const std::string& key) const {
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.first.Mark().line + 1;
  }
  return node_.Mark().line + 1;
}

SpecError Spec::error(const std::string& key, std::string_view message) const {
  return {file_, line(key), fmt::format("{}{} {}", prefix_, key, message)};
}

}  // namespace moeline
