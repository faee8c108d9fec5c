// Predictions of facts, each by the method that its file names.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "calib/fit/assess.hpp"
#include "experiments/run/run.hpp"
#include "experiments/run/samples.hpp"
#include "experiments/validate/facts.hpp"

namespace moeline {

struct Prediction {
  double value = 0;                     ///< in the unit of the fact; of several samples, their median
  std::optional<Band> band{};           ///< of several samples
  std::map<std::string, double> nulls;  ///< what null models predict, by name
  double roofline = 0;                  ///< of kernels: what the machine's peaks allow; else 0
  ConstantSet constants;                ///< fitted ones that entered
  std::set<std::string> fitted_on;      ///< kernel sets whose measurements it rests on
  std::string left_out;                 ///< part of these that the fit did not see: the fact's own measurements
  std::string remark;                   ///< of a whole table's rows: how many, and their worst and mean error
  std::string skipped;                  ///< why there is no prediction; ""
};

/// A table's rows, each predicted by a fit that did not see its fold.
struct CrossValidation {
  std::vector<Observation> observations;
  Predictions left_out;
};

/// Null models besides those of a timeline (null_models.hpp). Every prediction comes with those that apply to it.
inline constexpr const char* kUndisturbed = "undisturbed";  ///< kernels side by side do not slow each other
inline constexpr const char* kRoofline = "roofline";        ///< kernels run at the machine's peaks
inline constexpr const char* kConstantEfficiency = "constant_efficiency";   ///< at the mean share of them of the others
inline constexpr const char* kSixPerParameter = "six_flops_per_parameter";  ///< of the active ones; no attention

inline constexpr const char* kConstantRate = "constant_rate";  ///< all rows of a table take the same time per byte

/// The names that the key `metric` of a simulated fact may give: those of a run, of a phase, of layers and of kernels.
[[nodiscard]] std::vector<std::string> metrics_of_facts();

/// What several facts need (runs, fits, profiles) is computed once. Throws SpecError with the fact's line for what it
/// names and there is not, and for what does not apply to it.
class Predictor {
 public:
  [[nodiscard]] Prediction predict(const Fact& fact);
  /// The kernel sets behind the predictions so far, by name; but for those of serving stacks' tables, which have one of
  /// each name on several machines (calib/tables/held_out.md has their errors).
  [[nodiscard]] const std::map<std::string, KernelSet>& kernel_sets() const { return kernel_sets_; }

 private:
  [[nodiscard]] Prediction simulate(const Fact& fact);
  [[nodiscard]] Prediction price(const Fact& fact);
  [[nodiscard]] Prediction cross_validate(const Fact& fact);
  const std::vector<Run>& runs(const FactSpec& spec, const std::string& null);
  const HardwareProfile& profile(const FactSpec& spec);
  KernelSet kernels(const FactSpec& spec, const HardwareProfile& profile);
  const CrossValidation& cross_validation(const FactSpec& spec, const HardwareProfile& machine);
  void rests_on(const std::string& kernel_set, const HardwareProfile& profile, Prediction& prediction);

  std::map<std::string, std::vector<Run>> runs_;  // by sample; tasks are those of the first alone
  std::map<std::string, HardwareProfile> profiles_;
  std::map<std::string, KernelSet> fits_;  // with a part left out
  std::map<std::string, CrossValidation> cross_validations_;
  std::map<std::string, KernelSet> kernel_sets_;
};

}  // namespace moeline
