// What whoever learns from a trace says of it.
#pragma once

#include <string>
#include <vector>

#include "experiments/learn/settings.hpp"

namespace moeline {

struct GivenSettings {
  std::string model, hardware;           ///< empty: not given
  std::string scenario;                  ///< text of a scenario, in whose place nothing is recovered; empty: none
  std::string scenario_file;             ///< that messages name
  std::vector<std::string> assignments;  ///< "workload.batch_size=64"
};

/// Every key of a scenario, each known in this way. A number of graph_batch is left out: resolved, it is of one batch.
void take_scenario(const std::string& file, const std::string& text, HowKnown how, const char* why, Settings& settings);

/// Throws SpecError for an assignment that is none, or that says what another one has said.
void take_given(const GivenSettings& given, Settings& settings);

}  // namespace moeline
