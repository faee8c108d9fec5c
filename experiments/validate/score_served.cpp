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
std::optional<double> null_of(const ScoredServed& scored, std::size_t row, double ServedRow::*figure) {
  const auto like = [](const ServedRow& r) {
    return std::tie(r.model, r.precision, r.kind, r.colocated, r.apart, r.input, r.output);
  };
  std::vector<double> others;
  for (std::size_t i = 0; i < scored.study.rows.size(); ++i) {
    const ServedRow& other = scored.study.rows[i];
    if (i != row && scored.is_scored(i) && like(other) == like(scored.study.rows[row])) others.push_back(other.*figure);
  }
  if (others.empty()) return std::nullopt;
  return quantile(std::move(others), 0.5);
}

ServedLoopErrors loop_errors(const ScoredServed& scored, const std::vector<std::size_t>& rows) {
  std::vector<double> tpot, tpot_of_step, ttft, ttft_null;
  for (const std::size_t row : rows) {
    if (!scored.is_looped(row)) continue;
    const ServedRow& measured = scored.study.rows[row];
    tpot.push_back(scored.loops[row].tpot_ms / measured.tpot_ms - 1);
    tpot_of_step.push_back(scored.error(row));
    ttft.push_back(scored.loops[row].ttft_ms / measured.ttft_ms - 1);
    if (const auto null = null_of(scored, row, &ServedRow::ttft_ms)) ttft_null.push_back(*null / measured.ttft_ms - 1);
  }
  return {tpot.size(),      ttft_null.size(),     summary_of(tpot), summary_of(tpot_of_step),
          summary_of(ttft), summary_of(ttft_null)};
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
    group.loop = loop_errors(scored, group.rows);
    list.push_back(std::move(group));
  }
  return list;
}

}  // namespace

ScoredServed score(ServedStudy study) {
  ScoredServed scored;
  scored.study = std::move(study);
  scored.predictions = predict_served(scored.study);
  if (scored.study.loop) scored.loops = predict_served_loop(scored.study);
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
      nulls[row] = null_of(scored, row, &ServedRow::tpot_ms);
    }
  }
  scored.by_class = groups_of(scored, nulls, class_of);
  scored.by_model = groups_of(scored, nulls, model_of);
  return scored;
}

}  // namespace moeline
