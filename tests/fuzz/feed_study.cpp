// Bytes as a study of `moeline sweep` and, behind it, its scenario.
#include "base/error.hpp"
#include "experiments/sweep/run_study.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_study(std::string_view bytes) {
  constexpr std::size_t kFew = 2;  // points, of which each may have to be read
  const FedFiles files(bytes, "study.yaml");
  try {
    const Study study = load_study(files.first());
    if (study.points.size() <= kFew) check_loads(study);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
