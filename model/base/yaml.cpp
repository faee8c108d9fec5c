#include "base/yaml.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <new>

#include "base/error.hpp"

namespace moeline {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kMostValues = 1'000'000;  // with anchors and aliases: a few lines may stand for billions
constexpr std::size_t kUsualEntries = 12;       // of a mapping; nodes are dear to move
constexpr std::size_t kLongWord = 100;          // characters of an alias that count as a value more
constexpr std::size_t kShown = 40;              // characters of a key or a tag in a message
constexpr std::string_view kRest = "a second document, or a stray character, begins";

int line_of(const yaml_mark_t& mark) { return static_cast<int>(mark.line) + 1; }

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

bool means_nothing(std::string_view word) {
  return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

// libyaml's events of a text, one at a time.
class Events {
 public:
  Events(const std::string& file, std::string_view content) : file_(file), content_(content) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(content.data()), content.size());
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) throw not_yaml();
    return event_;
  }
  [[nodiscard]] const yaml_event_t& now() const { return event_; }
  [[nodiscard]] int line() const { return line_of(event_.start_mark); }
  [[nodiscard]] SpecError error(int line, std::string_view message) const { return {file_, line, message}; }

 private:
  [[nodiscard]] SpecError not_yaml() const {
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const std::string_view problem = parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {  // which knows the byte alone
      const auto* const end = content_.begin() + std::min(parser_.problem_offset, content_.size());
      return error(1 + static_cast<int>(std::count(content_.begin(), end, '\n')),
                   fmt::format("not valid YAML: {}", problem));
    }
    const int line = line_of(parser_.problem_mark);
    // What follows a document is no error of its own until it turns out not to begin another.
    if (problem == "did not find expected <document start>") return error(line, kRest);
    if (parser_.context == nullptr) return error(line, fmt::format("not valid YAML: {}", problem));
    return error(line, fmt::format("not valid YAML: {} {} that begins at line {}", problem, parser_.context,
                                   line_of(parser_.context_mark)));
  }

  const std::string& file_;
  std::string_view content_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

class Reader {
 public:
  Reader(const std::string& file, std::string_view content) : events_(file, content) {}

  YamlNode document() {
    (void)events_.next();  // the stream's start
    if (events_.next().type == YAML_STREAM_END_EVENT) return {};
    (void)events_.next();
    YamlNode root;
    read(root, 0);
    (void)events_.next();  // the document's end
    if (events_.next().type != YAML_STREAM_END_EVENT) throw events_.error(events_.line(), kRest);
    return root;
  }

 private:
  // The event at hand, into a node that has its key already.
  void read(YamlNode& made, int depth) {
    made.line = events_.line();
    count(1, depth, made.line);
    const yaml_event_t& event = events_.now();
    if (event.type == YAML_ALIAS_EVENT) return copy_anchored(made, depth);
    std::string anchor;
    if (event.type == YAML_SCALAR_EVENT) {
      anchor = text_of(event.data.scalar.anchor);
      read_word(made);
    } else if (event.type == YAML_SEQUENCE_START_EVENT) {
      anchor = text_of(event.data.sequence_start.anchor);
      refuse_tag(event.data.sequence_start.tag);
      read_list(made, depth);
    } else {
      anchor = text_of(event.data.mapping_start.anchor);
      refuse_tag(event.data.mapping_start.tag);
      read_map(made, depth);
    }
    if (anchor.empty()) return;
    count_copy(made, depth);
    anchors_.insert_or_assign(anchor, made);
  }

  void read_word(YamlNode& made) {
    const auto& scalar = events_.now().data.scalar;
    refuse_tag(scalar.tag);
    made.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE || scalar.tag != nullptr;
    const std::string_view word(reinterpret_cast<const char*>(scalar.value), scalar.length);
    if (!made.quoted && means_nothing(word)) return;
    made.kind = YamlNode::Kind::word;
    made.word = word;
  }

  void read_list(YamlNode& made, int depth) {
    made.kind = YamlNode::Kind::list;
    while (events_.next().type != YAML_SEQUENCE_END_EVENT) read(made.items.emplace_back(), depth + 1);
  }

  void read_map(YamlNode& made, int depth) {
    made.kind = YamlNode::Kind::map;
    while (events_.next().type != YAML_MAPPING_END_EVENT) {
      YamlNode key;
      read(key, depth + 1);
      if (!key.is_word()) throw events_.error(key.line, "a key must be a plain word");
      (void)events_.next();
      if (made.items.empty()) made.items.reserve(kUsualEntries);
      YamlNode& value = made.items.emplace_back();
      value.key = std::move(key.word);
      value.key_line = key.line;
      read(value, depth + 1);
    }
    refuse_repeated(made);
  }

  void refuse_repeated(const YamlNode& map) {
    std::vector<const YamlNode*>& sorted = by_key_;
    sorted.clear();
    for (const YamlNode& item : map.items) sorted.push_back(&item);
    std::sort(sorted.begin(), sorted.end(), [](const YamlNode* a, const YamlNode* b) {
      const int order = a->key.compare(b->key);
      return order != 0 ? order < 0 : a < b;
    });
    const auto same = std::adjacent_find(sorted.begin(), sorted.end(),
                                         [](const YamlNode* a, const YamlNode* b) { return a->key == b->key; });
    if (same == sorted.end()) return;
    const YamlNode& second = **std::next(same);
    throw events_.error(second.key_line, fmt::format("key '{}' is repeated", second.key.substr(0, kShown)));
  }

  void refuse_tag(const yaml_char_t* tag) const {
    const std::string_view text = text_of(tag);
    if (text.empty() || text == "!") return;
    throw events_.error(events_.line(), fmt::format("tag '{}' is not used here", text.substr(0, kShown)));
  }

  void copy_anchored(YamlNode& made, int depth) {
    const auto known = anchors_.find(text_of(events_.now().data.alias.anchor));
    if (known == anchors_.end()) throw events_.error(made.line, "not valid YAML: the referenced anchor is not defined");
    count_copy(known->second, depth);
    YamlNode copy = known->second;
    copy.key = std::move(made.key);
    copy.key_line = made.key_line;
    made = std::move(copy);
  }

  // Before the copy is made: it may be too large for any memory.
  void count_copy(const YamlNode& copied, int depth) {
    count(1 + copied.word.size() / kLongWord, depth, copied.line);
    for (const YamlNode& item : copied.items) count_copy(item, depth + 1);
  }

  void count(std::size_t values, int depth, int line) {
    if (depth > kDeepest) throw events_.error(line, "nested too deeply");
    values_ += values;
    if (values_ > kMostValues) throw events_.error(line, fmt::format("holds more than {} values", kMostValues));
  }

  Events events_;
  std::map<std::string, YamlNode, std::less<>> anchors_;
  std::vector<const YamlNode*> by_key_;  // of the mapping at hand
  std::size_t values_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view wanted) const {
  const auto at = std::find_if(items.begin(), items.end(), [&](const YamlNode& item) { return item.key == wanted; });
  return at == items.end() ? nullptr : &*at;
}

YamlNode parse_yaml(const std::string& file, std::string_view content) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  return Reader(file, content).document();
}

}  // namespace moeline
