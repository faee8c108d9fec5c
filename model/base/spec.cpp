#include "base/spec.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/memo.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLargestBytes = std::size_t{1} << 20U;
constexpr int kDeepest = 32;
constexpr int kMostValues = 1'000'000;  // aliases of aliases: a few lines may stand for billions of values
constexpr std::size_t kShown = 40;      // characters of a value in a message

bool is_quoted(const YAML::Node& scalar) { return scalar.Tag() == "!"; }

// What yaml-cpp takes silently and nobody means: repeated keys, tags, and sizes that end in no memory.
class Check {
 public:
  explicit Check(const std::string& file) : file_(file) {}

  void visit(const YAML::Node& node, int depth = 0) {
    if (depth > kDeepest) throw error(node, "nested too deeply");
    if (++values_ > kMostValues) throw error(node, fmt::format("holds more than {} values", kMostValues));
    const std::string& tag = node.Tag();
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw error(node, fmt::format("tag '{}' is not used here", tag.substr(0, kShown)));
    }
    if (node.IsSequence()) {
      for (const auto& item : node) visit(item, depth + 1);
    } else if (node.IsMap()) {
      visit_entries(node, depth);
    }
  }

 private:
  void visit_entries(const YAML::Node& map, int depth) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) throw error(entry.first, "a key must be a plain word");
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) {
        throw error(entry.first, fmt::format("key '{}' is repeated", key.substr(0, kShown)));
      }
      visit(entry.second, depth + 1);
    }
  }

  [[nodiscard]] SpecError error(const YAML::Node& node, std::string_view message) const {
    return {file_, node.Mark().line + 1, message};
  }

  const std::string& file_;
  int values_ = 0;
};

// Where a document begins, and nothing of what it holds.
class DocumentStart : public YAML::EventHandler {
 public:
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark& start) override { mark = start; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::Load ignores what follows the first document, and YAML::LoadAll never ends at a stray comma.
void refuse_rest(const std::string& file, const std::string& content) {
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  DocumentStart start;
  (void)parser.HandleNextDocument(start);
  if (parser.HandleNextDocument(start)) {
    throw SpecError(file, start.mark.line + 1, "a second document, or a stray character, begins");
  }
}

// The checks are made once for each text: a sweep parses the same one at every point.
YAML::Node parse_checked(const std::string& file, const std::string& content) {
  static Memo<std::string, bool> checked(kManyTexts);
  try {
    YAML::Node node = YAML::Load(content);
    (void)checked.get(content, [&] {
      refuse_rest(file, content);
      Check(file).visit(node);
      return true;
    });
    return node;
  } catch (const YAML::Exception& error) {
    throw SpecError(file, error.mark.line + 1, "not valid YAML: " + error.msg);
  }
}

std::string shown(const YAML::Node& node) {
  if (!node.IsScalar()) return node.IsNull() ? "nothing" : node.IsMap() ? "a mapping" : "a list";
  return fmt::format("{}'{}'", is_quoted(node) ? "the text " : "", node.Scalar().substr(0, kShown));
}

// Decimal only, and the whole of it: YAML's octal 010 and hexadecimal 0x10 are more often slips than meant.
template <class Number>
bool read_number(const YAML::Node& node, Number& value) {
  if (!node.IsScalar() || is_quoted(node)) return false;
  const std::string& text = node.Scalar();
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

void add_words(const YAML::Node& node, std::vector<std::string>& words) {
  if (node.IsNull()) words.emplace_back();
  if (node.IsScalar()) words.push_back(node.Scalar());
  if (node.IsSequence()) {
    for (const auto& item : node) add_words(item, words);
  }
  if (!node.IsMap()) return;
  for (const auto& entry : node) {
    words.push_back(entry.first.Scalar());
    add_words(entry.second, words);
  }
}

std::string range(double low, double high) {
  return low == high ? fmt::format("must be {}", low) : fmt::format("must be from {} to {}", low, high);
}

}  // namespace

Spec::Spec(std::string file, YAML::Node node, std::string prefix, std::vector<std::string> assigned)
    : file_(std::move(file)), node_(std::move(node)), prefix_(std::move(prefix)), assigned_(std::move(assigned)) {}

Spec Spec::load(const std::filesystem::path& path) {
  return parse(path.string(), read_text(path));
}

Spec Spec::parse(const std::string& file, const std::string& content) {
  if (content.size() > kLargestBytes) throw SpecError(file, 0, "is larger than 1 MiB");
  YAML::Node node = parse_checked(file, content);
  if (!node.IsMap()) throw SpecError(file, 1, "must be a mapping of keys to values");
  return {file, node, "", {}};
}

void Spec::set(std::string_view assignment) {
  const std::string_view shortened = assignment.substr(0, 2 * kShown);
  const std::size_t equals = assignment.find('=');
  const std::string path = fmt::format(".{}.", assignment.substr(0, equals));
  if (equals == std::string_view::npos || path.find("..") != std::string::npos) {
    throw SpecError("--set", 0, fmt::format("'{}' is not of the form key=value", shortened));
  }
  const YAML::Node value = parse_checked("--set", std::string(assignment.substr(equals + 1)));
  const std::string_view keys = assignment.substr(0, equals);
  assigned_.emplace_back(keys);
  YAML::Node at = node_;
  std::size_t from = 0;
  for (std::size_t dot = keys.find('.'); dot != std::string_view::npos; dot = keys.find('.', from)) {
    const std::string key(keys.substr(from, dot - from));
    if (!at[key]) assigned_.emplace_back(keys.substr(0, dot));  // no line of the file has it
    if (at[key] && !at[key].IsMap()) {
      throw SpecError("--set", 0, fmt::format("'{}': '{}' is not a mapping", shortened, key));
    }
    at.reset(at[key]);
    from = dot + 1;
  }
  const std::string last(keys.substr(from));
  at.remove(last);  // assigning in place would change every alias of the value as well
  at[last] = value;
}

void Spec::expect(const std::vector<std::string>& keys) const {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw error_at(key, unknown_name("key", key, keys, prefix_));
    }
  }
}

bool Spec::has(const std::string& key) const { return static_cast<bool>(node_[key]); }
bool Spec::is_list(const std::string& key) const { return has(key) && node_[key].IsSequence(); }

bool Spec::is_null(const std::string& key) const { return has(key) && node_[key].IsNull(); }

YAML::Node Spec::need(const std::string& key) const {
  if (!has(key)) throw error(key, "is missing");
  return node_[key];
}

YAML::Node Spec::scalar(const std::string& key) const {
  YAML::Node node = need(key);
  if (!node.IsScalar()) throw error(key, "must be a single value, not " + shown(node));
  return node;
}

Spec Spec::map(const std::string& key) const {
  const YAML::Node node = need(key);
  if (!node.IsMap()) throw error(key, "must be a mapping, not " + shown(node));
  return {file_, node, prefix_ + key + ".", assigned_};
}

Spec Spec::map_or_empty(const std::string& key) const {
  if (has(key)) return map(key);
  return {file_, YAML::Node(YAML::NodeType::Map), prefix_ + key + ".", assigned_};
}

std::string Spec::text(const std::string& key) const {
  std::string value = scalar(key).Scalar();
  if (value.empty()) throw error(key, "must not be empty");
  return value;
}

std::string Spec::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

int Spec::integer(const std::string& key, int low, int high) const {
  const YAML::Node node = scalar(key);
  long long value = 0;
  if (!read_number(node, value)) throw error(key, "must be a whole number, not " + shown(node));
  if (value < low || value > high) {
    throw error(key, fmt::format("{}, not {}", range(low, high), node.Scalar().substr(0, kShown)));
  }
  return static_cast<int>(value);
}

int Spec::integer_or(const std::string& key, int low, int high, int fallback) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double Spec::number(const std::string& key, double low, double high) const {
  const YAML::Node node = scalar(key);
  double value = 0;
  if (!read_number(node, value) || !std::isfinite(value)) {
    throw error(key, "must be a number, not " + shown(node));
  }
  if (value < low || value > high) {
    throw error(key, fmt::format("{}, not {}", range(low, high), node.Scalar().substr(0, kShown)));
  }
  return value;
}

bool Spec::flag(const std::string& key) const {
  const YAML::Node node = scalar(key);
  const bool value = node.Scalar() == "true";
  if (is_quoted(node) || (!value && node.Scalar() != "false")) {
    throw error(key, "must be true or false, not " + shown(node));
  }
  return value;
}

template <class Number>
std::vector<Number> Spec::listed(const std::string& key, Number low, Number high, const char* what) const {
  const YAML::Node list = need(key);
  if (!list.IsSequence()) throw error(key, fmt::format("must be a list of {}, not {}", what, shown(list)));
  std::vector<Number> values;
  for (const auto& item : list) {
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
  const YAML::Node list = need(key);
  if (!list.IsSequence()) throw error(key, "must be a list, not " + shown(list));
  std::vector<std::string> values;
  for (const auto& item : list) {
    if (!item.IsScalar()) throw error(key, "must list plain words; it has " + shown(item));
    values.push_back(item.Scalar());
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
  for (const auto& entry : node_) names.push_back(entry.first.Scalar());
  return names;
}

std::vector<std::string> Spec::words(const std::string& key) const {
  std::vector<std::string> found;
  if (has(key)) add_words(node_[key], found);
  return found;
}

int Spec::line(const std::string& key) const {
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.first.Mark().line + 1;
  }
  return node_.Mark().line + 1;
}

bool Spec::is_assigned(const std::string& key) const {
  const std::string path = prefix_ + key + ".";
  return std::any_of(assigned_.begin(), assigned_.end(),
                     [&](const std::string& assigned) { return path.starts_with(assigned + "."); });
}

SpecError Spec::error_at(const std::string& key, std::string_view message) const {
  return is_assigned(key) ? SpecError("--set", 0, message) : SpecError(file_, line(key), message);
}

SpecError Spec::error(const std::string& key, std::string_view message) const {
  return error_at(key, fmt::format("{}{} {}", prefix_, key, message));
}

}  // namespace moeline
