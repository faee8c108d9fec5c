#include "calib/fit/bench_schema.hpp"

#include <algorithm>

namespace moeline {

namespace {

using Names = std::vector<std::string>;

std::vector<BenchKey> kernel_keys() {
  const Names time = {"time"};
  const Names prompt = {"batch", "heads", "kv_heads", "query_len", "kv_len", "qk_dim", "v_dim"};
  const Names tensor = {"rows", "columns", "bytes"};
  const BenchWord scaling = {"scaling", {"1x128", "mx32"}};
  return {{"gemm_fp8", {"m", "n", "k"}, {scaling}, {"sms"}, time},
          {"gemm_fp8_masked", {"groups", "m", "n", "k"}, {scaling}, {}, time},
          {"gemm_bf16", {"m", "n", "k"}, {}, {"sms"}, time},
          {"gemm_bf16_grouped", {"groups", "m", "n", "k"}, {}, {}, time},
          {"gemm_bf16_batched", {"groups", "m", "n", "k"}, {}, {}, time},
          {"attention_forward", prompt, {}, {}, time},
          {"attention_backward", prompt, {}, {}, time},
          {"mla_decode", {"batch", "heads", "query_len", "kv_len"}, {}, {}, time},
          {"streaming", tensor, {}, {}, time},
          {"rowwise", tensor, {}, {}, time},
          {"cast_transpose", tensor, {}, {}, time},
          {"swiglu", tensor, {}, {}, time},
          {"strided", tensor, {}, {}, time},
          {"small", {"blocks"}, {}, {}, time}};
}

Names names_of(const std::vector<BenchKey>& keys) {
  Names names;
  for (const BenchKey& key : keys) names.push_back(key.name);
  return names;
}

std::vector<BenchKey> all_keys() {
  std::vector<BenchKey> keys = kernel_keys();
  keys.push_back({"launch", {}, {{"mode", {"stream", "graph"}}}, {}, {"time", "host"}});
  keys.push_back({"copy", {"bytes"}, {}, {}, {"time"}});
  keys.push_back({"contention",
                  {"sms"},
                  {{"kernel", names_of(kernel_keys())}, {"beside", {"spin", "copy", "kernel"}}},
                  {},
                  {"time", "time_alone", "copy_time", "copy_time_alone"}});
  return keys;
}

}  // namespace

const std::vector<BenchKey>& bench_keys() {
  static const std::vector<BenchKey> keys = all_keys();
  return keys;
}

const BenchKey* find_bench_key(const std::string& name) {
  const std::vector<BenchKey>& keys = bench_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const BenchKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

BenchKey contention_of(const BenchKey& kernel) {
  BenchKey key = *find_bench_key("contention");
  key.shape.insert(key.shape.end(), kernel.shape.begin(), kernel.shape.end());
  key.words.insert(key.words.end(), kernel.words.begin(), kernel.words.end());
  if (!kernel.optional.empty()) key.optional = {"kernel_sms"};
  return key;
}

}  // namespace moeline
