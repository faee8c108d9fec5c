// Bytes as OPs of `moeline price`, one a line.
#include <cmath>

#include "base/error.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_op(std::string_view bytes) {
  static const HardwareProfile profile = load_profile("b200");
  static const KernelSet kernels = profile.kernels("");
  constexpr std::size_t kMost = 4;
  bool taken = false;
  for (std::size_t line = 0; line < kMost && !bytes.empty(); ++line) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    try {
      const RequestedOp op = parse_op(std::string(bytes.substr(0, end)), profile.facts);
      const Price price = price_all(op.kernels, op.conditions, profile.facts, kernels);
      MOELINE_CHECK(std::isfinite(price.solo_us) && price.solo_us >= 0, op.text + ": " + shortest(price.solo_us));
      taken = true;
    } catch (const SpecError&) {
    }
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return taken;
}

}  // namespace moeline::fuzz
