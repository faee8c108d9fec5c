// YAML as it is written: nodes with their lines, of one document. Nothing is converted: a number is a word.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace moeline {

struct YamlNode {
  enum class Kind { nothing, word, list, map };  ///< nothing: null, ~ or no value at all

  Kind kind = Kind::nothing;
  bool quoted = false;  ///< a word that is text, whatever it looks like
  int line = 0;         ///< where the value begins; 0: in no file
  int key_line = 0;     ///< where its key stands
  std::string key;      ///< its name in the mapping that holds it
  std::string word;
  std::vector<YamlNode> items;  ///< of a list or a mapping, in their order

  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_word() const { return kind == Kind::word; }
  [[nodiscard]] bool is_nothing() const { return kind == Kind::nothing; }
  /// The value at a key of a mapping, null where it has none.
  [[nodiscard]] const YamlNode* find(std::string_view wanted) const;
};

/// The only document of a text; an alias is a copy of what it stands for. Throws SpecError with `file` and the line of
/// what is not YAML, of a second document, a repeated key, a key that is no word, a tag, of mappings nested more than
/// 32 deep, and of aliases that stand for more than a million values.
[[nodiscard]] YamlNode parse_yaml(const std::string& file, std::string_view content);

/// Decimal only, the whole word, and not quoted: YAML's octal 010 and hexadecimal 0x10 are more often slips than meant.
template <class Number>
bool read_number(const YamlNode& node, Number& value) {
  if (!node.is_word() || node.quoted) return false;
  const char* const last = node.word.data() + node.word.size();
  const auto [end, failed] = std::from_chars(node.word.data(), last, value);
  return failed == std::errc() && end == last;
}

}  // namespace moeline
