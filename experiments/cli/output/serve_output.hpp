// What serving came to, request by request.
#pragma once

#include <string>
#include <vector>

#include "experiments/page/page.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/serve/serve.hpp"
#include "experiments/serve/serve_log.hpp"
#include "experiments/timeline_page/picture.hpp"

namespace moeline {

/// What is served, and by what: a line each.
[[nodiscard]] std::vector<std::string> serve_title(const ServeResult& result);
/// Rows of the whole run, of which mean, median and 99th percentile are told.
[[nodiscard]] std::vector<std::pair<const char*, Quantiles>> bench_rows(const BenchFigures& figures);
/// Where the run is too short to have one; else "".
[[nodiscard]] std::string no_steady_state(const ServeResult& result);
[[nodiscard]] std::string serve_table(const ServeResult& result);
[[nodiscard]] std::string serve_json(const ServeResult& result);
/// What the schema of `moeline simulate` says of that.
[[nodiscard]] Describe served_requests();
/// A row for each request, by arrival.
[[nodiscard]] std::string serve_csv(const ServeResult& result);

// The same as a page: its numbers, how they go along time, and requests and steps side by side.

/// From the middle of the steady state on, as long as a request takes there, and so many requests that come then: the
/// steps of their replicas, in a row of which none has prompts as one bar, and what each request waits for or gets.
[[nodiscard]] Picture serve_picture(const ServeLog& log);

[[nodiscard]] Page serve_page(const ServeResult& result);

}  // namespace moeline
