// Which files this program wrote: each kind of them begins in a way of its own.
#pragma once

#include <filesystem>

namespace moeline {

enum class FileKind { trace, page, svg, graph, graphviz, profile, manifest, metrics, overlap_plan, chakra, baseline };

/// "a trace", as messages name it.
[[nodiscard]] const char* name_of(FileKind kind);

/// Whether the file is one of this kind that moeline wrote, packed or plain. One that cannot be read is not.
/// REQUIRES: a regular file; reading a pipe would wait for its writer.
[[nodiscard]] bool is_own(const std::filesystem::path& file, FileKind kind);

}  // namespace moeline
