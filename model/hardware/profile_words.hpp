// The words of a profile that reading and writing share.
#pragma once

#include <string>
#include <vector>

namespace moeline::profile_words {

inline constexpr const char* kInSample = "in-sample";
inline constexpr const char* kHeldOut = "held-out";
inline constexpr const char* kHostClock = "host";
inline constexpr const char* kDeviceClock = "device";
inline constexpr const char* kGraphClock = "graph";  // replays of a CUDA graph
inline constexpr const char* kNarrow = "narrow";
inline constexpr const char* kWide = "wide";
inline const std::vector<std::string> kClocks = {"burst", "sustained", "unknown"};  // in the order of Clock

inline const std::vector<std::string> kStacks = {"none", "sglang", "trtllm", "vllm",
                                                 "megatron"};  // in the order of Stack

}  // namespace moeline::profile_words
