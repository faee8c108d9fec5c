// Bytes as the user's own words for kernels.
#include "base/error.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"
#include "trace/kernel_class.hpp"

namespace moeline::fuzz {

bool feed_kernel_map(std::string_view bytes) {
  const FedFiles files(bytes, "map.yaml");
  try {
    const KernelMap map = load_kernel_map(files.first());
    (void)KernelClassifier(map.classes, map.communication);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
