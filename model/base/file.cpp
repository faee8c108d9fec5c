#include "base/file.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace moeline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20U;
constexpr const char* kUnfinished = ".tmp";

// Stops at the limit: a pipe or a device may have no end.
std::string read_bytes(std::istream& stream, const fs::path& path) {
  std::string text;
  std::array<char, std::size_t{1} << 14U> block;  // not written before it is read into: sweeps read many short files
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())), stream.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kLargest) throw SpecError(path.string(), 0, "is larger than 64 MiB");
  }
  return text;
}

std::string read_file(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status)) throw SpecError(path.string(), 0, "no such file");
  if (fs::is_directory(status)) throw SpecError(path.string(), 0, "is a folder, not a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw SpecError(path.string(), 0, "cannot be read");
  return read_bytes(stream, path);
}

// Once: who asks again finds it empty.
const std::string& stdin_text() {
  static const std::string text = read_bytes(std::cin, "-");
  return text;
}

// Names line and byte: nobody sees a stray NUL.
void check_is_text(const std::string& text, const fs::path& path) {
  const auto stray = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  });
  if (stray == text.end()) return;
  throw SpecError(path.string(), 1 + static_cast<int>(std::count(text.begin(), stray, '\n')),
                  fmt::format("is not a text file: its byte {} is 0x{:02x}", stray - text.begin() + 1,
                              static_cast<unsigned char>(*stray)));
}

SpecError not_written(const fs::path& path, int number) {
  return {path.string(), 0, "cannot be written: " + std::generic_category().message(number)};
}

// 0, or the number of the error.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// `named`: the file that a refusal is about.
void write_bytes(const fs::path& path, std::string_view content, const fs::path& named) {
  constexpr int kMode = 0666;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor < 0) throw not_written(named, errno);
  const int failed = write_all(descriptor, content);
  const int not_closed = ::close(descriptor) != 0 ? errno : 0;  // of a network's disk it may be the first to know
  if (failed != 0 || not_closed != 0) throw not_written(named, failed != 0 ? failed : not_closed);
}

// What a link stands for: the link stays one.
fs::path target_of(const fs::path& path) {
  std::error_code failed;
  const fs::path target = fs::is_symlink(path, failed) ? fs::canonical(path, failed) : path;
  return failed ? path : target;
}

bool is_stdout(const fs::path& path) {
  return path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

// In order with all else that is printed, also where stdout is a file.
void print(std::string_view content) { (void)std::fwrite(content.data(), 1, content.size(), stdout); }

// The program; where this code is part of a shared library, as of Python's module, that.
fs::path running_file() {
  std::error_code failed;
  Dl_info code{};
  if (::dladdr(reinterpret_cast<const void*>(&is_stdout), &code) != 0) {
    const fs::path library = fs::canonical(code.dli_fname, failed);
    if (!failed && library.extension() == ".so") return library;
  }
  return fs::read_symlink("/proc/self/exe", failed);
}

}  // namespace

bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool is_stream = is_stdout(path) || path == "/dev/stderr" || path == "/dev/fd/2" || path == "/proc/self/fd/2";
  return is_stream || (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status));
}

std::string read_content(const fs::path& path) {
  if (std::optional<std::string> given = given_text(path)) return *std::move(given);
  return is_stdin(path) ? stdin_text() : read_file(path);
}

std::string read_text(const fs::path& path) {
  std::string text = read_content(path);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw SpecError(path.string(), 0, "is empty");
  check_is_text(text, path);
  return text;
}

void write_text(const fs::path& path, std::string_view content) {
  if (is_stdout(path)) return print(content);
  if (is_special(path)) return write_bytes(path, content, path);
  const fs::path target = target_of(path);
  const fs::path beside = fmt::format("{}.{}{}", target.string(), ::getpid(), kUnfinished);
  std::error_code ignored;
  try {
    write_bytes(beside, content, path);
  } catch (const SpecError&) {
    fs::remove(beside, ignored);
    throw;
  }
  std::error_code failed;
  fs::rename(beside, target, failed);
  if (failed) {
    fs::remove(beside, ignored);
    throw SpecError(path.string(), 0, "cannot be written: " + failed.message());
  }
}

bool is_unfinished(const fs::path& path) {
  const std::string process = path.stem().extension();  // ".4711" of "page.html.4711.tmp"
  return path.extension() == kUnfinished && process.size() > 1 &&
         process.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::optional<fs::path> above_program(const fs::path& relative) {
  std::error_code failed;
  fs::path folder = running_file().parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path found = fs::canonical(folder / relative, failed);
    if (!failed) return found;
  }
  return std::nullopt;
}

fs::path home() {
  const char* set = std::getenv("MOELINE_HOME");
  if (set != nullptr && *set != '\0') return set;
  static const std::optional<fs::path> found = above_program("share/moeline");
  if (found) return *found;
  throw SpecError("no share/moeline lies beside or above this program; MOELINE_HOME names the folder with hwprofiles");
}

fs::path measured_data() {
  const char* set = std::getenv("MOELINE_DATA");
  return set != nullptr && *set != '\0' ? fs::path(set) : home() / "../shared/data";
}

std::vector<std::string> names_in(const fs::path& folder, const char* ending) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(home() / folder, failed)) {
    if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
  }
  if (failed) throw SpecError((home() / folder).string(), 0, "cannot be read; is MOELINE_HOME right?");
  std::sort(names.begin(), names.end());
  return names;
}

fs::path beside(const fs::path& file, const fs::path& path) {
  std::error_code failed;
  fs::path candidate = file.parent_path() / path;
  return fs::exists(candidate, failed) ? candidate : path;
}

fs::path find_named(std::string_view kind, const std::string& reference, const fs::path& folder,
                    const fs::path& written_in) {
  if (given_text(reference)) return reference;
  fs::path path = beside(written_in, reference);
  if (reference.find('/') != std::string::npos || path.extension() == ".yaml" || path.extension() == ".yml") {
    std::error_code failed;
    if (fs::exists(path, failed)) return path;
    throw UnknownName(fmt::format("unknown {} '{}': no such file", kind, reference));
  }
  std::error_code failed;
  const fs::path named = home() / folder / (reference + ".yaml");
  if (fs::exists(named, failed)) return named;  // who must be refused is shown the names that there are
  return home() / folder / (expect_name(kind, reference, names_in(folder)) + ".yaml");
}

namespace {

std::vector<std::pair<std::string, std::string>>& given() {
  static thread_local std::vector<std::pair<std::string, std::string>> texts;
  return texts;
}

}  // namespace

GivenText::GivenText(std::string name, std::string text) { given().emplace_back(std::move(name), std::move(text)); }

GivenText::~GivenText() { given().pop_back(); }

std::optional<std::string> given_text(const std::filesystem::path& name) {
  const auto found =
      std::find_if(given().rbegin(), given().rend(), [&](const auto& each) { return each.first == name; });
  return found == given().rend() ? std::nullopt : std::optional(found->second);
}

}  // namespace moeline
