#include "moe/families.hpp"

#include <algorithm>
#include <array>

namespace moeline {

const std::vector<std::string>& dimension_names() {
  static const std::vector<std::string> kNames = {
      "m",         "n",      "k",      "groups", "batch",   "kv_heads", "heads_per_kv", "rows",
      "query_len", "kv_len", "cached", "window", "qk_dim",  "v_dim",    "bytes",        "items",
      "ranks",     "tokens", "hidden", "top_k",  "experts", "sms"};
  return kNames;
}

const std::string& name_of(Dimension dimension) { return dimension_names()[static_cast<std::size_t>(dimension)]; }

namespace {

// clang-format off
std::array<FamilyRow, kFamilies> make_rows() {
  using enum FamilyKind;
  using enum Precision;
  using enum Dimension;
  const std::vector<Dimension> of_prefill = {batch,  kv_heads, heads_per_kv, query_len, kv_len,
                                             cached, window,   qk_dim,       v_dim};
  const std::vector<Dimension> of_decode = {batch, kv_heads, rows, query_len, kv_len, qk_dim, v_dim};
  const std::vector<Dimension> of_state = {batch, kv_heads, heads_per_kv, query_len, qk_dim, v_dim};
  const std::vector<Dimension> of_nvlink = {tokens, ranks, hidden, top_k};
  return {{
      {Family::gemm_fp8,             "gemm_fp8",             gemm,         "gemm",         fp8,  true,  {m, n, k}},
      {Family::gemm_fp8_wgrad,       "gemm_fp8_wgrad",       gemm,         "gemm",         fp8,  true,  {m, n, k}},
      {Family::gemm_fp8_grouped,     "gemm_fp8_grouped",     gemm,         "grouped_gemm", fp8,  true,  {m, n, k, groups}},
      {Family::gemm_fp8_masked,      "gemm_fp8_masked",      gemm,         "grouped_gemm", fp8,  true,  {m, n, k, groups}},
      {Family::gemm_fp8_tensor,      "gemm_fp8_tensor",      gemm,         "gemm",         fp8_tensor, false, {m, n, k}},
      {Family::gemm_nvfp4,           "gemm_nvfp4",           gemm,         "gemm",         nvfp4, false, {m, n, k}},
      {Family::gemm_bf16,            "gemm_bf16",            gemm,         "gemm",         bf16, false, {m, n, k}},
      {Family::gemm_bf16_grouped,    "gemm_bf16_grouped",    gemm,         "grouped_gemm", bf16, false, {m, n, k, groups}},
      {Family::gemm_bf16_batched,    "gemm_bf16_batched",    gemm,         "gemm",         bf16, false, {m, n, k, groups}},
      {Family::attention_forward,    "attention_forward",    attention,    "attention",    bf16, false, of_prefill},
      {Family::attention_backward,   "attention_backward",   attention,    "attention",    bf16, false, of_prefill},
      {Family::mla_decode,           "mla_decode",           attention,    "attention",    bf16, false, of_decode},
      {Family::gqa_decode,           "gqa_decode",           attention,    "attention",    bf16, false, of_decode},
      {Family::sparse_attention,     "sparse_attention",     attention,    "attention",    bf16, false, of_decode},
      {Family::index_scores,         "index_scores",         attention,    "attention",    fp8,  false, of_decode},
      {Family::state_scan,           "state_scan",           attention,    "attention",    bf16, false, of_state},
      {Family::state_update,         "state_update",         attention,    "attention",    bf16, false, of_state},
      {Family::streaming,            "streaming",            memory_bound, "memory",       bf16, false, {bytes}},
      {Family::rowwise,              "rowwise",              memory_bound, "memory",       bf16, false, {bytes}},
      {Family::cast_transpose,       "cast_transpose",       memory_bound, "memory",       bf16, false, {bytes}},
      {Family::requantize,           "requantize",           memory_bound, "memory",       bf16, false, {bytes}},
      {Family::swiglu,               "swiglu",               memory_bound, "memory",       bf16, false, {bytes}},
      {Family::recode_12bit,         "recode_12bit",         memory_bound, "memory",       bf16, false, {bytes}},
      {Family::strided,              "strided",              memory_bound, "memory",       bf16, false, {bytes}},
      {Family::routing_scan,         "routing_scan",         routing,      "other",        bf16, false, {items}},
      {Family::count_rows,           "count_rows",           routing,      "other",        bf16, false, {items}},
      {Family::map_rows,             "map_rows",             routing,      "other",        bf16, false, {items}},
      {Family::small,                "small",                small,        "small",        bf16, false, {}},
      {Family::notify,               "notify",               barrier,      "barrier",      bf16, true,  {}},
      {Family::send,                 "send",                 collective,   "collective",   bf16, false, {}},
      {Family::reduce_scatter,       "reduce_scatter",       collective,   "collective",   bf16, false, {bytes, ranks}},
      {Family::all_gather,           "all_gather",           collective,   "collective",   bf16, false, {bytes, ranks}},
      {Family::all_reduce,           "all_reduce",           collective,   "collective",   bf16, false, {bytes, ranks}},
      {Family::all_to_all,           "all_to_all",           collective,   "collective",   bf16, false, {bytes, ranks}},
      {Family::to_host,              "to_host",              host_copy,    "copy",         bf16, false, {}},
      {Family::from_host,            "from_host",            host_copy,    "copy",         bf16, false, {}},
      {Family::nvlink_prepare,       "nvlink_prepare",       collective,   "dispatch",     bf16, false, {tokens, ranks}},
      {Family::nvlink_dispatch,      "nvlink_dispatch",      collective,   "dispatch",     bf16, false, of_nvlink},
      {Family::nvlink_combine,       "nvlink_combine",       collective,   "combine",      bf16, false, of_nvlink},
      {Family::dispatch,             "dispatch",             normal,       "dispatch",     bf16, true,  {bytes, ranks}},
      {Family::dispatch_cached,      "dispatch_cached",      normal,       "dispatch",     bf16, true,  {bytes, ranks}},
      {Family::combine,              "combine",              normal,       "combine",      bf16, true,  {bytes, ranks}},
      {Family::low_latency_dispatch, "low_latency_dispatch", low_latency,  "dispatch",     bf16, false, {bytes, ranks}},
      {Family::low_latency_combine,  "low_latency_combine",  low_latency,  "combine",      bf16, false, {bytes, ranks}},
  }};
}
// clang-format on

const std::array<FamilyRow, kFamilies>& rows_of_families() {
  static const std::array<FamilyRow, kFamilies> rows = make_rows();
  return rows;
}

FamilyKind kind_of(Family family) { return row_of(family).kind; }

}  // namespace

const FamilyRow& row_of(Family family) { return rows_of_families()[static_cast<std::size_t>(family)]; }

const std::string& name_of(Family family) { return row_of(family).name; }

std::optional<Family> family_named(const std::string& name) {
  const auto& all = rows_of_families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const FamilyRow& row) { return row.name == name; });
  return found == all.end() ? std::nullopt : std::optional(found->family);
}

bool is_gemm(Family family) { return kind_of(family) == FamilyKind::gemm; }
bool is_attention(Family family) { return kind_of(family) == FamilyKind::attention; }
bool is_memory_bound(Family family) { return kind_of(family) == FamilyKind::memory_bound; }
bool is_all_to_all(Family family) {
  return kind_of(family) == FamilyKind::normal || kind_of(family) == FamilyKind::low_latency;
}
bool is_low_latency(Family family) { return kind_of(family) == FamilyKind::low_latency; }
bool is_collective(Family family) { return kind_of(family) == FamilyKind::collective; }
bool is_host_copy(Family family) { return kind_of(family) == FamilyKind::host_copy; }
bool is_communication(Family family) { return kind_of(family) >= FamilyKind::barrier; }

Family gemm_family(GemmLayout layout, Precision weights) {
  const bool narrow = multiplied_in(weights) == Precision::fp8;
  switch (layout) {
    case GemmLayout::contiguous:
      return narrow ? Family::gemm_fp8_grouped : Family::gemm_bf16_grouped;
    case GemmLayout::masked:
      return narrow ? Family::gemm_fp8_masked : Family::gemm_bf16_grouped;
    case GemmLayout::dense:
      break;
  }
  return narrow ? Family::gemm_fp8 : Family::gemm_bf16;
}

}  // namespace moeline
