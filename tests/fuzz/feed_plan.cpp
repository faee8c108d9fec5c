// Bytes as a plan of serving or of training, with all that it would search.
#include "base/error.hpp"
#include "experiments/plan/plan.hpp"
#include "experiments/plan_training/layout.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {
namespace {

void feed_training(const std::filesystem::path& file) {
  const TrainingJob job = load_training_job(file);
  const Architecture model = load_architecture(job.model, file);
  (void)savings_of(job, model, true);
  for (std::size_t machine = 0; machine < job.hardware.size(); ++machine) {
    const std::vector<Layout> splits = splits_of(job, model, machine);
    if (!splits.empty()) (void)orders_of(splits.front(), job, model);
  }
}

}  // namespace

bool feed_plan(std::string_view bytes) {
  const FedFiles files(bytes, "plan.yaml");
  try {
    is_training_job(files.first()) ? feed_training(files.first()) : void(load_plan(files.first()));
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
