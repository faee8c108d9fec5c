#include "experiments/cli/run_folder.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/output_file.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

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
