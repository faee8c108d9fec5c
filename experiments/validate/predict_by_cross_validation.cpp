// Facts about a whole table of kernels: how far a fit is off on the part of it that it did not see.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.hpp"
#include "base/text_table.hpp"
#include "calib/fit/calibrate.hpp"
#include "experiments/validate/predictor.hpp"

namespace moeline {
namespace {

struct Row {
  const Observation* observation;
  double predicted_us;
};

int least_ranks_of(const FactSpec& spec) {
  return spec.has("least_ranks") ? spec.at("least_ranks").integer("least_ranks", 1, 1 << 20) : 1;
}

// Rows of one kernel in these families, on so many ranks, that some fit predicted without seeing them.
std::vector<Row> rows_of(const FactSpec& spec, const CrossValidation& table) {
  const std::vector<std::string> families = spec.at("families").texts("families");
  const std::string kernel = "::" + spec.text("kernel");
  const int least_ranks = least_ranks_of(spec);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.observations.size(); ++i) {
    const Observation& o = table.observations[i];
    const bool wanted = std::find(families.begin(), families.end(), o.family) != families.end() &&
                        o.where.ends_with(kernel) && !std::isnan(table.left_out[i]) &&
                        o.dimensions.at(Dimension::ranks) >= least_ranks;
    if (wanted) rows.push_back({&o, table.left_out[i]});
  }
  if (rows.empty()) throw spec.at("kernel").error("kernel", "has no row in these families that was left out of a fit");
  return rows;
}

// Null model: every row at the same time per byte, the one that is off least on average. It has seen them all.
double constant_rate_error(const std::vector<Row>& rows) {
  const auto us_per_byte = [](const Row& row) {
    return row.observation->measured_us / row.observation->dimensions.at(Dimension::bytes);
  };
  double least = std::numeric_limits<double>::infinity();
  for (const Row& rate : rows) {
    double sum = 0;
    for (const Row& row : rows) sum += std::abs(us_per_byte(rate) / us_per_byte(row) - 1);
    least = std::min(least, sum / static_cast<double>(rows.size()));
  }
  return least;
}

struct Errors {
  double mean_abs = 0, worst = 0, mean = 0;  // the latter two signed
};

Errors errors_of(const std::vector<Row>& rows) {
  const double share = 1 / static_cast<double>(rows.size());
  Errors errors;
  for (const Row& row : rows) {
    const double error = error_of(row.predicted_us, *row.observation);
    errors.mean_abs += share * std::abs(error);
    errors.mean += share * error;
    if (std::abs(error) > std::abs(errors.worst)) errors.worst = error;
  }
  return errors;
}

void note_constants(const Observation& observation, ConstantSet& constants) {
  for_each_term(observation, [&](const Term& term) {
    if (term.feature > 0) constants.set(static_cast<std::size_t>(term.constant));
  });
}

Cut cut_of(const FactSpec& spec) {
  const std::string left_out = spec.at("left_out").choice("left_out", {"EP", "SMs", "tokens"});
  return left_out == "EP" ? &Observation::fold : &Observation::fold_across;
}

}  // namespace

const CrossValidation& Predictor::cross_validation(const FactSpec& spec, const HardwareProfile& machine) {
  const CalibrationRequest request{.kernels = spec.text("kernels")};
  const Cut cut = cut_of(spec);
  std::vector<std::filesystem::path> files;
  for (const std::string& table : spec.at("data").texts("data")) files.push_back(measured_data() / table);
  std::string key = machine.name + "\n" + request.kernels + "\n" + spec.text("left_out");
  for (const std::filesystem::path& file : files) key += "\n" + file.string();
  const auto found = cross_validations_.find(key);
  if (found != cross_validations_.end()) return found->second;
  return used(spec, "data", [&]() -> const CrossValidation& {
    CrossValidation table;
    table.observations = calibrate(files, request, load_architecture("deepseek-v3"), machine.facts).observations;
    table.left_out = predict_left_out(table.observations, cut);
    return cross_validations_.emplace(key, std::move(table)).first->second;
  });
}

// In multiples of what was measured: 1 + the mean |error|, so that the fact's error is that mean.
Prediction Predictor::cross_validate(const Fact& fact) {
  const FactSpec& spec = fact.prediction;
  spec.expect({"hardware", "kernels", "data", "families", "kernel", "least_ranks", "left_out"});
  (void)cut_of(spec);  // refused whether others' data is there or not
  (void)least_ranks_of(spec);
  const HardwareProfile& machine = profile(spec);
  Prediction prediction;
  for (const std::string& table : spec.at("data").texts("data")) {
    const std::filesystem::path file = measured_data() / table;
    if (!std::filesystem::exists(file)) prediction.skipped = file.string() + " is absent";
  }
  if (!prediction.skipped.empty()) return prediction;
  const std::vector<Row> rows = rows_of(spec, cross_validation(spec, machine));
  const Errors errors = errors_of(rows);
  prediction.value = 1 + errors.mean_abs;
  prediction.nulls[kConstantRate] = 1 + constant_rate_error(rows);
  prediction.left_out = spec.text("left_out");
  prediction.remark = fmt::format("{} rows, worst error {}, mean error {}", rows.size(), signed_percent(errors.worst),
                                  signed_percent(errors.mean));
  for (const Row& row : rows) note_constants(*row.observation, prediction.constants);
  prediction.fitted_on.insert(spec.text("kernels"));  // without a profile of it: the fits are anew
  return prediction;
}

}  // namespace moeline
