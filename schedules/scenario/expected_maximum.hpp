#pragma once

namespace moeline {

/// Expected maximum of `ranks` independent standard normal numbers (0 for one rank).
[[nodiscard]] double expected_maximum(int ranks);

}  // namespace moeline
