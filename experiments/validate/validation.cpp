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
  for (const std::filesystem::path& file : files) {
    const Spec spec = Spec::load(file);
    is_served_study(spec) ? served.push_back(read_served_study(spec)) : subjects.push_back(read_subject(spec));
  }
  Predictor predictor;
  Validation validation;
  ProgressCount one_more(progress, "subjects", subjects.size() + served.size());
  for (const Subject& subject : subjects) {
    validation.subjects.push_back(score(subject, predictor));
    one_more();
  }
  for (ServedStudy& study : served) validation.served.push_back(score(std::move(study)));
  validation.kernel_sets = predictor.kernel_sets();
  return validation;
}

}  // namespace moeline
