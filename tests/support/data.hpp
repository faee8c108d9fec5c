// Measured data of others, which the project does not ship: found where a user has it, else tests are skipped.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/file.hpp"

namespace moeline::testing {

inline std::filesystem::path data_folder() { return measured_data(); }

inline std::filesystem::path source(const std::string& path) {
  return std::filesystem::path(MOELINE_SOURCE_DIR) / path;
}

/// False, with a message, where the file is absent: `if (!present(file)) return;`
inline bool present(const std::filesystem::path& file) {
  if (std::filesystem::exists(file)) return true;
  MESSAGE("skipped: " << file.string() << " is absent");
  return false;
}

inline const std::string kTraceName = "traces/deepseek_v3_train_h800_ep64";
inline std::filesystem::path training_trace() { return data_folder() / (kTraceName + ".json.gz"); }
inline std::filesystem::path training_kernels() { return data_folder() / (kTraceName + ".kernels.csv"); }

inline std::filesystem::path chunk_scenario() {
  return source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml");
}

}  // namespace moeline::testing
