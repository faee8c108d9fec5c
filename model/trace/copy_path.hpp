// Between which memories a copy or a set moves its bytes: which link or memory its rate is one of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace moeline {

enum class CopyPath : std::uint8_t {
  in_memory,       ///< inside the GPU's memory, which it reads and writes
  set,             ///< writes the GPU's memory once
  host_to_device,  ///< over the link to the host (PCIe, C2C)
  device_to_host,
  peer,     ///< to the memory of another GPU
  unknown,  ///< its name does not say
};
inline constexpr int kCopyPaths = static_cast<int>(CopyPath::unknown) + 1;
[[nodiscard]] const std::string& name_of(CopyPath path);

/// By the names that CUPTI ("Memcpy HtoD (Pinned -> Device)"), Nsight Systems ("Memcpy PtoP") and ROCm
/// ("CopyDeviceToHost") give copies; arrays are memory of the GPU. A set of pageable or pinned memory is not one of the
/// GPU's. REQUIRES: no kernel.
[[nodiscard]] CopyPath copy_path(GpuEventKind kind, std::string_view name);

/// How often each of its bytes passes through the GPU's own memory, at that memory's rate: twice in a copy inside it,
/// once in a set. A copy over a link goes at the link's rate: 0.
[[nodiscard]] double passes_through_memory(CopyPath path);

}  // namespace moeline
