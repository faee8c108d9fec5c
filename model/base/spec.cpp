#include "base/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLargestBytes = std::size_t{1} << 20U;
constexpr std::size_t kDocuments = 8;  // that sweeps and plans read again at every point
constexpr std::size_t kShown = 40;     // characters of a value in a message

std::string shown(const YamlNode& node) {
  if (!node.is_word()) return node.is_nothing() ? "nothing" : node.is_map() ? "a mapping" : "a list";
  return fmt::format("{}'{}'", node.quoted ? "the text " : "", node.word.substr(0, kShown));
}

void add_words(const YamlNode& node, std::vector<std::string>& words) {
  if (node.is_nothing() || node.is_word()) words.push_back(node.word);
  for (const YamlNode& item : node.items) {
    if (node.is_map()) words.push_back(item.key);
    add_words(item, words);
  }
}

// The value at a key of a mapping that is being changed; null where it has none.
YamlNode* entry_of(YamlNode& map, std::string_view key) {
  const auto at =
      std::find_if(map.items.begin(), map.items.end(), [&](const YamlNode& item) { return item.key == key; });
  return at == map.items.end() ? nullptr : &*at;
}

YamlNode& add_entry(YamlNode& map, std::string_view key, YamlNode value) {
  value.key = key;
  return map.items.emplace_back(std::move(value));
}

YamlNode empty_map() {
  YamlNode map;
  map.kind = YamlNode::Kind::map;
  return map;
}

std::string range(double low, double high) {
  return low == high ? fmt::format("must be {}", low) : fmt::format("must be from {} to {}", low, high);
}

}  // namespace

Spec::Spec(std::string file, std::shared_ptr<const YamlNode> node, std::string prefix,
           std::vector<std::string> assigned)
    : file_(std::move(file)), node_(std::move(node)), prefix_(std::move(prefix)), assigned_(std::move(assigned)) {}

Spec Spec::load(const std::filesystem::path& path) { return parse(path.string(), read_text(path)); }

Spec Spec::parse(const std::string& file, const std::string& content) {
  if (content.size() > kLargestBytes) throw SpecError(file, 0, "is larger than 1 MiB");
  static Memo<std::pair<std::string, std::string>, YamlNode> known(kDocuments);
  std::shared_ptr<const YamlNode> root = known.get({file, content}, [&] { return parse_yaml(file, content); });
  if (!root->is_map()) throw SpecError(file, 1, "must be a mapping of keys to values");
  return {file, std::move(root), "", {}};
}

void Spec::set(std::string_view assignment) {
  const std::string_view shortened = assignment.substr(0, 2 * kShown);
  const std::size_t equals = assignment.find('=');
  const std::string path = fmt::format(".{}.", assignment.substr(0, equals));
  if (equals == std::string_view::npos || path.find("..") != std::string::npos) {
    throw SpecError("--set", 0, fmt::format("'{}' is not of the form key=value", shortened));
  }
  YamlNode value = parse_yaml("--set", assignment.substr(equals + 1));
  const std::string_view keys = assignment.substr(0, equals);
  assigned_.emplace_back(keys);
  auto changed = std::make_shared<YamlNode>(*node_);
  YamlNode* at = changed.get();
  std::size_t from = 0;
  for (std::size_t dot = keys.find('.'); dot != std::string_view::npos; dot = keys.find('.', from)) {
    const std::string_view key = keys.substr(from, dot - from);
    YamlNode* inner = entry_of(*at, key);
    if (inner == nullptr) assigned_.emplace_back(keys.substr(0, dot));  // no line of the file has it
    if (inner != nullptr && !inner->is_map()) {
      throw SpecError("--set", 0, fmt::format("'{}': '{}' is not a mapping", shortened, key));
    }
    at = inner != nullptr ? inner : &add_entry(*at, key, empty_map());
    from = dot + 1;
  }
  const std::string_view last = keys.substr(from);
  std::erase_if(at->items, [&](const YamlNode& item) { return item.key == last; });
  add_entry(*at, last, std::move(value));
  node_ = std::move(changed);
}

void Spec::expect(const std::vector<std::string>& keys) const {
  for (const YamlNode& entry : node_->items) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      throw error_at(entry.key, unknown_name("key", entry.key, keys, prefix_));
    }
  }
}

bool Spec::has(const std::string& key) const { return node_->find(key) != nullptr; }

bool Spec::is_list(const std::string& key) const {
  const YamlNode* value = node_->find(key);
  return value != nullptr && value->is_list();
}

bool Spec::is_null(const std::string& key) const {
  const YamlNode* value = node_->find(key);
  return value != nullptr && value->is_nothing();
}

const YamlNode& Spec::need(const std::string& key) const {
  const YamlNode* value = node_->find(key);
  if (value == nullptr) throw error(key, "is missing");
  return *value;
}

const YamlNode& Spec::word(const std::string& key) const {
  const YamlNode& value = need(key);
  if (!value.is_word()) throw error(key, "must be a single value, not " + shown(value));
  return value;
}

Spec Spec::map(const std::string& key) const {
  const YamlNode& value = need(key);
  if (!value.is_map()) throw error(key, "must be a mapping, not " + shown(value));
  return {file_, std::shared_ptr<const YamlNode>(node_, &value), prefix_ + key + ".", assigned_};
}

std::vector<Spec> Spec::maps(const std::string& key) const {
  const YamlNode& value = need(key);
  std::vector<Spec> list;
  for (const YamlNode& item : value.items) {
    if (!item.is_map()) break;
    const std::string prefix = prefix_ + fmt::format("{}[{}].", key, list.size());
    list.emplace_back(Spec(file_, std::shared_ptr<const YamlNode>(node_, &item), prefix, assigned_));
  }
  if (!value.is_list() || list.size() != value.items.size()) {
    throw error(key, "must be a list of mappings, not " + shown(value));
  }
  return list;
}

Spec Spec::map_or_empty(const std::string& key) const {
  if (has(key)) return map(key);
  return {file_, std::make_shared<const YamlNode>(empty_map()), prefix_ + key + ".", assigned_};
}

std::string Spec::text(const std::string& key) const {
  std::string value = word(key).word;
  if (value.empty()) throw error(key, "must not be empty");
  return value;
}

std::string Spec::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

int Spec::integer(const std::string& key, int low, int high) const {
  const YamlNode& node = word(key);
  long long value = 0;
  if (!read_number(node, value)) throw error(key, "must be a whole number, not " + shown(node));
  if (value < low || value > high) {
    throw error(key, fmt::format("{}, not {}", range(low, high), node.word.substr(0, kShown)));
  }
  return static_cast<int>(value);
}

int Spec::integer_or(const std::string& key, int low, int high, int fallback) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double Spec::number(const std::string& key, double low, double high) const {
  const YamlNode& node = word(key);
  double value = 0;
  if (!read_number(node, value) || !std::isfinite(value)) {
    throw error(key, "must be a number, not " + shown(node));
  }
  if (value < low || value > high) {
    throw error(key, fmt::format("{}, not {}", range(low, high), node.word.substr(0, kShown)));
  }
  return value;
}

bool Spec::flag(const std::string& key) const {
  const YamlNode& node = word(key);
  const bool value = node.word == "true";
  if (node.quoted || (!value && node.word != "false")) {
    throw error(key, "must be true or false, not " + shown(node));
  }
  return value;
}

template <class Number>
std::vector<Number> Spec::listed(const std::string& key, Number low, Number high, const char* what) const {
  const YamlNode& list = need(key);
  if (!list.is_list()) throw error(key, fmt::format("must be a list of {}, not {}", what, shown(list)));
  std::vector<Number> values;
  for (const YamlNode& item : list.items) {
    Number value = 0;
    const bool is_number = read_number(item, value) && value >= low && value <= high;  // no NaN
    if (!is_number)
      throw error(key, fmt::format("must list {} from {} to {}; it has {}", what, low, high, shown(item)));
    values.push_back(value);
  }
  return values;
}

std::vector<int> Spec::integers(const std::string& key, int low, int high) const {
  return listed(key, low, high, "whole numbers");
}

std::vector<double> Spec::numbers(const std::string& key, double low, double high) const {
  return listed(key, low, high, "numbers");
}

std::vector<std::string> Spec::texts(const std::string& key) const {
  const YamlNode& list = need(key);
  if (!list.is_list()) throw error(key, "must be a list, not " + shown(list));
  std::vector<std::string> values;
  for (const YamlNode& item : list.items) {
    if (!item.is_word()) throw error(key, "must list plain words; it has " + shown(item));
    values.push_back(item.word);
  }
  return values;
}

std::vector<std::vector<std::string>> Spec::text_lists(const std::string& key) const {
  const YamlNode& list = need(key);
  if (!list.is_list()) throw error(key, "must be a list, not " + shown(list));
  std::vector<std::vector<std::string>> values;
  const auto add = [&](const YamlNode& word) {
    if (!word.is_word()) throw error(key, "must list plain words, and lists of them; it has " + shown(word));
    values.back().push_back(word.word);
  };
  for (const YamlNode& item : list.items) {
    values.emplace_back();
    if (!item.is_list()) add(item);
    for (const YamlNode& word : item.items) add(word);
  }
  return values;
}

std::string Spec::choice(const std::string& key, const std::vector<std::string>& choices) const {
  const std::string value = text(key);
  if (std::optional<std::string> known = known_name(value, choices)) return *std::move(known);
  throw error(key, "has an " + unknown_name("value", value, choices));
}

std::vector<std::string> Spec::keys() const {
  std::vector<std::string> names;
  for (const YamlNode& entry : node_->items) names.push_back(entry.key);
  return names;
}

std::vector<std::string> Spec::words(const std::string& key) const {
  std::vector<std::string> found;
  if (has(key)) add_words(*node_->find(key), found);
  return found;
}

int Spec::line(const std::string& key) const {
  const YamlNode* value = node_->find(key);
  return value != nullptr ? value->key_line : node_->line;
}

bool Spec::is_assigned(const std::string& key) const {
  const std::string path = prefix_ + key + ".";
  return std::any_of(assigned_.begin(), assigned_.end(),
                     [&](const std::string& assigned) { return path.starts_with(assigned + "."); });
}

SpecError Spec::error_at(const std::string& key, std::string_view message) const {
  SpecError error = is_assigned(key) ? SpecError("--set", 0, message) : SpecError(file_, line(key), message);
  return std::move(error).of(prefix_ + key);
}

SpecError Spec::error(const std::string& key, std::string_view message) const {
  return error_at(key, fmt::format("{}{} {}", prefix_, key, message));
}

}  // namespace moeline
