#include "trace/gzip_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

constexpr unsigned kBufferBytes = 1U << 17U;

gzFile open_file(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status)) throw SpecError(path.string(), 0, "no such file");
  if (std::filesystem::is_directory(status)) throw SpecError(path.string(), 0, "is a folder, not a file");
  return gzopen(path.c_str(), "rb");
}

gzFile open_to_read(const std::filesystem::path& path) {
  errno = 0;
  gzFile file = is_stdin(path) ? gzdopen(::dup(STDIN_FILENO), "rb") : open_file(path);
  if (file == nullptr) throw SpecError(path.string(), 0, fmt::format("cannot be read: {}", std::strerror(errno)));
  gzbuffer(file, kBufferBytes);
  return file;
}

}  // namespace

GzipStream::GzipStream(const std::filesystem::path& path, const Progress& progress)
    : file_(path.string()), progress_(progress), gzip_(open_to_read(path)), buffer_(kBufferBytes + 1) {
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(path, unknown);
  if (!unknown) file_bytes_ = bytes;
  current_ = end_ = buffer_.data();
  refill();
  constexpr std::ptrdiff_t kKept = 512;
  beginning_.assign(current_, current_ + std::min(kKept, end_ - current_));
}

void GzipStream::Close::operator()(gzFile_s* file) const { gzclose(file); }

bool GzipStream::is_packed() const { return gzdirect(gzip_.get()) == 0; }

void GzipStream::drain() {
  while (!at_end()) {
    current_ = end_;
    refill();
  }
}

void GzipStream::refill() {
  before_buffer_ += static_cast<std::size_t>(end_ - buffer_.data());
  const int read = gzread(gzip_.get(), buffer_.data(), kBufferBytes);
  if (read < static_cast<int>(kBufferBytes)) throw_if_damaged();
  const auto filled = static_cast<std::size_t>(std::max(read, 0));
  buffer_[filled] = '\0';
  current_ = buffer_.data();
  end_ = current_ + filled;
  tell_progress();
}

void GzipStream::tell_progress() const {
  constexpr std::size_t kMega = 1'000'000;
  if (!progress_ || file_bytes_ < kMega) return;
  const auto read = static_cast<std::size_t>(std::max<z_off_t>(0, gzoffset(gzip_.get())));
  progress_("MB", std::min(read, file_bytes_) / kMega, file_bytes_ / kMega);
}

void GzipStream::throw_if_damaged() const {
  int code = Z_OK;
  std::string_view reason = gzerror(gzip_.get(), &code);
  if (reason.starts_with(file_ + ": ")) reason.remove_prefix(file_.size() + 2);  // zlib names the file too
  switch (code) {
    case Z_OK:
    case Z_STREAM_END:
      return;
    case Z_BUF_ERROR:
      throw SpecError(file_, 0, "its gzip data is truncated");
    case Z_ERRNO:
      throw SpecError(file_, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
    default:
      throw SpecError(file_, 0, fmt::format("its gzip data is damaged: {}", reason));
  }
}

std::string gzipped(std::string_view text) {
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's frame around it
  constexpr int kMemory = 8;
  z_stream stream{};
  MOELINE_CHECK(text.size() < (std::size_t{1} << 32U), std::to_string(text.size()));
  MOELINE_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write to it
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  MOELINE_CHECK(result == Z_STREAM_END, std::to_string(result));
  return packed;
}

}  // namespace moeline
