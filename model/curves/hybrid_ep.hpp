// HybridEP, Megatron's dispatcher in and between NVLink domains, by the rates that its authors published.
#pragma once

#include "base/precision.hpp"

namespace moeline {

/// The ranks that exchange tokens, the SMs that each lends, and what the NICs of each send at most.
struct HybridEp {
  double ranks, sms;
  bool in_domain;  ///< one NVLink domain holds all ranks
  double nics_GBps;
};

/// SMs that a rank lends: of Megatron's recipes in a domain, else by its default (moe_hybridep_num_sms).
[[nodiscard]] int hybrid_ep_usual_sms(bool in_domain);

/// GB/s of one rank by its kernels alone, without torch's copies and metadata (DeepEP, docs/README_Hybrid-EP.md): in a
/// domain of tokens times the ranks that each is sent to, on GB200 with 8 to 36 ranks on 16 and 32 SMs; between domains
/// of tokens times the domains, the own one included, on H100 with NICs of 50 GB/s, to whose rate it is scaled, with 16
/// to 64 ranks in domains of 8 on 4 to 16 SMs. Between these it is interpolated, beyond them held; on fewer SMs it
/// falls with them. `precision`: FP8 or BF16. The hidden size was 7168; that smaller tokens travel at the same rate is
/// assumed.
[[nodiscard]] double hybrid_ep_dispatch_GBps(Precision precision, const HybridEp& group);
/// The same of results on their way back, in BF16.
[[nodiscard]] double hybrid_ep_combine_GBps(const HybridEp& group);

}  // namespace moeline
