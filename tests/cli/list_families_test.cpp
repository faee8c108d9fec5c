// What the program says of families of models, and the page that repeats it.
#include <fmt/format.h>

#include "base/precision.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("cli/list_families") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("the zoo's page has what the program knows of each family, and every number format with its bytes") {
  const std::string page = content_of(source("model/zoo/README.md"));
  CHECK_MESSAGE(page.find(run_moeline({"list", "families"}).out) != std::string::npos, "paste `moeline list families`");
  for (int i = 0; i < kPrecisions; ++i) {
    const auto precision = static_cast<Precision>(i);
    CHECK_MESSAGE(
        page.find(fmt::format("| {} | {:.4g} |", name_of(precision), bytes_per_weight(precision))) != std::string::npos,
        name_of(precision));
  }
}

TEST_CASE("an unknown family is refused with the nearest name") {
  CHECK(run_moeline({"list", "families", "qwen3_nxt"}).exit_code == 3);
  CHECK(run_moeline({"list", "families", "qwen3_nxt"}).err.find("did you mean 'qwen3_next'?") != std::string::npos);
  CHECK(run_moeline({"list", "families", "qwen3_next", "--format", "json"}).out.find("\"described\"") !=
        std::string::npos);
}

}  // TEST_SUITE("cli/list_families")
