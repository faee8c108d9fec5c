// Requests and steps side by side, in a stretch of a run that is served request by request.
#pragma once

#include "experiments/serve/serve_log.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {

/// From the middle of the steady state on, as long as a request takes there, and so many requests that come then: the
/// steps of their replicas, in a row of which none has prompts as one bar, and what each request waits for or gets.
[[nodiscard]] Picture serve_picture(const ServeLog& log);

}  // namespace moeline
