// Which files this program wrote: each kind of them begins in a way of its own.
#pragma once

#include <filesystem>
#include <set>
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

// The folder of one run: manifest.json, metrics.json, and traces/ with the traces alone, since clients load all of it.

/// Finds out before any work that would be lost. Throws SpecError where the folder cannot be made, and, unless `force`,
/// UsageError where a file that the run would write is somebody's, or traces/ holds anything but our traces,
/// whole or left behind by a run that was killed.
void check_run_folder(const std::filesystem::path& folder, bool force);

/// Makes the folder and its traces/. Throws SpecError where that fails.
void create_run_folder(const std::filesystem::path& folder);

/// Removes the traces of an earlier run, ours alone, whole or not: all in traces/ but those `written`
/// ("traces/rank_0.json"). Returns how many they were.
std::size_t remove_earlier_traces(const std::filesystem::path& folder, const std::set<std::string>& written);

}  // namespace moeline
