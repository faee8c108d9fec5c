// A small study in a folder of its own, swept by the program as its user calls it.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/cli.hpp"

namespace moeline::testing {

/// 24 points, of which 8 fail: 24 ranks do not divide the experts.
inline const std::string kStudy = "schema: 1\nscenario: " + std::string(MOELINE_SOURCE_DIR) +
                                  "/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml\n"
                                  "set: [layers=4]\n"
                                  "axes:\n"
                                  "  parallelism.ep: [16, 24, 32]\n"
                                  "  workload.batch_size: {from: 8, to: 64, step: 8}\n"
                                  "metrics: [step_ms, layer_us]\n";

struct SweptStudy {
  TemporaryFolder folder;
  std::string study = folder.write("study.yaml", kStudy);

  [[nodiscard]] std::string path(const std::string& name) const { return folder / name; }
  [[nodiscard]] Arguments arguments(const std::string& table, const Arguments& more = {}) const {
    Arguments all = {"sweep", study, "-o", path(table), "--format", "csv"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] Outcome sweep(const std::string& table, const Arguments& more = {}) const {
    return run_moeline(arguments(table, more));
  }
};

}  // namespace moeline::testing
