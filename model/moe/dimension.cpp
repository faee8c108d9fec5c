#include "moe/dimension.hpp"

namespace moeline {

const std::vector<std::string>& dimension_names() {
  static const std::vector<std::string> kNames = {
      "m",         "n",      "k",      "groups", "batch",   "kv_heads", "heads_per_kv", "rows",
      "query_len", "kv_len", "cached", "window", "qk_dim",  "v_dim",    "bytes",        "items",
      "ranks",     "tokens", "hidden", "top_k",  "experts", "sms"};
  return kNames;
}

const std::string& name_of(Dimension dimension) { return dimension_names()[static_cast<std::size_t>(dimension)]; }

}  // namespace moeline
