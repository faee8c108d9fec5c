// What a kernel costs: its time alone, what it takes meanwhile, and how we know.
#pragma once

#include <string>
#include <vector>

#include "graph/task.hpp"
#include "hardware/profile.hpp"
#include "hardware/provenance.hpp"
#include "moe/operator.hpp"

namespace moeline {

struct Price {
  std::string family;  ///< whose measurements tell about it (priced_as)
  double solo_us = 0;
  Hold hold = Hold::nothing;
  int sms = 0;                 ///< held, or wanted by an elastic kernel
  double disturbed_speed = 1;  ///< with compute kernels beside it
  double deviation = 0;        ///< of the solo time, over it, by the rows that experts happen to get
  double clocked = 0;          ///< share of the solo time that goes by the SMs' clock; the rest by memory's
  double hbm_GBps = 0, nvlink_GBps = 0, nic_GBps = 0;  ///< taken at full speed; links: each direction, one NIC
  double host_GBps = 0;                                ///< of copies to the host and back
  Provenance provenance = Provenance::interpolated;
  ProvenanceNote note;
  double gain = 1;         ///< of the family's correction in the solo time, times; 1: the curve alone
  double gap = 1;          ///< of a learnt price: its launch gap, over that of the set below
  std::string kernel_set;  ///< whose measurements it rests on, or ""
  ConstantSet constants;   ///< that made the solo time and the disturbed speed
  std::string bound_by;    ///< branch of the cost curve: "compute", "memory", "NIC", "NVLink", "SMs"; or "roofline"
};

struct PriceConditions {
  int sms = 0;              ///< on how many SMs the kernel is launched
  bool overlapped = false;  ///< kernels of another stream may run beside it: matters to transfers
  bool slowed = true;       ///< by these kernels
  bool ideal = false;       ///< a collective between nodes takes no more than the links' peaks make it
  int held = 0;             ///< SMs that HybridEP holds, or NCCL's all-to-all; 0: of NCCL's its channels
  /// NCCL's kernels hold an SM for each channel, and GEMMs beside them run on what is left, block by block.
  bool channels = false;
  double clock = 1;  ///< of the SMs, over the one that measurements at burst were made at

  [[nodiscard]] bool disturbed() const { return overlapped && slowed; }
  bool operator==(const PriceConditions&) const = default;
};

/// Which family's measurements price a kernel: its own if that was measured. A BF16 GEMM without its own falls back to
/// dense BF16 GEMMs, then to FP8 GEMMs.
[[nodiscard]] std::string priced_as(Family family, const KernelSet& kernels);
/// The same of a kernel: what a serving stack's tables measured it as comes first.
[[nodiscard]] std::string priced_as(const Operator& op, const KernelSet& kernels);

/// What attention's backward pass takes per FLOP over its forward pass, in DeepSeek's profile of training, which has
/// both (hwprofiles/h800.yaml, deepseek-2025-02). A stack's tables have the forward pass alone.
inline constexpr double kBackwardPerFlop = 1.747 / 1.4489;

/// Even a kernel with next to nothing to do takes as long as the small ones do. 0 where the set does not know.
[[nodiscard]] double shortest_us(const KernelSet& kernels, const MachineFacts& machine);

/// The least time that the machine's peaks allow: tensor cores, HBM, and the links of a transfer.
[[nodiscard]] double roofline_us(const Operator& op, const MachineFacts& machine);

/// Never faster than the peaks of HBM and of the tensor cores. REQUIRES: 0 < sms <= machine.sms.
[[nodiscard]] Price price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                          const KernelSet& kernels);

/// Under which a kernel of these runs: on so many SMs, but beside transfers, where those are the transfers', on all.
[[nodiscard]] PriceConditions conditions_among(const std::vector<Operator>& ops, const Operator& op,
                                               const PriceConditions& conditions, const MachineFacts& machine);

/// Several kernels, one after the other, as one: times add up, demands are means over the time, and what is known
/// least well tells how the whole is known. REQUIRES: at least one.
[[nodiscard]] Price price_all(const std::vector<Operator>& ops, const PriceConditions& conditions,
                              const MachineFacts& machine, const KernelSet& kernels);

// What a kernel's time goes by.

enum class BoundBy {
  compute,        ///< the tensor cores
  memory,         ///< HBM, and the L2 ports on the way
  communication,  ///< links between GPUs, or other ranks
  launch,         ///< what any kernel costs, whatever its work
  unknown,
};
inline constexpr std::size_t kBoundBys = static_cast<std::size_t>(BoundBy::unknown) + 1;

/// Communication: every kernel that communicates. Launch: compute kernels whose FLOPs and bytes take less time at the
/// machine's peaks than its smallest kernel does. Compute, memory: the branch of the cost curve that binds, or, where
/// it has none, the greater of FLOPs and bytes at the peaks. Unknown: kernels that neither multiply nor move much, and
/// go by tokens and experts (top-k, layouts, counts).
[[nodiscard]] BoundBy bound_by(const Operator& op, const Price& price, const MachineFacts& machine,
                               const KernelSet& kernels);

}  // namespace moeline
