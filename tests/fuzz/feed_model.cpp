// Bytes as the configuration of a model, and how large it is then.
#include <cmath>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_model(std::string_view bytes) {
  const FedFiles files(bytes, "config.json");
  try {
    const Architecture model = load_architecture(files.first());
    const double sizes[] = {parameters(model), active_parameters(model), kv_bytes(model, 4096),
                            train_flops_per_token(model, 4096)};
    for (const double size : sizes) MOELINE_CHECK(std::isfinite(size) && size >= 0, shortest(size));
    (void)mtp_modules(model);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
