// What ranks do together in a kernel of communication.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/kernel_class.hpp"

namespace moeline {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  broadcast,
  reduce,
  gather,
  scatter,
  send_recv,  ///< messages between two ranks: no part of the sequence in which a group does its collectives
  transfer,   ///< a library's own all-to-all: a rank is done when its own tokens are there
  other,
};

[[nodiscard]] const char* name_of(CollectiveKind kind);

/// By the name of the collective, where the trace states it, else by that of the kernel and its class; but dispatch and
/// combine are transfers whatever is stated. NCCL runs all-to-alls by the kernel of its messages: without a statement
/// they are messages.
[[nodiscard]] CollectiveKind collective_kind(std::string_view stated, std::string_view kernel,
                                             KernelClass kernel_class);

/// Every rank leaves it only when all have come, so that all leave at the same time. From a broadcast the root may
/// leave at once.
[[nodiscard]] bool leave_together(CollectiveKind kind);

/// Every rank states the same size.
[[nodiscard]] bool has_one_size(CollectiveKind kind);

}  // namespace moeline
