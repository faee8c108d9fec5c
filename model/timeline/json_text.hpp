// A string as JSON writes it, quotes included. What is no UTF-8 becomes U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace moeline
