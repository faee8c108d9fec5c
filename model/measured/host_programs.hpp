// Which threads of the host make one program, and which run beside each other.
#pragma once

#include <vector>

#include "trace/trace.hpp"

namespace moeline {

/// The host waits in it for the GPU: a synchronising call, or a copy that returns when it is done.
[[nodiscard]] bool holds_host(const HostCall& call);

/// By call: the number of its program. Threads of one process that launch on the same stream are one program, as a
/// backward pass is launched by a thread of its own while the main one stands still; but not where one of them launches
/// while another waits for the GPU. A thread belongs to the first program of its process with which it shares a stream
/// and none of whose threads it runs beside; one that launches nothing to the first that it does not run beside.
[[nodiscard]] std::vector<std::uint32_t> host_programs(const Trace& trace);

}  // namespace moeline
