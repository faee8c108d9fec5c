// What serving came to, request by request.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/fields.hpp"
#include "experiments/serve/serve.hpp"

namespace moeline {

/// What is served, and by what: a line each.
[[nodiscard]] std::vector<std::string> serve_title(const ServeResult& result);
[[nodiscard]] std::string serve_table(const ServeResult& result);
[[nodiscard]] std::string serve_json(const ServeResult& result);
/// What the schema of `moeline simulate` says of that.
[[nodiscard]] Describe served_requests();
/// A row for each request, by arrival.
[[nodiscard]] std::string serve_csv(const ServeResult& result);

}  // namespace moeline
