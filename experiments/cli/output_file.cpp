#include "experiments/cli/output_file.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/console.hpp"
#include "experiments/cli/output/validate_output.hpp"
#include "experiments/page/svg.hpp"
#include "hardware/profile.hpp"
#include "measured/replay_text.hpp"
#include "timeline/chakra.hpp"
#include "timeline/write_trace.hpp"
#include "trace/gzip_stream.hpp"

namespace moeline {
namespace {

// What the beginning of a file begins with, and holds besides.
struct Mark {
  const char* name;
  std::string_view begins, holds;
};

constexpr std::array<Mark, 11> kMarks = {{
    {"a trace", "{\n\"distributedInfo\": ", kTraceMark},
    {"a page", "<!DOCTYPE html>\n", "\n<meta name=\"generator\" content=\"moeline\">\n"},
    {"a picture", kSvgStart, ""},
    {"a task graph", kGraphJsonStart, ""},
    {"a Graphviz file", kGraphvizStart, ""},
    {"a profile", "name: ", kProfileMark},
    {"a run's manifest", "{\n \"schema_version\": ", "\n \"program\": \"moeline "},
    {"a run's metrics", "{\n \"schema_version\": ", "\n \"scenario\": {"},
    {"an overlap plan", "# Found by `moeline search` for ", ""},
    {"a Chakra trace", kChakraStart, ""},
    {"a baseline", "{\n \"schema_version\": ", kBaselineMark},
}};

const Mark& mark_of(FileKind kind) { return kMarks[static_cast<std::size_t>(kind)]; }

std::string beginning_of(const std::filesystem::path& file) {
  constexpr std::size_t kEnough = std::size_t{1} << 14U;  // a profile's mark stands behind its facts
  std::string text;
  try {
    for (GzipStream stream(file); !stream.at_end() && text.size() < kEnough;) text += stream.Take();
  } catch (const SpecError&) {  // damaged: what came so far tells nothing
    return "";
  }
  return text;
}

}  // namespace

const char* name_of(FileKind kind) { return mark_of(kind).name; }

bool is_own(const std::filesystem::path& file, FileKind kind) {
  const Mark& mark = mark_of(kind);
  const std::string text = beginning_of(file);
  return text.starts_with(mark.begins) && text.find(mark.holds) != std::string::npos;
}

namespace {

namespace fs = std::filesystem;

void check_no_input(const OutputFile& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code absent;  // then they are not the same file
    if (!fs::equivalent(output.path, input, absent)) continue;
    throw UsageError(fmt::format("{} {}: would overwrite an input, {}", output.option, output.path, input));
  }
}

void check_place(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) throw SpecError(path, 0, "is a folder, not a file");
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder, failed)) throw SpecError(path, 0, "there is no folder for it");
}

}  // namespace

void check_output(const OutputFile& output, const std::vector<std::string>& inputs, bool force) {
  if (output.path.empty()) return;
  check_no_input(output, inputs);
  check_place(output.path);
  check_own(output.option, output.path, output.kind, force);
}

void check_distinct(const std::vector<OutputFile>& outputs) {
  std::map<fs::path, std::string> options;
  for (const OutputFile& output : outputs) {
    if (output.path.empty() || is_special(output.path)) continue;
    const auto [known, is_new] = options.try_emplace(fs::weakly_canonical(fs::absolute(output.path)), output.option);
    if (!is_new) throw UsageError(known->second + " and " + output.option + " name the same file");
  }
}

void check_own(const std::string& option, const fs::path& file, FileKind kind, bool force) {
  std::error_code failed;
  if (force || is_special(file) || !fs::is_regular_file(file, failed)) return;
  if (fs::file_size(file, failed) == 0 || is_own(file, kind)) return;
  throw UsageError(fmt::format("{} {}: is there already, and is not {} that moeline wrote; --force writes over it",
                               option, file.string(), name_of(kind)));
}

namespace {

constexpr const char* kOption = "-o";
constexpr const char* kTraces = "traces";

SpecError not_created(const fs::path& folder, const std::string& why) {
  return {folder.string(), 0, "cannot be created: " + why};
}

// A file stands where the folder, or one above it, should be.
void check_no_file_in_the_way(const fs::path& folder) {
  std::error_code failed;
  fs::path above = fs::absolute(folder / kTraces);
  while (!fs::exists(above, failed) && above.has_relative_path()) above = above.parent_path();
  if (!fs::is_directory(above, failed)) throw not_created(folder, above.string() + " is a file");
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code absent;  // then there are none
  for (const auto& entry : fs::directory_iterator(folder, absent)) files.push_back(entry.path());
  return files;
}

}  // namespace

void check_run_folder(const fs::path& folder, bool force) {
  check_no_file_in_the_way(folder);
  check_own(kOption, folder / "manifest.json", FileKind::manifest, force);
  check_own(kOption, folder / "metrics.json", FileKind::metrics, force);
  for (const fs::path& file : files_in(folder / kTraces)) {
    if (!is_unfinished(file)) check_own(kOption, file, FileKind::trace, force);
  }
}

void create_run_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder / kTraces, failed);
  if (failed) throw not_created(folder, failed.message());
}

std::size_t remove_earlier_traces(const fs::path& folder, const std::set<std::string>& written) {
  std::size_t removed = 0;
  for (const fs::path& file : files_in(folder / kTraces)) {
    const bool is_earlier = !written.contains(kTraces + ("/" + file.filename().string()));
    const bool is_ours = is_unfinished(file) || is_own(file, FileKind::trace);
    if (!is_earlier || !fs::is_regular_file(file) || !is_ours) continue;
    removed += fs::remove(file) ? 1 : 0;
  }
  return removed;
}

}  // namespace moeline
