// Tables over a trace that tell which kernel came before which: on its stream, and in the order of launch.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "measured/dependencies.hpp"
#include "trace/interpret.hpp"

namespace moeline {

inline constexpr std::int64_t kNone = -1;

/// Streams are numbered from 0 over all GPUs of the trace. REQUIRES: trace and meaning outlive it.
class Launches {
 public:
  Launches(const Trace& trace, const Interpretation& meaning);

  const Trace& trace;
  const Interpretation& meaning;
  std::vector<std::uint32_t> stream;                  ///< by event
  std::vector<std::vector<std::uint32_t>> on_stream;  ///< events by stream, in order of start
  std::vector<Dependency> fifo;                       ///< stream_order of the trace
  std::vector<std::int64_t> ready_ns;                 ///< by event: its stream is free and it is launched
  std::vector<std::vector<std::uint32_t>> in_phase;   ///< events by phase, in order of launch
  std::vector<std::uint32_t> by_end;                  ///< events by end

  [[nodiscard]] std::int64_t launched_ns(std::uint32_t event) const {
    return trace.launched_ns(trace.gpu_events[event]);
  }
  /// Of the host that launched it; where the trace does not say, the first.
  [[nodiscard]] std::uint32_t process(std::uint32_t event) const;
  /// The event that ended last, no later than `ns`, of those that `wanted` takes; few are looked at. kNone: none.
  template <class Wanted>
  [[nodiscard]] std::int64_t last_ended(std::int64_t ns, Wanted wanted) const {
    constexpr int kLookedAt = 256;
    auto it = std::partition_point(by_end.begin(), by_end.end(),
                                   [&](std::uint32_t i) { return trace.gpu_events[i].end_ns <= ns; });
    for (int looked_at = 0; it != by_end.begin() && looked_at < kLookedAt; ++looked_at) {
      if (wanted(*--it)) return *it;
    }
    return kNone;
  }
  /// The phase of the same name on the same GPU, some layers and micro-batches further; kNone where there is none.
  [[nodiscard]] std::int64_t phase_beside(std::int64_t phase, const std::string& name, std::int64_t layers,
                                          std::int64_t micro_batches) const;

 private:
  std::map<std::tuple<std::string, std::uint16_t, std::int64_t, std::int64_t>, std::int64_t> phases_;
};

/// A kernel as seen from another: "the last one of attn(B) on stream 7, one layer earlier". Says the same in every
/// layer.
struct Relative {
  std::string phase;  ///< empty: this very event, `index`
  std::int64_t layers = 0;
  std::int64_t micro_batches = 0;
  std::int64_t index = kNone;  ///< position in the phase; kNone: the last one on the stream
  std::uint32_t stream = 0;
};

/// Of the events of one stream, as launched, up to `last`: those that all of them have ended with. It is the last, and
/// what it overlaps that ends later than it starts. Older ones first; few are looked at. `event`: of what the iterator
/// leads to.
template <class Iterator, class Event>
[[nodiscard]] std::vector<std::uint32_t> ends_of(const Trace& trace, Iterator first, Iterator last, Event event) {
  constexpr std::ptrdiff_t kLookedAt = 32;
  std::vector<std::uint32_t> open;
  const std::int64_t start_ns = trace.gpu_events[event(*last)].start_ns;
  for (Iterator it = last - std::min(kLookedAt, last - first); it != last; ++it) {
    if (trace.gpu_events[event(*it)].end_ns > start_ns) open.push_back(event(*it));
  }
  open.push_back(event(*last));
  return open;
}

/// Layers that fit a reading of the trace, and layers that refute it. Clocks are not perfect, so one in ten may.
class Votes {
 public:
  void add(bool fits) { ++(fits ? fit_ : refute_); }
  [[nodiscard]] bool accept() const { return fit_ > 0 && 9 * refute_ <= fit_; }
  [[nodiscard]] Evidence evidence() const {
    return {static_cast<std::uint32_t>(fit_), static_cast<std::uint32_t>(fit_ + refute_)};
  }

 private:
  std::size_t fit_ = 0, refute_ = 0;
};

/// How `from` sees `event`; `last`: as the last of its phase on its stream.
[[nodiscard]] Relative relative_to(const Launches& launches, std::uint32_t from, std::uint32_t event, bool last);
/// What `from` sees there; kNone where the trace has no such layer.
[[nodiscard]] std::int64_t resolve(const Launches& launches, std::uint32_t from, const Relative& relative);

}  // namespace moeline
