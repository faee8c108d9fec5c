// Bytes as a machine: its facts and its kernel sets, which are written again and read back.
#include "base/error.hpp"
#include "hardware/profile.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_profile(std::string_view bytes) {
  const FedFiles files(bytes, "machine.yaml");
  try {
    const HardwareProfile profile = read_profile(files.first());
    for (const std::string& set : profile.set_names()) (void)profile.kernels(set);
    (void)to_yaml(profile);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
