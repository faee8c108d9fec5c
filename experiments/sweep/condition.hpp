// Which combinations of axes make sense, as a study writes it: "256 % parallelism.ep == 0".
#pragma once

#include <map>
#include <string>
#include <vector>

namespace moeline {

/// Numbers, keys of axes, + - * / %, brackets, and one of == != < <= > >= between two sides. % is of whole numbers.
class Condition {
 public:
  /// Throws SpecError (without place) for text that is none, or that names a key which is not among `keys`.
  Condition(std::string text, const std::vector<std::string>& keys);

  /// REQUIRES: a value for every key that it names. Throws SpecError for one that is no number, and a division by 0.
  [[nodiscard]] bool holds(const std::map<std::string, std::string>& values) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace moeline
