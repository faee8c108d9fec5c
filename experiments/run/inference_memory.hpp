// What a GPU must hold to serve a scenario.
#pragma once

#include <string>
#include <vector>

#include "moe/memory.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Of inference, per GPU: the largest cache of the ranks, and the most rows that any gets. Of a pipeline, a GPU of the
/// stage that needs most.
/// `drafts`: a draft model lies there, whether this step drafts or not.
[[nodiscard]] Memory memory_of(const Setup& setup, bool drafts = false);
/// One for each stage; without a pipeline one.
[[nodiscard]] std::vector<Memory> memory_of_stages(const Setup& setup, bool drafts = false);
/// REQUIRES: at least one.
[[nodiscard]] Memory fullest(const std::vector<Memory>& stages);

/// What one request keeps in the cache of each GPU, by its tokens; of a pipeline, of the stage where it keeps most.
class RequestCache {
 public:
  explicit RequestCache(const Setup& setup, bool drafts = false);
  [[nodiscard]] double bytes(double tokens) const;

 private:
  Architecture model_;
  std::vector<CachedLayers> stages_;
};

/// What the cache of an attention group holds beside all else, in the share of a GPU's memory that may be filled.
struct CacheRoom {
  double keys = 0;      ///< of each request, as the scenario has them
  double requests = 0;  ///< with so many
  [[nodiscard]] double tokens() const { return keys * requests; }
};
/// `memory`: of the scenario's step, whose requests make place for others.
[[nodiscard]] CacheRoom cache_room(const Setup& setup, const Memory& memory);

/// "weights 22.5, KV cache 34.3, activations 0.3, communication buffers 0.9", in GiB.
[[nodiscard]] std::string breakdown(const Memory& memory);

}  // namespace moeline
