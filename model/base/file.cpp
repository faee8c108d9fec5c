#include "base/file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace moeline {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{64} << 20U;
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status)) throw SpecError(path.string(), 0, "no such file");
  if (fs::is_directory(status)) throw SpecError(path.string(), 0, "is a folder, not a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw SpecError(path.string(), 0, "cannot be read");
  if (fs::is_regular_file(status) && fs::file_size(path) > kLargest) {
    throw SpecError(path.string(), 0, "is larger than 64 MiB");
  }
  std::ostringstream content;
  content << stream.rdbuf();
  std::string text = std::move(content).str();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw SpecError(path.string(), 0, "is empty");
  const bool binary = std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  });
  if (binary) throw SpecError(path.string(), 0, "is not a text file");
  return text;
}

void write_text(const fs::path& path, std::string_view content) {
  const fs::path beside = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  {
    std::ofstream stream(beside, std::ios::binary);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.flush();
    if (!stream) {
      std::error_code ignored;
      fs::remove(beside, ignored);
      throw SpecError(path.string(), 0, "cannot be written");
    }
  }
  std::error_code failed;
  fs::rename(beside, path, failed);
  if (failed) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw SpecError(path.string(), 0, "cannot be written: " + failed.message());
  }
}

fs::path home() {
  const char* set = std::getenv("MOELINE_HOME");
  return set != nullptr && *set != '\0' ? fs::path(set) : fs::path(MOELINE_SOURCE_DIR);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(home() / folder, failed)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  if (failed) throw SpecError((home() / folder).string(), 0, "cannot be read; is MOELINE_HOME right?");
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_named(std::string_view kind, const std::string& reference, const fs::path& folder) {
  const fs::path path(reference);
  if (reference.find('/') != std::string::npos || path.extension() == ".yaml" || path.extension() == ".yml") {
    return path;
  }
  const std::vector<std::string> names = names_in(folder);
  if (std::find(names.begin(), names.end(), reference) == names.end()) {
    throw SpecError(unknown_name(kind, reference, names));
  }
  return home() / folder / (reference + ".yaml");
}

}  // namespace moeline
