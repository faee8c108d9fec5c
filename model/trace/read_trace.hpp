// Files that are no traces which are read, known by their first bytes or by their names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace moeline {

inline constexpr std::string_view kWhatIsRead =
    "moeline reads Kineto's Chrome trace JSON, plain or gzipped, as torch.profiler's export_chrome_trace writes it, "
    "and "
    "Nsight Systems' SQLite exports";

/// What a file is whose text begins so, in words that follow "is"; nothing where that is not known. `beginning` should
/// have 512 bytes where the file does.
[[nodiscard]] std::optional<std::string_view> foreign_file(std::string_view file_name, std::string_view beginning);

/// The same of JSON without events, by keys of its outermost object.
[[nodiscard]] std::optional<std::string_view> foreign_json(std::span<const std::string> keys);

}  // namespace moeline
