// A string as JSON writes it, quotes included.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace moeline
