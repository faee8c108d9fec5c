#include "timeline/gzip_text.hpp"

#include <zlib.h>

#include "base/error.hpp"

namespace moeline {

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
