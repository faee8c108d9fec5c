// EP beyond what was measured: prices come, marked, and behave.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("cli/wide_ep") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Price priced(const HardwareProfile& profile, const std::string& text) {
  const RequestedOp op = parse_op(text, profile.facts);
  return price(op.kernels[0], op.conditions, profile.facts, profile.kernels("open-2025-late"));
}

}  // namespace

TEST_CASE(
    "EP128 to EP320, of the normal mode to its end at EP160, are extrapolated in ranks, never faster than fewer ranks, "
    "and near the NIC's rate") {
  for (const char* machine : {"h800", "h100"}) {
    const HardwareProfile profile = load_profile(machine);
    for (const char* kernel : {"dispatch", "combine"}) {
      for (const char* mode : {"normal", "low_latency"}) {
        double before = 0;
        for (const int ep : {64, 128, 144, 160, 256, 320}) {
          if (ep > 160 && std::string(mode) == "normal") continue;
          const std::string text = fmt::format("{}:mode={},ep={}", kernel, mode, ep);
          CAPTURE(text);
          const Price p = priced(profile, text);
          CHECK(p.solo_us > before);
          CHECK(p.bound_by == "NIC");
          CHECK(p.nic_GBps > 0.7 * profile.facts.nic_GBps);
          CHECK(p.nic_GBps <= profile.facts.nic_GBps);
          if (ep > 64) CHECK(p.provenance == Provenance::extrapolated);
          if (ep > 64) CHECK(p.note.text().find("ranks") != std::string::npos);
          before = p.solo_us;
        }
      }
    }
  }
}

TEST_CASE("ranks that do not divide the experts get the fewest redundant ones, as DeepSeek's EP144 and EP320 have") {
  const HardwareProfile profile = load_profile("h800");
  const auto us = [&](const std::string& text) { return priced(profile, text).solo_us; };
  CHECK(us("dispatch:ep=144") == us("dispatch:ep=144,redundant_experts=32"));
  CHECK(us("dispatch:mode=low_latency,ep=320") == us("dispatch:mode=low_latency,ep=320,redundant_experts=64"));
  CHECK(us("dispatch:ep=64") == us("dispatch:ep=64,redundant_experts=0"));
  const Outcome refused = run_moeline({"price", "h800", "dispatch:ep=144,redundant_experts=16"});
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.find("ep must divide the 256 routed and 16 redundant experts") != std::string::npos);
}

}  // TEST_SUITE("cli/wide_ep")
