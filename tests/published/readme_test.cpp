// The README's figures of accuracy are the output of `moeline validate`, those of a measured trace of `moeline
// analyze`, and the shares that are extrapolated those of the simulations.
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

// The paragraph of `text` that holds `part`, indented as a block of Markdown.
std::string block_with(const std::string& part, const std::string& text) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  const std::size_t before = text.rfind("\n\n", at);
  std::size_t begin = before == std::string::npos ? 0 : before + 2;
  const std::size_t end = std::min(text.find("\n\n", at), text.size());
  std::string block;
  while (begin < end) {
    const std::size_t next = std::min(text.find('\n', begin), end);
    block += "    " + text.substr(begin, next - begin) + "\n";
    begin = next + 1;
  }
  return block;
}

}  // namespace

TEST_CASE("the README's tables of accuracy are what validate prints") {
  if (!present(data_folder() / "deepep/deepep_v1_h100_normal.csv")) return;
  const Outcome outcome = run_moeline({"validate"});
  REQUIRE(outcome.exit_code == 0);
  const std::string readme = content_of(source("README.md"));
  for (const char* part : {"\ninference_throughput: ", "of the best null", "kernels left out of the fit in turn"}) {
    const std::string block = block_with(part, outcome.out);
    CHECK_MESSAGE(readme.find(block) != std::string::npos, "the README does not hold\n" << block);
  }
}

TEST_CASE("the README's tables of the measured trace are what analyze prints") {
  if (!present(training_trace())) return;
  const Outcome outcome = run_moeline({"analyze", training_trace().string(), "--scenario", chunk_scenario().string()});
  REQUIRE(outcome.exit_code == 0);
  const std::string readme = content_of(source("README.md"));
  for (const char* part : {"as HTA counts", "length us"}) {
    const std::string block = block_with(part, outcome.out);
    CHECK_MESSAGE(readme.find(block) != std::string::npos, "the README does not hold\n" << block);
  }
}

TEST_CASE("the README's shares of extrapolated prices are those of the two inference facts") {
  const double prefill = run_prefill().extrapolated_share();
  const double decode = run_decode({"workload.query_len=2", "workload.mtp_acceptance=0.6"}).extrapolated_share();
  const std::string shares = fmt::format("(prefill {:.0f} %, decode {:.0f} %)", 100 * prefill, 100 * decode);
  CHECK_MESSAGE(content_of(source("README.md")).find(shares) != std::string::npos,
                "the README does not hold " << shares);
}
