// The inputs that fuzzing keeps, in every build: small traces by hand, and what was once read wrongly.
#include <doctest/doctest.h>

#include "tests/fuzz/feed_trace.hpp"
#include "tests/support/data.hpp"
#include "tests/support/process.hpp"

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("every file of the fuzzing corpus is read or refused, and what is read replays to its own times") {
  fuzz::TraceFile file;
  int files = 0;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source("tests/fuzz/corpus"))) {
    CAPTURE(entry.path().string());
    const std::string content = content_of(entry.path());
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
    CHECK_NOTHROW(read += fuzz::feed(file, bytes) ? 1 : 0);
    ++files;
  }
  CHECK(files >= 20);
  CHECK(read >= 10);
}
