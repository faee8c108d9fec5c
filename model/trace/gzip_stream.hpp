// A file as RapidJSON reads it: one character at a time, unpacked on the way if it is gzip, a buffer in memory. And
// text that becomes such a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"

struct gzFile_s;

namespace moeline {

/// RapidJSON's input stream concept (hence the capitals) over zlib's gzread, which passes plain files through.
/// "-" is stdin. Throws SpecError for a file that is missing, a folder or unreadable, or whose gzip data is truncated
/// or damaged.
class GzipStream {
 public:
  using Ch = char;

  /// Tells how many MB of the file have been read, where it has a size.
  explicit GzipStream(const std::filesystem::path& path, const Progress& progress = {});
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() = default;

  /// At the end of the file: '\0'.
  [[nodiscard]] char Peek() const { return *current_; }
  char Take() {
    const char taken = *current_;
    if (current_ != end_ && ++current_ == end_) refill();
    return taken;
  }
  /// Bytes taken so far, of the unpacked text.
  [[nodiscard]] std::size_t Tell() const {
    return before_buffer_ + static_cast<std::size_t>(current_ - buffer_.data());
  }

  [[nodiscard]] bool at_end() const { return current_ == end_; }
  /// The first bytes of the unpacked text, 512 where there are as many.
  [[nodiscard]] const std::string& beginning() const { return beginning_; }
  /// Whether the file is gzip.
  [[nodiscard]] bool is_packed() const;
  /// Reads the rest and forgets it: damage further on throws now.
  void drain();

  // RapidJSON compiles its in-place mode even where it is not used.
  static char* PutBegin() { return nullptr; }
  static void Put(char /*c*/) {}
  static std::size_t PutEnd(char* /*begin*/) { return 0; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  void refill();
  void throw_if_damaged() const;
  void tell_progress() const;

  std::string file_;
  Progress progress_;
  std::size_t file_bytes_ = 0;  // 0: nobody knows
  std::unique_ptr<gzFile_s, Close> gzip_;
  std::vector<char> buffer_;  // one longer than what is read: a '\0' follows the last character
  std::string beginning_;
  std::size_t before_buffer_ = 0;
  const char* current_ = nullptr;
  const char* end_ = nullptr;
};

/// Text packed as gzip packs it. Equal text gives equal bytes: no name and no time of the file.
[[nodiscard]] std::string gzipped(std::string_view text);

}  // namespace moeline
