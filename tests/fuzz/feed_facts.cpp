// Bytes as facts of `moeline validate`, or as a study of served models with its table.
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "experiments/validate/pair_study.hpp"
#include "experiments/validate/predict_served.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {
namespace {

/// Measured data of others lies in this folder for a while.
class MeasuredData {
 public:
  explicit MeasuredData(const std::filesystem::path& folder) {
    if (const char* set = std::getenv(kName)) before_ = set;
    ::setenv(kName, folder.c_str(), 1);
  }
  ~MeasuredData() { before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName); }
  MeasuredData(const MeasuredData&) = delete;
  MeasuredData& operator=(const MeasuredData&) = delete;

 private:
  static constexpr const char* kName = "MOELINE_DATA";
  std::optional<std::string> before_;
};

}  // namespace

bool feed_facts(std::string_view bytes) {
  const FedFiles files(bytes, "facts.yaml");
  const MeasuredData data(files.first().parent_path());
  try {
    const Spec spec = Spec::load(files.first());
    if (is_served_study(spec)) {
      (void)rows_by_deployment(read_served_study(spec));
    } else if (is_pair_study(spec)) {
      (void)read_pair_study(spec);
    } else {
      for (const Fact& fact : read_subject(spec).facts) (void)fact.decimals();
    }
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
