// Prices over fine grids: more work is not quicker, but where a kernel stops to split what it does.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "hardware/profile.hpp"

TEST_SUITE("properties/price_cliffs") {

using namespace moeline;

namespace {

struct Grid {
  std::string op;  // with {} where the size stands
  std::vector<int> sizes;
  double least = 0.97;  // of the price before, that the next one is
};

std::vector<int> between(double first, double last, int count) {
  std::vector<int> sizes;
  for (int i = 0; i < count; ++i) {
    const int size = static_cast<int>(std::lround(first * std::pow(last / first, i / (count - 1.0))));
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int> multiples(int of, int count) {
  std::vector<int> sizes;
  for (int i = 1; i <= count; ++i) sizes.push_back(of * i);
  return sizes;
}

// The cliffs that are left, by kernel: with one sequence more there is no room for another part of the keys, with some
// columns more none for another part of k (BF16 of cuBLAS), as libraries choose.
constexpr double kSplitOfKeys = 0.92, kSplitOfK = 0.92;

std::vector<Grid> grids(const MachineFacts& facts) {
  std::vector<Grid> all;
  std::vector<std::string> formats = {"bf16"};
  if (facts.fp8_tflops > 0) formats.emplace_back("fp8");
  for (const std::string& format : formats) {
    const double of_rows = format == "bf16" ? kSplitOfK : 0.97;
    for (const char* shape : {"n=7168,k=2048", "n=2112,k=7168", "n=4096,k=4096"}) {
      all.push_back({fmt::format("linear:dtype={},m={{}},{}", format, shape), between(1, 32768, 100), of_rows});
    }
    all.push_back({fmt::format("linear:dtype={},m=64,n={{}},k=4096", format), multiples(128, 160), kSplitOfK});
    for (const char* shape :
         {"hidden=7168,inter=2048,top_k=8,experts=256,ep=8", "hidden=4096,inter=1536,top_k=8,experts=128,moe_tp=4"}) {
      all.push_back({fmt::format("moe:dtype={},tokens={{}},{}", format, shape), between(1, 32768, 80)});
    }
    for (const int heads : {16, 128}) {
      all.push_back({fmt::format("mla_decode:batch={{}},kv_len=4096,heads={},kv_dtype={}", heads, format),
                     between(1, 512, 80), kSplitOfKeys});
      all.push_back(
          {fmt::format("mla_decode:batch=64,kv_len={{}},heads={},kv_dtype={}", heads, format), between(64, 65536, 80)});
    }
    for (const char* heads : {"heads=64,kv_heads=8", "heads=8,kv_heads=1"}) {
      all.push_back({fmt::format("gqa_decode:batch={{}},kv_len=4096,{},kv_dtype={}", heads, format),
                     between(1, 512, 80), kSplitOfKeys});
      all.push_back(
          {fmt::format("gqa_decode:batch=64,kv_len={{}},{},kv_dtype={}", heads, format), between(64, 65536, 80)});
    }
  }
  all.push_back({"attention_forward:seq={},batch=1,heads=64,kv_heads=8,qk_dim=128,v_dim=128", between(64, 32768, 80)});
  return all;
}

}  // namespace

TEST_CASE("no price falls by more than 3 % when work grows, nor by 8 % where a kernel no longer splits it") {
  for (const char* machine : {"a100", "h20", "h200", "b200", "gb300-nvl72"}) {
    const HardwareProfile profile = load_profile(machine);
    for (const char* set : {"sglang", "trtllm"}) {
      const KernelSet kernels = profile.kernels(set);
      for (const Grid& grid : grids(profile.facts)) {
        double before = 0;
        for (const int size : grid.sizes) {
          const RequestedOp op = parse_op(fmt::format(fmt::runtime(grid.op), size), profile.facts);
          const double us = price_all(op.kernels, op.conditions, profile.facts, kernels).solo_us;
          CAPTURE(machine);
          CAPTURE(set);
          CAPTURE(op.text);
          CHECK(us >= grid.least * before);
          before = us;
        }
      }
    }
  }
}

}  // TEST_SUITE("properties/price_cliffs")
