// The cost curves. calib/fit solves for the constants of exactly these terms, and price() evaluates them.
#pragma once

#include <vector>

#include "hardware/profile.hpp"
#include "moe/operator.hpp"

namespace moeline {

struct Term {
  Constant constant{};
  double feature_us = 0;  ///< time = sum of constant x feature
};

/// Curve of every family but notify and the transfers. Solo time on `sms` SMs:
///   persistent GEMMs   waves x (k/128 x peak time of a 128x128x128 block + epilogue), waves = ceil(tiles / sms)
///   attention, BF16    FLOPs at peak
///   memory-bound       start-up + bytes at peak
///   routing            items
/// Elastic kernels slow down in proportion to the SMs they lack.
[[nodiscard]] std::vector<Term> compute_terms(const Operator& op, int sms, const MachineFacts& machine);

/// A transfer's NIC-bound time: its RDMA bytes, the own node's included, at the NIC's peak. That count makes DeepEP's
/// published bandwidths equal within 5 % for 2 to 8 nodes. `overlapped`: compute kernels run beside it.
[[nodiscard]] Term wire_term(const Operator& op, const MachineFacts& machine, bool overlapped);

/// A transfer's SM-bound time: copies / SMs.
[[nodiscard]] Term copy_term(const Operator& op, int sms);

/// What the measured range of a family is told by: FLOPs, bytes or items.
[[nodiscard]] double size_of(const Operator& op);

}  // namespace moeline
