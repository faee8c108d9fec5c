// libFuzzer feeds bytes to everything that reads a trace: README.md.
#include "tests/fuzz/feed_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static moeline::fuzz::TraceFile file;
  (void)moeline::fuzz::feed(file, {data, size});
  return 0;
}
