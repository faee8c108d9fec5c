#include "experiments/cli/output/validate_output.hpp"

#include <fmt/format.h>

#include "base/text_table.hpp"

namespace moeline {
namespace {

void add_rows(const std::vector<ServedGroup>& groups, TextTable& table) {
  for (const ServedGroup& group : groups) {
    std::vector<std::string> cells = {group.name, fmt::format("{}", group.rows.size()),
                                      signed_percent(group.errors.median), percent(group.errors.median_abs),
                                      percent(group.errors.p95_abs)};
    if (group.null_rows > 0) {
      cells.push_back(percent(group.null_errors.median_abs));
      cells.push_back(percent(group.null_errors.p95_abs));
    }
    table.row(std::move(cells));
  }
}

void add_loops(const std::vector<ServedGroup>& groups, TextTable& table) {
  for (const ServedGroup& group : groups) {
    const ServedLoopErrors& loop = group.loop;
    if (loop.rows == 0) continue;
    table.row({group.name, fmt::format("{}", loop.rows), percent(loop.tpot_of_step.median_abs),
               signed_percent(loop.tpot.median), percent(loop.tpot.median_abs), percent(loop.tpot.p95_abs),
               signed_percent(loop.ttft.median), percent(loop.ttft.median_abs), percent(loop.ttft.p95_abs),
               loop.null_rows > 0 ? percent(loop.ttft_null.median_abs) : ""});
  }
}

// Request by request.
std::string loop_table(const ScoredServed& scored) {
  if (scored.loops.empty()) return "";
  TextTable table("lrrrrrrrrr");
  table.row({"request by request", "rows", "TPOT: step |e|", "loop e", "|e|", "95 %", "TTFT: loop e", "|e|", "95 %",
             "null |e|"});
  add_loops(scored.by_class, table);
  add_loops(scored.by_model, table);
  return table.text("  ");
}

std::string counted(const char* what, const std::map<std::string, int>& counts) {
  int all = 0;
  TextTable table("rl");
  for (const auto& [why, count] : counts) {
    table.row({fmt::format("{}", count), why});
    all += count;
  }
  return counts.empty() ? "" : fmt::format("  {}: {} rows\n{}", what, all, table.text("    "));
}

struct ScoredRow {
  const ScoredServed& scored;
  std::size_t at;

  [[nodiscard]] const ServedRow& measured() const { return scored.study.rows[at]; }
  [[nodiscard]] const ServedPrediction& predicted() const { return scored.predictions[at]; }
  [[nodiscard]] const ServedLoopPrediction& loop() const { return scored.loops[at]; }
};

std::vector<ScoredRow> scored_rows(const ScoredServed& scored) {
  std::vector<ScoredRow> rows;
  for (std::size_t row = 0; row < scored.study.rows.size(); ++row) {
    if (scored.is_scored(row)) rows.push_back({scored, row});
  }
  return rows;
}

As error_of_rows(double least = kAny) { return {.decimals = 5, .least = least}; }

using Counts = std::map<std::string, int>;

Fields<Counts::value_type> count_fields() {
  return Fields<Counts::value_type>()
      .add("why", "why", &Counts::value_type::first)
      .add("rows", "how many", &Counts::value_type::second);
}

Fields<ErrorSummary> summary_fields() {
  return Fields<ErrorSummary>()
      .add("median_error", "median", &ErrorSummary::median, error_of_rows())
      .add("median_abs_error", "median |error|", &ErrorSummary::median_abs, error_of_rows(0))
      .add("p95_abs_error", "95 % quantile of |error|", &ErrorSummary::p95_abs, error_of_rows(0));
}

Fields<ServedGroup> group_fields() {
  const auto loop = Fields<ServedLoopErrors>()
                        .add("rows", "rows", &ServedLoopErrors::rows)
                        .object("tpot", "of TPOT", &ServedLoopErrors::tpot, summary_fields())
                        .object("ttft", "of TTFT", &ServedLoopErrors::ttft, summary_fields())
                        .object(
                            "ttft_null", "of the null model of TTFT",
                            [](auto& l) { return l.null_rows > 0 ? &l.ttft_null : nullptr; }, summary_fields());
  const auto null = Fields<ServedGroup>()
                        .add("rows", "rows that have it", &ServedGroup::null_rows)
                        .all(&ServedGroup::null_errors, summary_fields());
  return Fields<ServedGroup>()
      .add("group", "name", &ServedGroup::name)
      .add("rows", "rows", [](auto& g) { return g.rows.size(); })
      .all(&ServedGroup::errors, summary_fields())
      .object(
          "loop", "Served request by request", [](auto& g) { return g.loop.rows > 0 ? &g.loop : nullptr; }, loop)
      .object(
          "null", "the median of the other rows of the same model, format, class and lengths",
          [](auto& g) { return g.null_rows > 0 ? &g : nullptr; }, null);
}

Fields<ScoredRow> loop_fields() {
  return Fields<ScoredRow>()
      .add("tpot", "ms", [](auto& r) { return r.loop().tpot_ms; })
      .add(
          "tpot_error", "error", [](auto& r) { return r.loop().tpot_ms / r.measured().tpot_ms - 1; }, error_of_rows())
      .add("ttft", "ms", [](auto& r) { return r.loop().ttft_ms; })
      .add("ttft_measured", "ms", [](auto& r) { return r.measured().ttft_ms; })
      .add(
          "ttft_error", "error", [](auto& r) { return r.loop().ttft_ms / r.measured().ttft_ms - 1; }, error_of_rows())
      .add("ttft_steady", "ms, in the steady state", [](auto& r) { return r.loop().steady_ttft_ms; })
      .add("ttft_first", "ms, of those that come at once at first", [](auto& r) { return r.loop().first_ttft_ms; });
}

Fields<ScoredRow> row_fields() {
  const auto split = Fields<ServedSplit>()
                         .add("tp", "attention group", &ServedSplit::tp)
                         .add("dp", "attention groups", &ServedSplit::dp)
                         .add("ep", "expert ranks", &ServedSplit::ep)
                         .add("moe_tp", "ranks of an expert", &ServedSplit::moe_tp);
  return Fields<ScoredRow>()
      .add("id", "of the row", [](auto& r) { return r.measured().id; })
      .add("class", "of parallelism", [](auto& r) { return r.measured().kind; })
      .add("model", "model", [](auto& r) { return r.measured().model; })
      .add("precision", "format", [](auto& r) { return r.measured().precision; })
      .add("stack", "serving stack", [](auto& r) { return r.measured().stack; })
      .add("colocated", "the same GPUs prefill", [](auto& r) { return r.measured().colocated; })
      .object(
          "parallelism", "of the GPUs that decode", [](auto& r) { return r.measured().split; }, split)
      .add("input", "tokens of a prompt", [](auto& r) { return r.measured().input; })
      .add("output", "tokens of an answer", [](auto& r) { return r.measured().output; })
      .add("concurrency", "requests at a time", [](auto& r) { return r.measured().concurrency; })
      .add("batch", "requests of a step", [](auto& r) { return r.predicted().batch; })
      .add("mixed_share", "share of steps with prompts", [](auto& r) { return r.predicted().mixed_share; },
           {.decimals = 5, .most = 1})
      .add("chunk_tokens", "tokens of prompts in these", [](auto& r) { return r.predicted().chunk_tokens; })
      .add("predicted", "TPOT, ms", [](auto& r) { return r.predicted().tpot_ms; })
      .add("measured", "TPOT, ms", [](auto& r) { return r.measured().tpot_ms; })
      .add(
          "error", "of TPOT", [](auto& r) { return r.scored.error(r.at); }, error_of_rows())
      .object(
          "loop", "served request by request", [](auto& r) { return r.scored.is_looped(r.at) ? &r : nullptr; },
          loop_fields());
}

}  // namespace

std::string to_table(const ScoredServed& scored) {
  std::string text = fmt::format("{}: {}\n", scored.study.name, scored.study.about);
  if (scored.study.is_absent) return text + fmt::format("  skipped: {} is absent\n", scored.study.table.string());
  TextTable table("lrrrrrr");
  table.row(
      {"TPOT, " + name_of(scored.study.status), "rows", "median e", "median |e|", "95 %", "null: median |e|", "95 %"});
  add_rows(scored.by_class, table);
  add_rows(scored.by_model, table);
  return text + table.text("  ") + loop_table(scored) + counted("left out", scored.left_out) +
         counted("refused", scored.refused);
}

Fields<ScoredServed> served_fields() {
  return Fields<ScoredServed>()
      .add("study", "name", [](auto& s) { return s.study.name; })
      .add("about", "one line", [](auto& s) { return s.study.about; })
      .add("status", "what those who made the constants knew", [](auto& s) { return name_of(s.study.status); },
           {.words = words_to(FactStatus::blind)})
      .add("unit", "of predicted and measured", [](auto&) { return "ms"; })
      .add("skipped", "why nothing is scored",
           [](auto& s) { return only_if(s.study.is_absent, s.study.table.string() + " is absent"); })
      .list("by_class", "by class of parallelism", &ScoredServed::by_class, group_fields())
      .list("by_model", "by model and stack", &ScoredServed::by_model, group_fields())
      .list("left_out", "rows that are not scored", &ScoredServed::left_out, count_fields())
      .list("refused", "rows that cannot be predicted", &ScoredServed::refused, count_fields())
      .list("rows", "scored rows", scored_rows, row_fields());
}

}  // namespace moeline
