#include "calib/bench/grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "calib/bench/attention_grid.hpp"

TEST_SUITE("calib/bench/grid") {

using namespace moeline::bench;

namespace {

using Names = std::set<std::string>;

struct Grid {
  std::string key;
  Names required;  // of calib/schema.md
  Names optional;
  std::function<std::vector<Case>(Preset)> cases;
};

constexpr int kSmsOfH200 = 132;

/// Every grid but contention's, whose parameters depend on the kernel.
std::vector<Grid> grids() {
  const Names attention = {"batch", "heads", "kv_heads", "query_len", "kv_len", "qk_dim", "v_dim"};
  const Names memory_bound = {"rows", "columns", "bytes"}, grouped = {"groups", "m", "n", "k"};
  return {
      {"gemm_fp8", {"m", "n", "k", "scaling"}, {"sms"}, [](Preset p) { return gemm_fp8_cases(p, "1x128"); }},
      {"gemm_fp8_masked",
       {"groups", "m", "n", "k", "scaling"},
       {},
       [](Preset p) { return gemm_fp8_masked_cases(p, "1x128"); }},
      {"gemm_bf16", {"m", "n", "k"}, {"sms"}, gemm_bf16_cases},
      {"gemm_bf16_grouped", grouped, {}, gemm_bf16_grouped_cases},
      {"gemm_bf16_batched", grouped, {}, gemm_bf16_batched_cases},
      {"attention_forward", attention, {}, attention_forward_cases},
      {"attention_backward", attention, {}, attention_backward_cases},
      {"mla_decode", {"batch", "heads", "query_len", "kv_len"}, {}, mla_decode_cases},
      {"streaming", memory_bound, {}, streaming_cases},
      {"rowwise", memory_bound, {}, rowwise_cases},
      {"cast_transpose", memory_bound, {}, cast_transpose_cases},
      {"swiglu", memory_bound, {}, swiglu_cases},
      {"strided", memory_bound, {}, strided_cases},
      {"small", {"blocks"}, {}, [](Preset) { return small_cases(); }},
      {"launch", {"mode"}, {}, [](Preset) { return launch_cases(); }},
      {"copy", {"bytes"}, {}, copy_cases},
  };
}

Names names_of(const Case& c) {
  Names names;
  for (const auto& parameter : c.parameters) names.insert(parameter.name);
  return names;
}

void check_names(const Case& c, const Names& required, const Names& optional) {
  CAPTURE(to_string(c));
  const Names names = names_of(c);
  CHECK(names.size() == c.parameters.size());
  CHECK(std::includes(names.begin(), names.end(), required.begin(), required.end()));
  for (const auto& name : names) CHECK((required.contains(name) || optional.contains(name)));
}

std::set<std::string> texts_of(const std::vector<Case>& cases) {
  std::set<std::string> texts;
  for (const auto& c : cases) texts.insert(to_string(c));
  CHECK(texts.size() == cases.size());  // no case twice
  return texts;
}

void check_quick_is_part_of_full(const std::vector<Case>& quick, const std::vector<Case>& full) {
  const auto few = texts_of(quick), all = texts_of(full);
  CHECK_FALSE(few.empty());
  for (const auto& text : few) CHECK_MESSAGE(all.contains(text), text);
}

}  // namespace

TEST_CASE("every case of a grid has exactly the parameters of calib/schema.md") {
  for (const auto& grid : grids())
    for (const auto preset : {Preset::quick, Preset::full})
      for (const auto& c : grid.cases(preset)) {
        CAPTURE(grid.key);
        check_names(c, grid.required, grid.optional);
      }
}

TEST_CASE("quick measures a part of what full measures, and nothing twice") {
  for (const auto& grid : grids()) {
    CAPTURE(grid.key);
    check_quick_is_part_of_full(grid.cases(Preset::quick), grid.cases(Preset::full));
  }
  check_quick_is_part_of_full(contention_cases(Preset::quick, "1x128", kSmsOfH200),
                              contention_cases(Preset::full, "1x128", kSmsOfH200));
}

TEST_CASE("shapes of products are those that cuBLASLt takes with block scaling") {
  for (const auto& grid : grids()) {
    if (!grid.key.starts_with("gemm_fp8")) continue;
    for (const auto& c : grid.cases(Preset::full)) {
      CAPTURE(to_string(c));
      CHECK(c.number("k") % 128 == 0);  // whole blocks of scales
      CHECK(c.number("n") % 16 == 0);
      CHECK(c.number("m") % 4 == 0);
    }
  }
}

TEST_CASE("shapes of products leave some to predict: of DeepSeek-V3 and of no model") {
  std::set<std::pair<std::int64_t, std::int64_t>> products;
  for (const auto& c : gemm_fp8_cases(Preset::full, "1x128")) products.insert({c.number("n"), c.number("k")});
  CHECK(products.contains({24576, 1536}));
  CHECK(products.contains({5120, 5120}));
  CHECK(products.size() == 10);
}

TEST_CASE("rows and columns are those that the memory-bound kernels take") {
  for (const auto& grid : grids()) {
    if (!grid.required.contains("columns")) continue;
    for (const auto& c : grid.cases(Preset::full)) {
      CAPTURE(grid.key);
      CAPTURE(to_string(c));
      CHECK(c.number("rows") % 128 == 0);    // a scale per 128 rows of a column
      CHECK(c.number("rows") <= 65535);      // blocks in y
      CHECK(c.number("columns") % 64 == 0);  // tiles of the transpose
      CHECK(c.number("bytes") > 0);
      if (grid.key == "strided")
        CHECK(c.number("columns") % kHeadColumns == 0);
      else
        CHECK(c.number("columns") % 128 == 0);  // a scale per 128 columns
    }
  }
}

TEST_CASE("kernels that share a key are told apart by their bytes") {
  for (const auto& cases : {streaming_cases(Preset::full), rowwise_cases(Preset::full)}) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> bytes;
    for (const auto& c : cases) bytes[{c.number("rows"), c.number("columns")}].insert(c.number("bytes"));
    for (const auto& [shape, distinct] : bytes) CHECK(distinct.size() == 2);
  }
}

TEST_CASE("bytes are what a kernel reads and writes") {
  CHECK(add_bytes(2, 128) == 3 * 2 * 128 * 2);                       // a, b, c in BF16
  CHECK(permutation_bytes(2, 128) == 2 * (2 * 128 * 2) + 2 * 4);     // in, out, an index per row
  CHECK(rms_norm_bytes(2, 128) == 2 * (2 * 128 * 2) + 128 * 2);      // in, out, the weight
  CHECK(cast_bytes(2, 128) == 2 * 128 * 2 + 2 * 128 + 2 * 4);        // BF16 in, FP8 out, a scale per 128
  CHECK(swiglu_bytes(2, 128) == 2 * 256 * 2 + 2 * 128 + 2 * 4);      // gate and up, FP8 out, scales
  CHECK(rotary_bytes(2, 384) == 2 * (2 * 2 * 64 * 2) + 2 * 64 * 4);  // two heads' 64 columns, and 32 pairs of FP32
}

TEST_CASE("contention names a kernel that is measured alone too, with parameters of its own") {
  std::map<std::string, Grid> by_key;
  for (const auto& grid : grids()) by_key.emplace(grid.key, grid);
  for (const auto preset : {Preset::quick, Preset::full})
    for (const auto& c : contention_cases(preset, "1x128", kSmsOfH200)) {
      REQUIRE(by_key.contains(c.text("kernel")));
      Names required = by_key.at(c.text("kernel")).required;
      required.insert({"kernel", "beside", "sms"});
      check_names(c, required, {"kernel_sms"});
    }
}

TEST_CASE("contention holds SMs where something holds them, and a GEMM told of it uses the rest") {
  for (const auto& c : contention_cases(Preset::full, "1x128", kSmsOfH200)) {
    CAPTURE(to_string(c));
    const auto sms = c.number("sms");
    CHECK((c.text("beside") == "kernel") == (sms == 0));
    CHECK(sms < kSmsOfH200);
    if (c.has("kernel_sms")) CHECK(c.number("kernel_sms") + sms == kSmsOfH200);
  }
}

TEST_CASE("without FP8 block scaling contention measures the other kernels") {
  for (const auto& c : contention_cases(Preset::full, "", kSmsOfH200)) CHECK(c.text("kernel") != "gemm_fp8");
}

}  // TEST_SUITE("calib/bench/grid")
