// By which sizes the measurements of a kernel are told from each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moeline {

/// What a kernel is told apart by from others of its family.
enum class Dimension {
  m,  ///< rows of a GEMM: of each group in the masked layout, else of all groups
  n,
  k,
  groups,  ///< GEMMs in one kernel
  batch,   ///< sequences
  kv_heads,
  heads_per_kv,  ///< query heads that share keys
  rows,          ///< query rows that do: of a decode, heads_per_kv x query_len
  query_len,
  kv_len,
  cached,  ///< of a prefill, keys before the first query
  window,  ///< sliding; 0: none
  qk_dim,
  v_dim,
  bytes,  ///< of memory traffic; of a transfer those that go through SMs, of a collective its message
  items,  ///< token-expert pairs, or rows
  ranks,
  tokens,  ///< that a rank sends
  hidden,  ///< numbers of a token
  top_k,
  experts,  ///< of all ranks
  sms       ///< that it is launched on
};
inline constexpr int kDimensions = static_cast<int>(Dimension::sms) + 1;

[[nodiscard]] const std::string& name_of(Dimension dimension);
/// As they stand in a profile.
[[nodiscard]] const std::vector<std::string>& dimension_names();

}  // namespace moeline
