// Requests as they come: when the next one does, and what it asks for.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "experiments/serve/traffic.hpp"

namespace moeline {

class RequestSource {
 public:
  /// `seed`: of arrivals, of lengths and of prefixes, each a sequence of its own.
  RequestSource(const ServeWorkload& workload, int seed);

  [[nodiscard]] bool more() const { return taken_ < workload_.requests; }
  /// Of requests that come by themselves. REQUIRES: more().
  [[nodiscard]] double next_ms() const { return next_ms_; }
  /// Lengths that are log-normal are at most eight times their mean; a prompt has at least one token that is not
  /// cached. REQUIRES: more().
  Asked take();

 private:
  [[nodiscard]] double until_next_ms();
  [[nodiscard]] double time_of_arrivals(double count) const;
  [[nodiscard]] Asked drawn();
  [[nodiscard]] int drawn_prefix();

  const ServeWorkload& workload_;
  Random arrivals_, lengths_, prefixes_;
  std::vector<double> popularity_;  // of prefixes, summed up
  int taken_ = 0;
  double next_ms_ = 0;
};

}  // namespace moeline
