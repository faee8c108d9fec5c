// A run of requests as a page: its numbers, and how they go along time.
#pragma once

#include "experiments/page/page.hpp"
#include "experiments/serve/serve.hpp"

namespace moeline {

[[nodiscard]] Page serve_page(const ServeResult& result);

}  // namespace moeline
