// What a search found, as a table and as JSON.
#pragma once

#include <string>

#include "experiments/search/search.hpp"

namespace moeline {

/// `plan`: the file that it was written to, or "".
[[nodiscard]] std::string search_table(const SearchRequest& request, const SearchResult& result);
[[nodiscard]] std::string search_json(const SearchRequest& request, const SearchResult& result,
                                      const std::string& plan);

}  // namespace moeline
