// The all-to-all inside a node: how its forms move with shapes and SMs, and which OPs are priced by them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "curves/form.hpp"
#include "hardware/measured_range.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"
#include "moe/all_to_all.hpp"
#include "routing/gating.hpp"

TEST_SUITE("hardware/all_to_all_form") {

using namespace moeline;

namespace {

MachineFacts hopper() {
  MachineFacts machine = load_profile("h100").facts;
  machine.l2_mb = 50;
  return machine;
}

struct Fitted {
  std::string form, op;
  std::vector<double> constants;
};

// Near those of H100, of NVL72 where it is NVLink's, and with GB200's crowded combine.
const std::vector<Fitted> kNormal = {
    {"deepep_dispatch", "dispatch:mode=normal", {25, 0.8, 0.19, 0.017, 0.38, 0.042, 0.014, 1.5}},
    {"deepep_combine", "combine:mode=normal", {24.7, 0.78, 0.14, 0.47, 0.046, 0.068, 0.13, 0.025, 1.5}},
    {"deepep_combine", "combine:mode=normal", {29, 0.8, 0.15, 0, 0.039, 0.43, 0.11, 0.027, 1.5}}};
const std::vector<Fitted> kLowLatency = {
    {"deepep_low_latency_dispatch", "dispatch:mode=low_latency", {10, 2.1, 0.17, 0.43, 1.74, 0.34}},
    {"deepep_low_latency_combine", "combine:mode=low_latency", {10.7, 0.86, 0.08, 0.0045, 2}}};
const std::vector<Fitted> kNvlink = {{"trtllm_nvlink_prepare", "dispatch:mode=nvlink,part=prepare", {11, 0.7, 7}},
                                     {"trtllm_nvlink", "dispatch:mode=nvlink", {9.7, 0.7, 35, 1.2, 0.5, 0.16, 1.4, 2}},
                                     {"trtllm_nvlink", "combine:mode=nvlink", {10.5, 0.84, 24, 2.2, 2, 0.94, 1, 12}}};

std::vector<Fitted> all_of_them() {
  std::vector<Fitted> all = kNormal;
  for (const auto& more : {kLowLatency, kNvlink}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

Evaluation timed(const Fitted& fitted, const std::string& keys) {
  const RequestedOp op = parse_op(fitted.op + "," + keys, hopper());
  return evaluate(form_named(fitted.form)->curve(op.kernels.front(), op.conditions.sms, hopper()), fitted.constants);
}

Operator op_of(const std::string& text, const MachineFacts& machine) { return parse_op(text, machine).kernels.front(); }

// R (1 - C(E - E/R, k) / C(E, k))
double distinct_ranks(int ranks, int experts, int top_k) {
  double missed = 1;
  for (int i = 0; i < top_k; ++i) missed *= (experts - static_cast<double>(experts) / ranks - i) / (experts - i);
  return ranks * (1 - missed);
}

}  // namespace

TEST_CASE("a token goes to as many ranks as its experts lie on, uniformly chosen") {
  const auto ranks = [](int ep, int experts, int top_k) {
    const std::string text = fmt::format("dispatch:ep={},experts={},top_k={}", ep, experts, top_k);
    return op_of(text, hopper()).traffic.ranks_per_token;
  };
  CHECK(ranks(8, 128, 1) == doctest::Approx(1));
  CHECK(ranks(8, 8, 2) == doctest::Approx(2));
  CHECK(ranks(8, 8, 8) == doctest::Approx(8));
  CHECK(ranks(2, 4, 2) == doctest::Approx(2 * (1 - 1.0 / 6)));
  for (const int experts : {128, 256, 512}) {
    CHECK(ranks(8, experts, 8) == doctest::Approx(distinct_ranks(8, experts, 8)));
  }
  TokenStream tokens({256, 8, 1, 1}, 7);
  double reached = 0;
  constexpr int kTokens = 4000;
  for (int token = 0; token < kTokens; ++token) {
    std::set<std::size_t> own;
    for (const std::size_t expert : tokens.next()) own.insert(expert / 32);
    reached += static_cast<double>(own.size());
  }
  CHECK(ranks(8, 256, 8) == doctest::Approx(reached / kTokens).epsilon(0.01));
}

TEST_CASE("more tokens, wider ones and more experts of each never take less time") {
  for (const Fitted& each : all_of_them()) {
    for (const int experts : {64, 256}) {
      const auto us = [&](int tokens, int hidden, int top_k) {
        return timed(each, fmt::format("ep=8,experts={},tokens={},hidden={},top_k={}", experts, tokens, hidden, top_k))
            .us;
      };
      for (int tokens = 1; tokens < 100000; tokens *= 4) {
        CAPTURE(each.op);
        CAPTURE(tokens);
        CHECK(us(2 * tokens, 4096, 6) >= us(tokens, 4096, 6));
        CHECK(us(tokens, 7168, 6) >= us(tokens, 4096, 6));
        CHECK(us(tokens, 4096, 8) >= us(tokens, 4096, 6));
      }
    }
  }
}

TEST_CASE("more ranks never take less time") {
  for (const Fitted& each : all_of_them()) {
    for (int tokens = 1; tokens < 100000; tokens *= 8) {
      double before = 0;
      for (const int ep : {2, 4, 8}) {
        const double us = timed(each, fmt::format("ep={},experts=256,tokens={}", ep, tokens)).us;
        CHECK(us >= before);
        before = us;
      }
    }
  }
}

TEST_CASE("more SMs never make a normal transfer slower, nor twice as many twice as quick") {
  for (const Fitted& each : kNormal) {
    for (const int hidden : {2048, 7168}) {
      for (int tokens = 1; tokens < 100000; tokens *= 8) {
        const auto us = [&](int sms) {
          return timed(each, fmt::format("ep=8,experts=256,hidden={},tokens={},sms={}", hidden, tokens, sms)).us;
        };
        for (const int sms : {4, 8, 12, 16, 20}) {
          CHECK(us(sms + 4) <= us(sms));
          CHECK(us(2 * sms) > us(sms) / 2);
        }
      }
    }
  }
}

TEST_CASE("what L2 keeps is no slower, and cold transfers do not know of L2") {
  for (const Fitted& each : all_of_them()) {
    const auto us = [&](const char* l2) {
      return timed(each, fmt::format("ep=8,experts=256,tokens=512,l2={}", l2)).us;
    };
    CHECK(us("hot") <= us("cold"));
    CHECK(us("cold") == timed(each, "ep=8,experts=256,tokens=512").us);
  }
}

TEST_CASE("a normal transfer is bound by its SMs when they are few, and by NVLink when they are many") {
  for (const Fitted& each : kNormal) {
    CHECK(timed(each, "ep=8,tokens=65536,sms=4").bound == "SMs");
    CHECK(timed(each, "ep=8,tokens=65536,sms=64").bound == "NVLink");
  }
}

TEST_CASE("in low-latency mode 8 experts keep 8 SMs busy, however many the machine has") {
  for (const Fitted& each : kLowLatency) {
    const auto us = [&](int experts) {
      return timed(each, fmt::format("ep=8,tokens=1024,hidden=4096,top_k=2,experts={}", experts)).us;
    };
    CHECK(us(8) > us(16));
    CHECK(us(16) >= us(64));  // NVLink may bind by then
  }
  // 132 SMs: up to 132 experts one each, up to 264 two.
  const auto start = [](int experts) {
    return timed(kLowLatency.front(), fmt::format("ep=2,tokens=1,top_k=1,hidden=1,experts={}", experts)).us;
  };
  CHECK(start(132) == doctest::Approx(start(8)));
  CHECK(start(134) == doctest::Approx(start(132) + 2.1));
  CHECK(start(266) == doctest::Approx(start(132) + 4.2));
}

TEST_CASE("transfers are those of the tables inside a node, and DeepEP's curve goes on between nodes") {
  const MachineFacts machine = hopper();
  for (const char* mode : {"normal", "low_latency"}) {
    const std::string prefix = std::string(mode) == "normal" ? "" : "low_latency_";
    for (const std::string kernel : {"dispatch", "combine"}) {
      CHECK(op_of(fmt::format("{}:mode={},ep=8", kernel, mode), machine).measured_as == prefix + kernel + "_node");
      CHECK(op_of(fmt::format("{}:mode={},ep=16", kernel, mode), machine).measured_as.empty());
    }
  }
  const Dimensions near = measured_dimensions_of(op_of("dispatch:ep=8,hidden=4096,top_k=6,tokens=64", machine), 24);
  CHECK(near.at(Dimension::hidden) == 4096);
  CHECK(near.at(Dimension::top_k) == 6);
  CHECK(near.at(Dimension::tokens) == 64);
  CHECK(near.at(Dimension::experts) == 256);
  CHECK_FALSE(measured_dimensions_of(op_of("dispatch:ep=16", machine), 24).contains(Dimension::hidden));
}

TEST_CASE("NVLink's all-to-all is prepared, dispatched and combined, within a domain") {
  const MachineFacts machine = load_profile("gb200-nvl72").facts;
  const auto op = [&](const std::string& text) { return op_of(text, machine); };
  CHECK(op("dispatch:mode=nvlink,ep=32").measured_as == "nvlink_dispatch");
  CHECK(op("dispatch:mode=nvlink,ep=32,part=prepare").measured_as == "nvlink_prepare");
  CHECK(op("combine:mode=nvlink,ep=32").measured_as == "nvlink_combine");
  CHECK(op("combine:mode=nvlink,ep=32,dtype=nvfp4").measured_as == "nvlink_combine_low_precision");
  const auto record = [&](const char* dtype) {
    return op(fmt::format("dispatch:mode=nvlink,ep=4,dtype={}", dtype)).traffic.record_bytes;
  };
  CHECK(record("bf16") == 14336);
  CHECK(record("fp8") == 7168);
  CHECK(record("nvfp4") == 4032);
  for (const int ep : {2, 4, 8, 32}) {
    const Traffic t = op(fmt::format("dispatch:mode=nvlink,gating=distinct,ep={}", ep)).traffic;
    CHECK(t.ranks_per_token == std::min(8, ep));
    CHECK(t.nvlink_bytes == doctest::Approx(t.copied_bytes * (ep - 1) / ep));
  }
  CHECK_THROWS_WITH_AS(op("dispatch:mode=nvlink,ep=144"), doctest::Contains("mode"), SpecError);
  CHECK_THROWS_WITH_AS(op("combine:mode=nvlink,ep=8,part=prepare"), doctest::Contains("part"), SpecError);
  CHECK_THROWS_WITH_AS(op("dispatch:mode=normal,ep=8,dtype=nvfp4"), doctest::Contains("dtype"), SpecError);
}

TEST_CASE("experts given are chosen without groups, and top-k is at most their number") {
  const MachineFacts machine = hopper();
  CHECK(op_of("dispatch:ep=8,experts=160,top_k=8", machine).traffic.experts == 160);
  CHECK_THROWS_WITH_AS(op_of("dispatch:ep=8,experts=16,top_k=17", machine), doctest::Contains("top_k"), SpecError);
  CHECK_THROWS_WITH_AS(op_of("dispatch:ep=8,experts=4,redundant_experts=4", machine), doctest::Contains("top_k"),
                       SpecError);
}

}  // TEST_SUITE("hardware/all_to_all_form")
