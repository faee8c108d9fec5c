#include "base/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr std::size_t kDeepest = 32;
constexpr std::size_t kMostValues = 1'000'000;  // with anchors and aliases: a few lines may stand for billions
constexpr std::size_t kUsualEntries = 12;       // of a mapping; nodes are dear to move
constexpr std::size_t kLongWord = 100;          // characters of an alias that count as a value more
constexpr std::size_t kShownName = 40;          // characters of a key or a tag in a message
constexpr std::string_view kRest = "a second document, or a stray character, begins";

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

int line_at(std::string_view content, std::size_t byte) {
  return 1 + static_cast<int>(std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(byte), '\n'));
}

bool means_nothing(std::string_view word) {
  return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

// Where the word at a mark begins, behind its anchor and tag.
std::size_t word_at(std::string_view content, const YAML::Mark& mark) {
  auto at = static_cast<std::size_t>(mark.pos);
  while (at < content.size() && (content[at] == '&' || content[at] == '!')) {
    at = std::min(content.find_first_of(" \t\r\n", at), content.size());
    at = std::min(content.find_first_not_of(" \t\r\n", at), content.size());
  }
  return at;
}

bool is_quote(std::string_view content, std::size_t at) {
  return at < content.size() && (content[at] == '\'' || content[at] == '"');
}

// Behind the quote that closes the word at `begin`; npos where none does.
std::size_t end_of_quoted(std::string_view content, std::size_t begin) {
  const char quote = content[begin];
  for (std::size_t at = begin + 1; at < content.size(); ++at) {
    const bool doubled = quote == '\'' && content.substr(at, 2) == "''";
    if (doubled || (quote == '"' && content[at] == '\\')) {
      ++at;
    } else if (content[at] == quote) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// yaml-cpp reports a document as events; these become nodes. The open lists and mappings are a stack: a node's items do
// not move while one of them is open, since it is the last of them.
class NodeBuilder : public YAML::EventHandler {
 public:
  NodeBuilder(const std::string& file, std::string_view content) : file_(file), content_(content) {}

  YamlNode take_root() { return std::move(root_); }
  [[nodiscard]] SpecError error(int line, std::string_view message) const { return {file_, line, message}; }
  /// Where the innermost list or mapping begins that the parser is in.
  [[nodiscard]] int line_of_open() const { return open_.empty() ? 1 : open_.back().node->line; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    throw error(line_of(mark), root_.is_nothing() ? "not valid YAML: did not find expected node content" : kRest);
  }
  void OnDocumentEnd() override {}

  // yaml-cpp has a value that is left out begin at what follows it, which may be lines below.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key_next()) throw error(line_of(mark), "a key must be a plain word");
    refuse_left_out(mark);
    YamlNode& made = add(!open_.empty() && open_.back().node->is_map() ? open_.back().key_line : line_of(mark));
    remember(made, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode word;
    word.quoted = tag != "?";
    word.line = line_of(mark);
    refuse_tag(word.line, tag);
    const std::size_t begin = word_at(content_, mark);
    const std::size_t end = is_quote(content_, begin) ? end_of_quoted(content_, begin) : begin + value.size();
    if (end == std::string_view::npos) throw unclosed(word.line);
    if (is_key_next()) open_.back().key_end = end;
    if (word.quoted || !means_nothing(value)) {
      word.kind = YamlNode::Kind::word;
      word.word = value;
    }
    add_whole(std::move(word), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {  // it is still open: what it stands for would hold itself
      throw error(line_of(mark), fmt::format("not valid YAML: {}", YAML::ErrorMsg::UNKNOWN_ANCHOR));
    }
    count_copy(known->second, open_.size());
    add_whole(known->second, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, YamlNode::Kind::map);
  }
  void OnMapEnd() override {
    refuse_repeated(*open_.back().node);
    close();
  }

 private:
  struct Open {
    YamlNode* node = nullptr;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;  // of a mapping: what comes next is the value of `key`
    std::string key{};
    int key_line = 0;
    std::size_t key_end = 0;  // where in the content
    bool is_key = false;      // of the mapping around it: refused once it is whole
    bool is_flow = false;     // in brackets or braces
  };

  [[nodiscard]] SpecError unclosed(int line) const {
    const int last = line_at(content_, content_.size());
    return error(last, fmt::format("not valid YAML: found unexpected end of stream while scanning a quoted scalar that "
                                   "begins at line {}",
                                   line));
  }

  // yaml-cpp takes a line without a colon for a key without a value, and nothing between two commas for nothing.
  void refuse_left_out(const YAML::Mark& mark) const {
    if (open_.empty()) return;
    const Open& holder = open_.back();
    const auto at = static_cast<std::size_t>(mark.pos);
    if (holder.is_flow && holder.node->is_list() && content_.find_first_of("~nN", at) != at) {
      throw error(line_of(mark), fmt::format("not valid YAML: did not find expected node content while parsing a flow "
                                             "node that begins at line {}",
                                             line_of(mark)));
    }
    const std::size_t colon = content_.find_first_not_of(" \t", holder.key_end);
    if (holder.is_flow || !holder.node->is_map() ||
        content_.substr(std::min(colon, content_.size())).starts_with(':')) {
      return;
    }
    throw error(line_of(mark),
                fmt::format("not valid YAML: could not find expected ':' while scanning a simple key that "
                            "begins at line {}",
                            holder.key_line));
  }

  [[nodiscard]] bool is_key_next() const {
    return !open_.empty() && open_.back().node->is_map() && !open_.back().has_key;
  }

  // Room for a value where the document stands: the root, an item of a list, or the value of a key.
  YamlNode& add(int line) {
    count(1, open_.size(), line);
    if (open_.empty()) {
      root_.line = line;
      return root_;
    }
    Open& holder = open_.back();
    if (is_key_next()) {
      YamlNode& key = refused_keys_.emplace_back();
      key.line = line;
      return key;
    }
    std::vector<YamlNode>& items = holder.node->items;
    if (items.empty() && holder.node->is_map()) items.reserve(kUsualEntries);
    YamlNode& made = items.emplace_back();
    made.line = line;
    if (holder.has_key) {
      made.key = std::move(holder.key);
      made.key_line = holder.key_line;
      holder.has_key = false;
    }
    return made;
  }

  // A word, or a copy of what an alias stands for, as a key or as a value.
  void add_whole(YamlNode value, YAML::anchor_t anchor) {
    if (is_key_next()) {
      if (!value.is_word()) throw error(value.line, "a key must be a plain word");
      count(1, open_.size(), value.line);
      remember(value, anchor);
      open_.back().has_key = true;
      open_.back().key = std::move(value.word);
      open_.back().key_line = value.line;
      return;
    }
    YamlNode& made = add(value.line);
    value.key = std::move(made.key);
    value.key_line = made.key_line;
    made = std::move(value);
    remember(made, anchor);
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style,
            YamlNode::Kind kind) {
    const int line = line_of(mark);
    const bool is_key = is_key_next();
    YamlNode& made = add(line);
    refuse_tag(line, tag);
    made.kind = kind;
    open_.push_back({.node = &made, .anchor = anchor, .is_key = is_key, .is_flow = style == YAML::EmitterStyle::Flow});
  }

  void close() {
    const Open done = std::move(open_.back());
    open_.pop_back();
    if (done.is_key) throw error(done.node->line, "a key must be a plain word");
    remember(*done.node, done.anchor);
  }

  void remember(const YamlNode& made, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    count_copy(made, open_.size());
    anchors_.insert_or_assign(anchor, made);
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
    throw error(second.key_line, fmt::format("key '{}' is repeated", second.key.substr(0, kShownName)));
  }

  void refuse_tag(int line, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;  // none, and those of plain and of quoted words
    throw error(line, fmt::format("tag '{}' is not used here", tag.substr(0, kShownName)));
  }

  // Before the copy is made: it may be too large for any memory.
  void count_copy(const YamlNode& copied, std::size_t depth) {
    count(1 + copied.word.size() / kLongWord, depth, copied.line);
    for (const YamlNode& item : copied.items) count_copy(item, depth + 1);
  }

  void count(std::size_t values, std::size_t depth, int line) {
    if (depth > kDeepest) throw error(line, "nested too deeply");
    values_ += values;
    if (values_ > kMostValues) throw error(line, fmt::format("holds more than {} values", kMostValues));
  }

  const std::string& file_;
  std::string_view content_;
  YamlNode root_;
  std::vector<Open> open_;
  std::list<YamlNode> refused_keys_;  // an error within such a key, as of a brace that is never closed, comes first
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::vector<const YamlNode*> by_key_;  // of the mapping at hand
  std::size_t values_ = 0;
  int documents_ = 0;
};

// yaml-cpp words its errors by its own grammar; these are for whoever wrote the file.
struct Wording {
  std::string_view parser;
  std::string_view message;
  std::string_view begun;  // what the parser was in, if the line where that begins helps
};
const std::array<Wording, 8> kWordings = {{
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "did not find expected ',' or ']'", "while parsing a flow sequence"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "did not find expected ',' or '}'", "while parsing a flow mapping"},
    {YAML::ErrorMsg::END_OF_MAP, "did not find expected key", "while parsing a block mapping"},
    {YAML::ErrorMsg::END_OF_SEQ, "did not find expected '-' indicator", "while parsing a block collection"},
    {YAML::ErrorMsg::MAP_VALUE, "mapping values are not allowed in this context", ""},
    {YAML::ErrorMsg::BLOCK_ENTRY, "block sequence entries are not allowed in this context", ""},
    {YAML::ErrorMsg::INVALID_ESCAPE, "found unknown escape character", ""},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "found character that cannot start any token", ""},
}};

SpecError not_yaml(const NodeBuilder& builder, const YAML::ParserException& thrown) {
  const int line = line_of(thrown.mark);
  const auto* const wording = std::find_if(kWordings.begin(), kWordings.end(), [&](const Wording& known) {
    return std::string_view(thrown.msg).starts_with(known.parser);
  });
  if (wording == kWordings.end()) return builder.error(line, fmt::format("not valid YAML: {}", thrown.msg));
  if (wording->begun.empty()) return builder.error(line, fmt::format("not valid YAML: {}", wording->message));
  return builder.error(line, fmt::format("not valid YAML: {} {} that begins at line {}", wording->message,
                                         wording->begun, builder.line_of_open()));
}

// yaml-cpp reads any byte, replaces those that are no character, and passes over directives that it does not know.
void refuse_unreadable(const std::string& file, std::string_view content) {
  const std::size_t readable = readable_bytes(content);
  if (readable < content.size()) {
    throw SpecError(file, line_at(content, readable), "not valid YAML: invalid UTF-8, or a control character");
  }
  for (std::size_t at = content.find('%'); at < content.size(); at = content.find('%', at + 1)) {
    const bool begins_line = at == 0 || content[at - 1] == '\n';
    if (!begins_line || content.substr(at).starts_with("%YAML ")) continue;
    throw SpecError(file, line_at(content, at), "not valid YAML: a line must not begin with %");
  }
}

// Letters, digits and what stands inside of numbers and names, behind a letter or digit: a plain word in any YAML.
bool is_one_word(std::string_view content) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !content.empty() && is_letter(content.front()) && std::all_of(content.begin(), content.end(), [&](char c) {
    return is_letter(c) || c == '_' || c == '.' || c == '-';
  });
}

// A sweep sets some words for each of its points: no parser for each.
YamlNode one_word(std::string_view content) {
  YamlNode node;
  node.line = 1;
  if (means_nothing(content)) return node;
  node.kind = YamlNode::Kind::word;
  node.word = content;
  return node;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view wanted) const {
  const auto at = std::find_if(items.begin(), items.end(), [&](const YamlNode& item) { return item.key == wanted; });
  return at == items.end() ? nullptr : &*at;
}

YamlNode parse_yaml(const std::string& file, std::string_view content) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  if (is_one_word(content)) return one_word(content);
  refuse_unreadable(file, content);
  std::istringstream stream{std::string(content)};
  NodeBuilder builder(file, content);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& thrown) {
    throw not_yaml(builder, thrown);
  }
  return builder.take_root();
}

}  // namespace moeline
