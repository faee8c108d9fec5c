// Tables over a trace that tell which kernel came before which: on its stream, and in the order of launch.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "timeline/interpret.hpp"

namespace moeline {

inline constexpr std::int64_t kNone = -1;

/// Streams are numbered from 0 over all GPUs of the trace. REQUIRES: trace and meaning outlive it.
class Launches {
 public:
  Launches(const Trace& trace, const Interpretation& meaning);

  const Trace& trace;
  const Interpretation& meaning;
  std::int64_t latency_ns = 0;                        ///< from a launch to the start of its kernel that none undercuts
  std::vector<std::uint32_t> stream;                  ///< by event
  std::vector<std::vector<std::uint32_t>> on_stream;  ///< events by stream, in order of start
  std::vector<std::int64_t> previous;                 ///< by event: the one before it on its stream, or kNone
  std::vector<std::int64_t> ready_ns;                 ///< by event: its stream is free and it is launched
  std::vector<std::vector<std::uint32_t>> in_phase;   ///< events by phase, in order of launch

  [[nodiscard]] std::int64_t launched_ns(std::uint32_t event) const;
  /// Position in Interpretation::order of the first event launched at `ns` or later.
  [[nodiscard]] std::size_t first_launched_from(std::int64_t ns) const;
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

/// How `from` sees `event`; `last`: as the last of its phase on its stream.
[[nodiscard]] Relative relative_to(const Launches& launches, std::uint32_t from, std::uint32_t event, bool last);
/// What `from` sees there; kNone where the trace has no such layer.
[[nodiscard]] std::int64_t resolve(const Launches& launches, std::uint32_t from, const Relative& relative);

}  // namespace moeline
