#include "experiments/validate/validation.hpp"

#include <utility>

#include "base/file.hpp"

namespace moeline {
namespace {

constexpr const char* kFacts = "tests/published";

}  // namespace

std::vector<std::filesystem::path> all_fact_files() {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names_in(kFacts)) files.push_back(home() / kFacts / (name + ".yaml"));
  return files;
}

Validation validate(const std::vector<std::filesystem::path>& files, const Progress& progress) {
  std::vector<Subject> subjects;
  std::vector<ServedStudy> served;
  std::vector<PairStudy> pairs;
  for (const std::filesystem::path& file : files) {
    const Spec spec = Spec::load(file);
    if (is_served_study(spec)) {
      served.push_back(read_served_study(spec));
    } else if (is_pair_study(spec)) {
      pairs.push_back(read_pair_study(spec));
    } else {
      subjects.push_back(read_subject(spec));
    }
  }
  Predictor predictor;
  Validation validation;
  ProgressCount one_more(progress, "subjects", subjects.size() + served.size() + pairs.size());
  for (const Subject& subject : subjects) {
    validation.subjects.push_back(score(subject, predictor));
    one_more();
  }
  for (ServedStudy& study : served) validation.served.push_back(score(std::move(study)));
  for (PairStudy& study : pairs) {
    validation.pairs.push_back(score(std::move(study)));
    one_more();
  }
  validation.kernel_sets = predictor.kernel_sets();
  return validation;
}

}  // namespace moeline
