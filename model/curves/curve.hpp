// The cost curves. calib/fit solves for the constants of exactly these terms, and price() evaluates them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "curves/constants.hpp"
#include "curves/gemm_tiles.hpp"
#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

struct Term {
  Constant constant{};
  double feature = 0;  ///< in us per unit of the constant
};

/// One thing that can bind.
struct Branch {
  std::string bound;  ///< "compute", "memory", "NIC", "NVLink", "SMs"
  std::vector<Term> terms;
  double deviation = 0;  ///< of its time by chance, standard deviation over the mean
};

/// time = fixed + sum of `always` + the slowest of `branches`; each term is constant x feature. Where there are
/// `alternatives`, the library takes the quickest of them and itself.
struct Curve {
  std::vector<Term> always;
  std::vector<Branch> branches;
  double fixed_us = 0;  ///< what no constant says; in a fit with what constants that are given make of it
  std::vector<Curve> alternatives{};
};

/// us, and what binds ("" without branches). A branch with a constant that the set does not know is left out: the
/// machine's floors stand in for it (price.hpp). NaN where a constant of `always`, or every branch, is unknown.
struct Evaluation {
  double us = 0;
  std::string bound;
  std::size_t branch = 0;       ///< that binds
  std::size_t alternative = 0;  ///< that is the quickest: 0 the curve itself, then its alternatives
  double deviation = 0;         ///< of the time by chance, standard deviation over the mean
};
/// `constants`: those that the terms count from, a kernel set's or a form's (curves/form.hpp).
[[nodiscard]] Evaluation evaluate(const Curve& curve, std::span<const double> constants);

/// Curve of every family but notify and the transfers: solo time on `sms` SMs. Elastic kernels slow down in proportion
/// to the SMs they lack. `tiles`: of the kernel set whose constants it will meet.
[[nodiscard]] Curve compute_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles);

/// GEMMs (gemm_curve.cpp). In the masked layout every group has the same number of rows unless `group_rows` says
/// otherwise.
[[nodiscard]] Curve gemm_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles);

/// A masked GEMM whose groups have these rows, and whose tile was chosen for `expected_rows` in each.
[[nodiscard]] Curve masked_gemm_curve(const Operator& op, double expected_rows, const std::vector<int>& rows, int sms,
                                      const MachineFacts& machine, TileSet tiles);

/// The curve of a BF16 GEMM with the constants of FP8's, for sets that have no BF16 GEMM measured.
[[nodiscard]] Curve with_fp8_constants(Curve curve);

/// Attention (curve.cpp).
[[nodiscard]] Curve attention_curve(const Operator& op, int sms, const MachineFacts& machine);

/// A whole transfer with nothing beside it, on `sms` SMs (curve.cpp).
[[nodiscard]] Curve transfer_curve(const Operator& op, int sms, const MachineFacts& machine);

/// For how long a low-latency transfer's kernels hold SMs, issue and receive together.
[[nodiscard]] Curve hold_curve(const Operator& op);

/// No transfer is faster than the bytes that leave the node over the NIC, and those in it over NVLink, at their peaks.
[[nodiscard]] double links_us(const Operator& op, const MachineFacts& machine);

/// By how much the copies of a normal transfer take longer beside compute kernels.
[[nodiscard]] Constant copy_stretch(Family family);

/// us of a normal transfer with this curve that its SMs bind, their copies taking `stretch` times as long as alone.
[[nodiscard]] double copying_us(const Curve& transfer, double stretch, const Constants& constants);

/// What starts, ends, waits or goes step by step takes clocks of the SMs: constants of it are us at 1830 MHz, Hopper's.
[[nodiscard]] inline double overhead(const MachineFacts& machine, double times = 1) {
  return times * 1830 / machine.sm_clock_mhz;
}

/// 1e6 FLOP/us = 1 TFLOP/s; 1e3 B/us = 1 GB/s.
[[nodiscard]] inline double flops_at_peak_us(double flops, double tflops) { return flops / (tflops * 1e6); }
[[nodiscard]] inline double bytes_at_peak_us(double bytes, double GBps) { return bytes / (GBps * 1e3); }

}  // namespace moeline
