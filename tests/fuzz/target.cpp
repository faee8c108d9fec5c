// libFuzzer feeds bytes to one reader: README.md.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/readers.hpp"

// What is read once, machines and models, is no input's time.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  (void)moeline::fuzz::MOELINE_FEED("");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)moeline::fuzz::MOELINE_FEED({reinterpret_cast<const char*>(data), size});
  return 0;
}
