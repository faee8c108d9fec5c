// Bytes as the files that a user would have: one file, or several in one input.
#pragma once

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace moeline::fuzz {

/// Files in a folder of their own, which goes with this; TMPDIR says where, best in memory. Behind a line "### NAME"
/// begins the file of that name (at most four; a name is letters, digits, '.', '_' and '-'), so that an input may hold
/// a scenario and the table that it names; what comes before the first such line is the file `first`.
class FedFiles {
 public:
  FedFiles(std::string_view bytes, const std::string& first) {
    std::filesystem::create_directory(folder_);
    std::string name = first;
    for (std::size_t at = 0; files_.size() < kMost; at = bytes.find(kMark, at)) {
      if (bytes.substr(at).starts_with(kMark)) {
        const std::size_t line_end = std::min(bytes.find('\n', at), bytes.size());
        name = plain(bytes.substr(at + kMark.size(), line_end - at - kMark.size()), first);
        at = std::min(line_end + 1, bytes.size());
      }
      write(name, bytes.substr(at, bytes.find(kMark, at) - at));
      if (bytes.find(kMark, at) == std::string_view::npos) break;
    }
  }
  ~FedFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  FedFiles(const FedFiles&) = delete;
  FedFiles& operator=(const FedFiles&) = delete;

  [[nodiscard]] const std::filesystem::path& first() const { return files_.front(); }
  [[nodiscard]] const std::vector<std::filesystem::path>& all() const { return files_; }

 private:
  static constexpr std::string_view kMark = "### ";
  static constexpr std::size_t kMost = 4, kLongestName = 80;

  static std::string plain(std::string_view name, const std::string& otherwise) {
    if (name.empty() || name.size() > kLongestName || name.front() == '.') return otherwise;
    for (const char c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("._-").find(c) == std::string_view::npos)
        return otherwise;
    }
    return std::string(name);
  }

  void write(const std::string& name, std::string_view content) {
    files_.push_back(folder_ / name);
    std::ofstream(files_.back(), std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("moeline-fuzz-" + std::to_string(::getpid()));
  std::vector<std::filesystem::path> files_;
};

}  // namespace moeline::fuzz
