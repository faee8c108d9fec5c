// A run of requests as a page: its numbers, how they go along time, and requests and steps side by side.
#pragma once

#include "experiments/page/page.hpp"
#include "experiments/serve/serve.hpp"
#include "experiments/serve/serve_log.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {

/// From the middle of the steady state on, as long as a request takes there, and so many requests that come then: the
/// steps of their replicas, in a row of which none has prompts as one bar, and what each request waits for or gets.
[[nodiscard]] Picture serve_picture(const ServeLog& log);

[[nodiscard]] Page serve_page(const ServeResult& result);

}  // namespace moeline
