// HybridEP, Megatron's dispatcher inside an NVLink domain, by the rates that its authors published.
#pragma once

#include "base/precision.hpp"

namespace moeline {

/// GB/s of one rank, whose bytes are those of its tokens times the ranks that each is sent to, by torch's interface on
/// GB200 with a hidden size of 7168 (deepseek-ai/DeepEP pull request 420): 8, 16 and 24 ranks on 16, 24 and 32 SMs,
/// between which it is interpolated and beyond which it is held; on fewer SMs it falls with them. `precision`: FP8 or
/// BF16. That smaller tokens travel at the same rate is assumed.
[[nodiscard]] double hybrid_ep_dispatch_GBps(Precision precision, double ranks, double sms);
/// The same of results on their way back, in BF16.
[[nodiscard]] double hybrid_ep_combine_GBps(double ranks, double sms);

}  // namespace moeline
