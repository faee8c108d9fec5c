// DeepEP's second version: SMs by its own formula, and times by what its kernels move.
#include "curves/deep_ep_v2.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "architecture/architecture.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "hardware/profile.hpp"
#include "routing/routing.hpp"

TEST_SUITE("hardware/deep_ep_v2") {

using namespace moeline;

namespace {

// us of what the OP asks for.
double us(const std::string& hardware, const std::string& text, const std::vector<std::string>& facts = {}) {
  const HardwareProfile profile = load_profile(hardware, facts);
  const RequestedOp op = parse_op(text, profile.facts);
  return price_all(op.kernels, op.conditions, profile.facts, profile.kernels("")).solo_us;
}

Price transfer(const std::string& hardware, const std::string& text, const std::vector<std::string>& facts = {}) {
  const HardwareProfile profile = load_profile(hardware, facts);
  const RequestedOp op = parse_op(text + ",part=transfer", profile.facts);
  return price_all(op.kernels, op.conditions, profile.facts, profile.kernels(""));
}

struct SmCase {
  const char* hardware;
  int ranks, experts, top_k;
  bool hybrid, overlaps;
  int sms;
};

// By the formula with fractions, by hand but for the binomials.
constexpr SmCase kSmCases[] = {
    {"h800", 8, 256, 8, true, true, 6},          {"h800", 16, 256, 8, true, true, 8},
    {"h800", 32, 256, 8, true, true, 6},         {"h800", 64, 256, 8, true, true, 4},
    {"h800", 128, 256, 8, true, true, 4},        {"h800", 256, 256, 8, true, true, 4},
    {"h100", 8, 256, 8, true, true, 12},         {"h100", 16, 256, 8, true, true, 12},
    {"h100", 32, 256, 8, true, true, 6},         {"h100", 64, 256, 8, true, true, 4},
    {"h100", 128, 256, 8, true, true, 4},        {"h100", 256, 256, 8, true, true, 4},
    {"b200", 8, 256, 8, true, true, 24},         {"b200", 16, 256, 8, true, true, 12},
    {"b200", 32, 256, 8, true, true, 6},         {"b200", 64, 256, 8, true, true, 4},
    {"b200", 128, 256, 8, true, true, 4},        {"b200", 256, 256, 8, true, true, 4},
    {"gb200-nvl72", 8, 256, 8, true, true, 24},  {"gb200-nvl72", 16, 256, 8, true, true, 22},
    {"gb200-nvl72", 32, 256, 8, true, true, 22}, {"gb200-nvl72", 64, 256, 8, true, true, 22},
    {"h100", 32, 256, 8, false, true, 18},       {"b200", 16, 256, 8, false, true, 32},
    {"h100", 16, 128, 8, true, true, 12},        {"b200", 8, 384, 8, true, true, 24},
    {"b200", 16, 256, 8, true, false, 64},       {"h100", 64, 512, 10, true, true, 4},
    {"h800", 16, 160, 6, true, true, 8},         {"gb200-nvl72", 64, 256, 8, true, false, 64},
};

}  // namespace

TEST_CASE("SMs are those of the library's formula, in 30 cases") {
  for (const SmCase& each : kSmCases) {
    CAPTURE(each.hardware);
    CAPTURE(each.ranks);
    const MachineFacts facts = load_profile(each.hardware).facts;
    const DeepEpV2Group group{
        each.ranks, static_cast<int>(facts.gpus_per_node), each.experts, each.top_k, each.hybrid, each.overlaps};
    CHECK(deep_ep_v2_sms(group, facts) == each.sms);
  }
}

TEST_CASE("the published runs had 12 SMs at EP 8 x 2, 6 at EP 8 x 4 and, in a node of Blackwell's, 24 or 64") {
  const MachineFacts hopper = load_profile("h100").facts, blackwell = load_profile("b200").facts;
  CHECK(deep_ep_v2_sms({16, 8, 256, 8, true, true}, hopper) == 12);
  CHECK(deep_ep_v2_sms({32, 8, 256, 8, true, true}, hopper) == 6);
  CHECK(deep_ep_v2_sms({8, 8, 256, 8, true, true}, blackwell) == 24);
  CHECK(deep_ep_v2_sms({8, 8, 256, 8, true, false}, blackwell) == 64);
}

TEST_CASE("distinct ranks and nodes of a token: drawn ones meet the closed form, where every choice is as likely") {
  std::mt19937 dice(7);  // NOLINT: the same every time
  for (const int places : {2, 4, 16, 32}) {
    constexpr int kExperts = 256, kTopK = 8, kTokens = 20000;
    double reached = 0;
    for (int token = 0; token < kTokens; ++token) {
      std::set<int> chosen, of_token;
      while (static_cast<int>(chosen.size()) < kTopK) chosen.insert(static_cast<int>(dice() % kExperts));
      for (const int expert : chosen) of_token.insert(expert / (kExperts / places));
      reached += static_cast<double>(of_token.size());
    }
    CHECK(reached / kTokens == doctest::Approx(expected_places(places, kExperts, kTopK)).epsilon(0.01));
  }
}

TEST_CASE(
    "a gate limited to four of eight groups reaches no more than four nodes, and fewer than the formula reckons") {
  const Architecture model = load_architecture("deepseek-v3");
  const Spread spread = expected_spread(model, 64, 8);
  CHECK(spread.nodes_per_token <= 4);
  CHECK(spread.nodes_per_token < expected_places(8, 256, 8));
  // Four groups drawn blind, and eight of their 128 experts.
  CHECK(spread.nodes_per_token >= expected_places(4, 128, 8));
  CHECK(spread.ranks_per_token < expected_places(64, 256, 8));
}

TEST_CASE("more SMs never slow a transfer down, and end where a link is as slow") {
  for (const char* op : {"dispatch", "combine"}) {
    const std::string text = std::string(op) + ":mode=deepep_v2,ep=32,tokens=8192,experts=256,sms=";
    double before = 1e9;
    for (const int sms : {2, 4, 6, 12, 24, 48, 96}) {
      const Price price = transfer("h100", text + std::to_string(sms));
      CHECK(price.solo_us <= before);
      CHECK(price.sms == sms);
      before = price.solo_us;
    }
    CHECK(transfer("h100", text + "96").bound_by == "NIC");
    CHECK(transfer("h100", text + "2").bound_by == "SMs");
  }
}

TEST_CASE("few tokens take the latency, inside a node 15 us out and 10 us back, over EFA ten times as long") {
  const std::string eight = ":mode=deepep_v2,ep=8,tokens=1,part=transfer",
                    more = ":mode=deepep_v2,ep=16,tokens=1,part=transfer";
  CHECK(us("h200", "dispatch" + eight) == doctest::Approx(14.2).epsilon(0.02));
  CHECK(us("h200", "combine" + eight) == doctest::Approx(9.2).epsilon(0.02));
  CHECK(us("h200", "dispatch" + more, {"nic=efa"}) > 100);
  CHECK(us("h200", "dispatch" + more) < 40);
  CHECK(transfer("h200", "dispatch:mode=deepep_v2,ep=16,tokens=1").bound_by == "latency");
}

TEST_CASE("the direct way sends a token once to each rank, so that NICs carry more; in a node there is one way") {
  const std::string op = "dispatch:mode=deepep_v2,ep=32,tokens=8192,sms=24,topology=";
  CHECK(us("h100", op + "direct") > 1.5 * us("h100", op + "hybrid"));
  const std::string node = "dispatch:mode=deepep_v2,ep=8,tokens=8192,sms=24,topology=";
  CHECK(us("h100", node + "direct") == us("h100", node + "hybrid"));
}

TEST_CASE("expanded rows are more than tokens: the copy behind dispatch and the sums before combine take longer") {
  const std::string copy = "dispatch:mode=deepep_v2,ep=16,tokens=8192,part=epilogue,layout=";
  CHECK(us("h100", copy + "expanded") > us("h100", copy + "contiguous"));
  const std::string combine = "combine:mode=deepep_v2,ep=16,tokens=8192,part=transfer,sms=6,layout=";
  CHECK(us("h100", combine + "expanded") > us("h100", combine + "contiguous"));
}

TEST_CASE("the price says whose times it goes by, and that nobody measured RoCE") {
  const std::string op = "dispatch:mode=deepep_v2,ep=16,tokens=8192";
  CHECK(transfer("h100", op).note.text().find("published times of DeepEP's second version") != std::string::npos);
  CHECK(transfer("h100", op).note.text().find("RoCE") == std::string::npos);
  CHECK(transfer("h100", op, {"nic=roce"}).note.text().find("never measured over RoCE") != std::string::npos);
  CHECK(transfer("h100", op).provenance == Provenance::extrapolated);
}

}  // TEST_SUITE("hardware/deep_ep_v2")
