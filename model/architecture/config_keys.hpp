// What the keys of Hugging Face's config.json files mean, whichever family uses them: the names that one field goes
// under, the keys that say nothing about size or time, and what the others stand for.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace moeline {

/// The names under which model families write one field, ours first.
[[nodiscard]] std::vector<std::string> names_of(const std::string& field);
/// The field that has this name among its names; without one, the name itself.
[[nodiscard]] std::string field_of(const std::string& name);

/// The key changes neither how many operations and bytes a model takes nor which kernels run: tokens, dropout,
/// initialisation, rotary angles, scales, activation functions, defaults of generation.
[[nodiscard]] bool is_neutral(const std::string& key);

/// A part of an architecture, and the key that asks for it.
struct KeyMeaning {
  const char* key;
  const char* what;
  std::vector<std::string> harmless;  ///< values that do not ask for it, beside those that says_nothing() knows
};
/// Every key of an architecture that we have met, in the order in which a message names them.
[[nodiscard]] std::span<const KeyMeaning> key_meanings();

/// The refusal of a part that a key asks for: "not modelled: WHAT (KEY)".
[[nodiscard]] std::string not_modelled(const std::string& what, const std::string& key);

/// A value asks for nothing: null, false, a zero, an empty text.
[[nodiscard]] bool says_nothing(const std::string& word);

}  // namespace moeline
