// Names as people write them: which of the known ones is meant, or was perhaps meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace moeline {

/// Whether two names differ in nothing, or in the case of Latin letters alone.
[[nodiscard]] bool same_but_for_case(std::string_view a, std::string_view b);

/// The candidate that `name` means, in the spelling of the candidates: "H200" is h200. Of candidates that differ in
/// case alone it is the one that is spelt like `name`, else the first.
[[nodiscard]] std::optional<std::string> known_name(std::string_view name, std::span<const std::string> candidates);

/// `name` in the spelling of `known` where they differ in case alone, else as it is: for outputs.
[[nodiscard]] std::string spelt_as(std::string_view known, std::string_view name);

/// The candidate with the smallest edit distance to `name`, in which case counts for nothing; of equals the one that
/// begins most like it; "" when none is near enough to be a slip of the pen.
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// "unknown KIND 'name'; did you mean 'x'?" or, without a near name, the list of what there is. `prefix` stands before
/// every name and has no part in the comparison.
[[nodiscard]] std::string unknown_name(std::string_view kind, std::string_view name,
                                       std::span<const std::string> candidates, std::string_view prefix = "");

}  // namespace moeline
