// HybridEP, Megatron's dispatcher inside an NVLink domain, by the rates that its authors published.
#pragma once

#include "base/precision.hpp"

namespace moeline {

/// GB/s of one rank's tokens, each counted once for every rank that it is sent to, by torch's interface on GB200 with
/// a hidden size of 7168 (deepseek-ai/DeepEP pull request 420): 8, 16 and 24 ranks on 16, 24 and 32 SMs. Between these
/// interpolated, beyond them held. `precision`: of what is dispatched, FP8 or BF16.
[[nodiscard]] double hybrid_ep_dispatch_GBps(double ranks, double sms, Precision precision);
/// The same of what comes back, in BF16.
[[nodiscard]] double hybrid_ep_combine_GBps(double ranks, double sms);

}  // namespace moeline
