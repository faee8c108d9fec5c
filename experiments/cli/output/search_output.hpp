// What a search found, among plans of overlapped phases or whole pipelines, as a table and as JSON.
#pragma once

#include <string>

#include "experiments/search/search.hpp"
#include "experiments/search_pipeline/search_pipeline.hpp"

namespace moeline {

/// `plan`: the file that it was written to, or "".
[[nodiscard]] std::string search_table(const SearchRequest& request, const SearchResult& result);
[[nodiscard]] std::string search_json(const SearchRequest& request, const SearchResult& result,
                                      const std::string& plan);

[[nodiscard]] std::string pipeline_search_table(const PipelineRequest& request, const PipelineAnswer& answer);
[[nodiscard]] std::string pipeline_search_json(const PipelineRequest& request, const PipelineAnswer& answer);

[[nodiscard]] std::string search_schema();

}  // namespace moeline
