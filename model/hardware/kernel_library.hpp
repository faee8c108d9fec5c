// Whose kernels run attention and experts: libraries, told by the forms of their curves. A stack's tables have one of
// each; another one is taken from the sets that have it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware/profile.hpp"

namespace moeline {

enum class AttentionBackend { usual, fa2, fa3, flashmla, xqa, trtllm_gen };
/// Of experts that run as one fused layer.
enum class MoeBackend { usual, triton, cutlass, deepgemm, marlin, trtllm_gen };

/// What other kernels than the set's own are to run; `usual`: those.
struct Libraries {
  AttentionBackend attention = AttentionBackend::usual;
  MoeBackend experts = MoeBackend::usual;
  auto operator<=>(const Libraries&) const = default;
};

/// In full: "FlashAttention-3", "CUTLASS".
[[nodiscard]] const char* title_of(AttentionBackend backend);
[[nodiscard]] const char* title_of(MoeBackend backend);

/// Of that family in a set, borrowed or its own; usual where it has none, or one of none of these.
[[nodiscard]] AttentionBackend attention_library(const KernelSet& set, const std::string& family);
[[nodiscard]] MoeBackend experts_library(const KernelSet& set, const std::string& family);

/// HardwareProfile::kernels, with the families of these libraries in the place of the set's own: those of the set
/// itself, else of the profile's newest set that has them, else of those carried over.
[[nodiscard]] KernelSet kernels_by(const HardwareProfile& profile, const std::string& set, std::string_view needed,
                                   const Libraries& libraries);

/// Libraries that some set of the profile has that family of, in the order of the enumeration.
[[nodiscard]] std::vector<AttentionBackend> attention_libraries(const HardwareProfile& profile,
                                                                const std::string& family);
[[nodiscard]] std::vector<MoeBackend> experts_libraries(const HardwareProfile& profile, const std::string& family);

}  // namespace moeline
