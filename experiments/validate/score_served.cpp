#include "experiments/validate/score_served.hpp"

#include <fmt/format.h>

#include <optional>
#include <tuple>

namespace moeline {
namespace {

const char* place_of(const ServedRow& row) { return row.colocated ? "colocated" : "disaggregated"; }

std::string class_of(const ServedRow& row) {
  const std::string apart = row.apart.empty() ? "" : fmt::format(" ({})", row.apart);
  return fmt::format("{} {}, {}{}", place_of(row), row.kind, row.precision, apart);
}

std::string model_of(const ServedRow& row) { return fmt::format("{}, {}, {}", class_of(row), row.model, row.stack); }

// The median of the others of this group that have the row's model, format, class, place and lengths.
std::optional<double> null_tpot_ms(const ScoredServed& scored, std::size_t row) {
  const auto like = [](const ServedRow& r) {
    return std::tie(r.model, r.precision, r.kind, r.colocated, r.apart, r.input, r.output);
  };
  std::vector<double> others;
  for (std::size_t i = 0; i < scored.study.rows.size(); ++i) {
    const ServedRow& other = scored.study.rows[i];
    if (i != row && scored.is_scored(i) && like(other) == like(scored.study.rows[row])) others.push_back(other.tpot_ms);
  }
  if (others.empty()) return std::nullopt;
  return quantile(std::move(others), 0.5);
}

using NameOf = std::string (*)(const ServedRow&);

std::vector<ServedGroup> groups_of(const ScoredServed& scored, const std::vector<std::optional<double>>& nulls,
                                   NameOf name_of) {
  std::map<std::string, ServedGroup> groups;
  for (std::size_t row = 0; row < scored.study.rows.size(); ++row) {
    if (scored.is_scored(row)) groups[name_of(scored.study.rows[row])].rows.push_back(row);
  }
  std::vector<ServedGroup> list;
  for (auto& [name, group] : groups) {
    group.name = name;
    std::vector<double> errors, null_errors;
    for (const std::size_t row : group.rows) {
      errors.push_back(scored.error(row));
      if (nulls[row]) null_errors.push_back(*nulls[row] / scored.study.rows[row].tpot_ms - 1);
    }
    group.errors = summary_of(errors);
    group.null_rows = null_errors.size();
    group.null_errors = summary_of(null_errors);
    list.push_back(std::move(group));
  }
  return list;
}

}  // namespace

ScoredServed score(ServedStudy study) {
  ScoredServed scored;
  scored.study = std::move(study);
  scored.predictions = predict_served(scored.study);
  const std::size_t rows = scored.study.rows.size();
  std::vector<std::optional<double>> nulls(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string& left_out = scored.study.rows[row].left_out;
    const std::string& refused = scored.predictions[row].refused;
    if (!left_out.empty()) {
      ++scored.left_out[left_out];
    } else if (!refused.empty()) {
      ++scored.refused[refused];
    } else {
      nulls[row] = null_tpot_ms(scored, row);
    }
  }
  scored.by_class = groups_of(scored, nulls, class_of);
  scored.by_model = groups_of(scored, nulls, model_of);
  return scored;
}

}  // namespace moeline
