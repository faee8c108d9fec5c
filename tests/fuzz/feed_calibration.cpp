// Bytes as measured tables of `moeline calibrate`, told apart by their columns and names.
#include "base/error.hpp"
#include "calib/fit/calibrate.hpp"
#include "hardware/profile.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_calibration(std::string_view bytes) {
  static const Architecture model = load_architecture("deepseek-v3");
  static const MachineFacts machine = load_profile("h800").facts;
  const FedFiles files(bytes, "table.csv");
  try {
    (void)calibrate(files.all(), {.cross_validate = true}, model, machine);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
