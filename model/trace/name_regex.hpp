// A regular expression that names of kernels are searched for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace moeline {

/// RE2's syntax; case is ignored, and a name may hold any bytes. Names are searched in their first 1000 characters.
class NameRegex {
 public:
  /// Throws SpecError for a pattern that is no regular expression.
  explicit NameRegex(const std::string& pattern);
  [[nodiscard]] bool found_in(std::string_view name) const;

 private:
  std::shared_ptr<const re2::RE2> regex_;
};

}  // namespace moeline
