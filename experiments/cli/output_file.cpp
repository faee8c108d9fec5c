#include "experiments/cli/output_file.hpp"

#include <fmt/format.h>
#include <map>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

void check_no_input(const OutputFile& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code absent;  // then they are not the same file
    if (!fs::equivalent(output.path, input, absent)) continue;
    throw CLI::ValidationError(fmt::format("{} {}: would overwrite an input, {}", output.option, output.path, input));
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
    if (!is_new) throw CLI::ValidationError(known->second + " and " + output.option + " name the same file");
  }
}

void check_own(const std::string& option, const fs::path& file, FileKind kind, bool force) {
  std::error_code failed;
  if (force || is_special(file) || !fs::is_regular_file(file, failed)) return;
  if (fs::file_size(file, failed) == 0 || is_own(file, kind)) return;
  throw CLI::ValidationError(
      fmt::format("{} {}: is there already, and is not {} that moeline wrote; --force writes over it", option,
                  file.string(), name_of(kind)));
}

void add_force(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "write also over files that moeline did not write");
}

}  // namespace moeline
