// What a GPU must hold to serve a scenario.
#pragma once

#include <functional>
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
  /// Of a token, of requests of usual length: where windows end or a state is kept, it goes by the length.
  [[nodiscard]] double bytes_of_token() const;
  /// GPUs that each have a part of a request's keys.
  [[nodiscard]] int parts() const { return stages_.front().parts; }

 private:
  Architecture model_;
  std::vector<CachedLayers> stages_;
};

/// What CUDA and the libraries of communication hold before anything is loaded. It is in no Memory.
[[nodiscard]] double runtime_bytes(const Setup& setup);
/// That caches may take of a GPU beside all else of `memory`, as the stack fills it (habits::FractionOf); less than 0
/// where all else is too much.
[[nodiscard]] double room_for_caches(const Setup& setup, const Memory& memory);
/// A GPU's memory, and what it must hold.
struct GpuMemory {
  Memory held;
  double room = 0;                   ///< for caches beside all else
  double capacity = 0, runtime = 0;  ///< of the GPU, and of it CUDA's own
  [[nodiscard]] bool fits() const { return held.kv_cache <= room; }
  /// But for caches.
  [[nodiscard]] double rest() const { return held.total() - held.kv_cache; }
};
[[nodiscard]] GpuMemory gpu_memory(const Setup& setup, const Memory& held);
[[nodiscard]] inline bool fits(const Setup& setup, const Memory& memory) { return gpu_memory(setup, memory).fits(); }

/// Of a server that computes prompts and answers, in one step or in turn: the buffers of both are there at all times.
[[nodiscard]] Memory of_both(const Memory& a, const Memory& b, bool in_one_step);
/// The largest of the whole numbers up to `most` that fits, below `least` where that does not. What fits fits with
/// less.
[[nodiscard]] int largest_that_fits(int least, int most, const std::function<bool(int)>& fits);
/// Which part is over, and what would hold it: "KV cache 62.1, and ...". REQUIRES: it does not fit.
[[nodiscard]] std::string what_is_over(const Setup& setup, const Memory& memory);

/// What the cache of an attention group holds beside all else.
struct CacheRoom {
  double keys = 0;      ///< of each request, as the scenario has them
  double requests = 0;  ///< with so many
  int parts = 1;        ///< GPUs that each have a part of a request's keys
  /// Of a GPU.
  [[nodiscard]] double tokens() const { return keys * requests / parts; }
};
/// `memory`: of the scenario's step, whose requests make place for others.
[[nodiscard]] CacheRoom cache_room(const Setup& setup, const Memory& memory);

}  // namespace moeline
