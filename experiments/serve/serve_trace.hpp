// Steps and requests as a Chrome trace: what ran when, and what each request waited for.
#pragma once

#include <string>

#include "experiments/serve/serve_log.hpp"

namespace moeline {

/// A process for each replica, with its steps as slices and what is in them as counters; and one for requests, each an
/// asynchronous slice over its parts: queue, prefill, transfer, decode. Perfetto and chrome://tracing open it.
[[nodiscard]] std::string serve_trace(const ServeLog& log);

}  // namespace moeline
