// Text packed as gzip packs it.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

/// Equal text gives equal bytes: no name and no time of the file.
[[nodiscard]] std::string gzipped(std::string_view text);

}  // namespace moeline
