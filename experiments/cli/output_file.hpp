// Which files this program wrote: each kind of them begins in a way of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moeline {

enum class FileKind { trace, page, svg, graph, graphviz, profile, manifest, metrics, overlap_plan, chakra, baseline };

/// "a trace", as messages name it.
[[nodiscard]] const char* name_of(FileKind kind);

/// Whether the file is one of this kind that moeline wrote, packed or plain. One that cannot be read is not.
/// REQUIRES: a regular file; reading a pipe would wait for its writer.
[[nodiscard]] bool is_own(const std::filesystem::path& file, FileKind kind);

// Files that a command writes because an option names them.

struct OutputFile {
  std::string option;
  std::string path;  ///< empty: the option was not given
  FileKind kind{};
};

/// Finds out before any work that would be lost. Throws UsageError where the file is one of those that the
/// command reads, or, unless `force`, where it is there already and is none of this kind that moeline wrote: it is
/// somebody's. An empty file, a pipe and a device are nobody's. Throws SpecError where its folder is not there.
void check_output(const OutputFile& output, const std::vector<std::string>& inputs, bool force);

/// Throws UsageError where two options name one file, of which only the later would be left.
void check_distinct(const std::vector<OutputFile>& outputs);

/// The refusal to write over, or beside, what moeline did not write, unless `force`.
void check_own(const std::string& option, const std::filesystem::path& file, FileKind kind, bool force);

}  // namespace moeline
