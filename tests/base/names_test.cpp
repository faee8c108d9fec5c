// Names as people write them: case counts for nothing, and a slip of the pen finds the name that was meant.
#include "base/names.hpp"

#include <doctest/doctest.h>

#include <vector>

TEST_SUITE("base/names") {

using namespace moeline;

namespace {

const std::vector<std::string> kMachines = {"a100", "b200", "gb200-nvl72", "h100", "h20", "h200", "h800"};

}  // namespace

TEST_CASE("a name that differs in case alone is known, in our spelling") {
  CHECK(known_name("H200", kMachines) == "h200");
  CHECK(known_name("GB200-NVL72", kMachines) == "gb200-nvl72");
  CHECK(known_name("h20", kMachines) == "h20");
  for (const char* other : {"H2", "H2000", "h200 ", "", "H10O"}) {
    CAPTURE(other);
    CHECK_FALSE(known_name(other, kMachines));
  }
}

TEST_CASE("of candidates that differ in case alone, the one that is spelt so is meant") {
  const std::vector<std::string> both = {"Mine", "mine"};
  CHECK(known_name("mine", both) == "mine");
  CHECK(known_name("Mine", both) == "Mine");
  CHECK(known_name("MINE", both) == "Mine");
}

TEST_CASE("case counts for nothing in the distance to the nearest name") {
  CHECK(nearest("H10O", kMachines) == "h100");
  CHECK(nearest("H8OO", kMachines) == "h800");
  CHECK(nearest("GB200-NVL", kMachines) == "gb200-nvl72");
  CHECK(nearest("H2000", kMachines) == "h200");
  CHECK(nearest("TPU", kMachines).empty());
}

TEST_CASE("a name is shown in our spelling, and another name as it was written") {
  CHECK(spelt_as("deepseek-v3", "DeepSeek-V3") == "deepseek-v3");
  CHECK(spelt_as("deepseek-v3", "./DeepSeek-V3") == "./DeepSeek-V3");
}

}  // TEST_SUITE("base/names")
