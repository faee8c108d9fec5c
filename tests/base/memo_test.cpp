// Files that are read once: unless they change.
#include "base/memo.hpp"

#include <doctest/doctest.h>

#include "tests/support/process.hpp"

TEST_SUITE("base/memo") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("a file is read once as long as it says the same, and again when it says something else") {
  const TemporaryFolder folder;
  FileMemo<int> memo;
  int reads = 0;
  const auto read = [&] { return ++reads; };
  const std::string file = folder.write("a", "one");
  CHECK(*memo.get(file, read) == 1);
  CHECK(*memo.get(file, read) == 1);
  (void)folder.write("a", "two");
  CHECK(*memo.get(file, read) == 2);
  (void)folder.write("a", "one");
  CHECK(*memo.get(file, read) == 1);
  CHECK(*memo.get(folder.write("b", "one"), read) == 3);  // elsewhere, what it names lies elsewhere
}

}  // TEST_SUITE("base/memo")
