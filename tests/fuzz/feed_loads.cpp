// Bytes as expert loads or a router map.
#include "base/error.hpp"
#include "routing/balancing.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_loads(std::string_view bytes) {
  const FedFiles files(bytes, "loads.csv");
  BalanceRequest request;
  request.file = files.first();
  request.gpus = 4;
  request.nodes = 2;
  request.tokens = 4;
  try {
    (void)balance(request);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
