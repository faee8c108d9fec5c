// What `moeline search` found among whole pipelines, as a table and as JSON.
#pragma once

#include <string>

#include "experiments/search_pipeline/search_pipeline.hpp"

namespace moeline {

[[nodiscard]] std::string pipeline_search_table(const PipelineRequest& request, const PipelineAnswer& answer);
[[nodiscard]] std::string pipeline_search_json(const PipelineRequest& request, const PipelineAnswer& answer);

}  // namespace moeline
