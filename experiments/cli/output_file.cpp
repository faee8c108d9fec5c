#include "experiments/cli/output_file.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"

namespace moeline {

void check_output(const std::string& option, const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code absent;  // then they are not the same file
    if (!std::filesystem::equivalent(output, input, absent)) continue;
    throw CLI::ValidationError(fmt::format("{} {}: would overwrite an input, {}", option, output, input));
  }
}

void check_folder_of(const std::string& output) {
  const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
  if (!std::filesystem::is_directory(folder)) throw SpecError(output, 0, "there is no folder for it");
}

}  // namespace moeline
