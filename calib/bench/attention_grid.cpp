#include "attention_grid.hpp"

#include <cstdint>

namespace moeline::bench {
namespace {

struct Heads {
  std::int64_t query, kv, qk_dim, v_dim;
};
constexpr Heads kMla{128, 128, 192, 128};
constexpr Heads kMlaOfRank{16, 16, 192, 128};  // of 8 ranks that share the heads
constexpr Heads kGrouped{64, 8, 128, 128};

struct Lengths {
  std::int64_t query, kv;
};

Case attention(const Heads& heads, std::int64_t batch, const Lengths& lengths) {
  return Case{}
      .with("batch", batch)
      .with("heads", heads.query)
      .with("kv_heads", heads.kv)
      .with("query_len", lengths.query)
      .with("kv_len", lengths.kv)
      .with("qk_dim", heads.qk_dim)
      .with("v_dim", heads.v_dim);
}

Case decode(std::int64_t batch, std::int64_t heads, std::int64_t query_len, std::int64_t kv_len) {
  return Case{}.with("batch", batch).with("heads", heads).with("query_len", query_len).with("kv_len", kv_len);
}

using Sizes = std::vector<std::int64_t>;

/// Whole sequences, some of no power of two, and batches of short ones.
std::vector<Case> sequences(Preset preset) {
  const bool full = preset == Preset::full;
  std::vector<Case> cases;
  for (const Heads& heads : {kMla, kGrouped}) {
    for (const auto length :
         full ? Sizes{1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768} : Sizes{1024, 4096, 16384})
      cases.push_back(attention(heads, 1, {length, length}));
    if (full)
      for (const auto batch : {2, 4, 8}) cases.push_back(attention(heads, batch, {1000, 1000}));
  }
  if (full)
    for (const auto length : {1024, 4096, 16384}) cases.push_back(attention(kMlaOfRank, 1, {length, length}));
  return cases;
}

/// A chunk of a prompt after the part that came before it.
std::vector<Case> chunks(Preset preset) {
  const std::vector<Lengths> lengths =
      preset == Preset::full ? std::vector<Lengths>{{512, 4096},   {1024, 4096},  {1024, 16384}, {2048, 8192},
                                                    {2048, 32768}, {4096, 16384}, {8192, 32768}}
                             : std::vector<Lengths>{{1024, 16384}};
  std::vector<Case> cases;
  for (const Heads& heads : {kMla, kGrouped})
    for (const Lengths& length : lengths) cases.push_back(attention(heads, 1, length));
  return cases;
}

}  // namespace

std::vector<Case> attention_forward_cases(Preset preset) {
  std::vector<Case> cases = sequences(preset);
  for (Case& chunk : chunks(preset)) cases.push_back(std::move(chunk));
  return cases;
}

std::vector<Case> attention_backward_cases(Preset preset) { return sequences(preset); }

std::vector<Case> mla_decode_cases(Preset preset) {
  const bool full = preset == Preset::full;
  std::vector<Case> cases;
  for (const auto heads : full ? Sizes{16, 64, 128} : Sizes{16, 128})
    for (const auto query_len : full ? Sizes{1, 2} : Sizes{1})
      for (const auto batch : full ? Sizes{1, 4, 16, 32, 64, 128, 256} : Sizes{1, 16, 128})
        for (const auto kv_len : full ? Sizes{1024, 2048, 4096, 8192, 16384, 32768} : Sizes{1024, 4096, 16384})
          cases.push_back(decode(batch, heads, query_len, kv_len));
  return cases;
}

Case typical_attention_forward() { return attention(kMla, 1, {4096, 4096}); }
Case typical_mla_decode() { return decode(128, 128, 1, 4096); }

}  // namespace moeline::bench
