// Requests that a step goes on with, by what attention does for them.
#pragma once

#include <cmath>

namespace moeline {

struct Sequences {
  double requests = 0;   ///< the last prompt of a step may be cut
  double query_len = 1;  ///< new tokens of each: 1 + drafted ones where it decodes, those not cached of a prompt
  double kv_len = 0;     ///< keys that the last new token of a request sees, on average over the requests

  [[nodiscard]] bool any() const { return requests > 0; }
  [[nodiscard]] double tokens() const { return std::round(requests * query_len); }
};

}  // namespace moeline
