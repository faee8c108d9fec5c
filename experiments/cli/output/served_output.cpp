#include "experiments/cli/output/served_output.hpp"

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

void add_counts(Json& json, const char* name, const std::map<std::string, int>& counts) {
  json.open_list(name);
  for (const auto& [why, count] : counts) json.open().add("why", why).add("rows", count).close();
  json.close_list();
}

void add_errors(Json& json, const ErrorSummary& errors) {
  json.add("median_error", errors.median, 5).add("median_abs_error", errors.median_abs, 5);
  json.add("p95_abs_error", errors.p95_abs, 5);
}

void add_groups(Json& json, const char* name, const std::vector<ServedGroup>& groups) {
  json.open_list(name);
  for (const ServedGroup& group : groups) {
    json.open().add("group", group.name).add("rows", group.rows.size());
    add_errors(json, group.errors);
    if (group.loop.rows > 0) {
      json.open("loop").add("rows", group.loop.rows);
      json.open("tpot");
      add_errors(json, group.loop.tpot);
      json.close().open("ttft");
      add_errors(json, group.loop.ttft);
      json.close();
      if (group.loop.null_rows > 0) {
        json.open("ttft_null");
        add_errors(json, group.loop.ttft_null);
        json.close();
      }
      json.close();
    }
    if (group.null_rows > 0) {
      json.open("null").add("rows", group.null_rows);
      add_errors(json, group.null_errors);
      json.close();
    }
    json.close();
  }
  json.close_list();
}

void add_row(Json& json, const ScoredServed& scored, std::size_t row) {
  const ServedRow& measured = scored.study.rows[row];
  const ServedPrediction& predicted = scored.predictions[row];
  json.open().add("id", measured.id).add("class", measured.kind).add("model", measured.model);
  json.add("precision", measured.precision).add("stack", measured.stack).flag("colocated", measured.colocated);
  json.open("parallelism").add("tp", measured.split.tp).add("dp", measured.split.dp).add("ep", measured.split.ep);
  json.add("moe_tp", measured.split.moe_tp).close();
  json.add("input", measured.input).add("output", measured.output).add("concurrency", measured.concurrency);
  json.add("batch", predicted.batch).add("mixed_share", predicted.mixed_share, 5);
  json.add("chunk_tokens", predicted.chunk_tokens).add("predicted", predicted.tpot_ms);
  json.add("measured", measured.tpot_ms).add("error", scored.error(row), 5);
  if (scored.is_looped(row)) {
    const ServedLoopPrediction& loop = scored.loops[row];
    json.open("loop").add("tpot", loop.tpot_ms).add("tpot_error", loop.tpot_ms / measured.tpot_ms - 1, 5);
    json.add("ttft", loop.ttft_ms).add("ttft_measured", measured.ttft_ms);
    json.add("ttft_error", loop.ttft_ms / measured.ttft_ms - 1, 5);
    json.add("ttft_steady", loop.steady_ttft_ms).add("ttft_first", loop.first_ttft_ms).close();
  }
  json.close();
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

void add_served(Json& json, const ScoredServed& scored) {
  json.open().add("study", scored.study.name).add("about", scored.study.about);
  json.add("status", name_of(scored.study.status)).add("unit", "ms");
  if (scored.study.is_absent) json.add("skipped", scored.study.table.string() + " is absent");
  add_groups(json, "by_class", scored.by_class);
  add_groups(json, "by_model", scored.by_model);
  add_counts(json, "left_out", scored.left_out);
  add_counts(json, "refused", scored.refused);
  json.open_list("rows");
  for (std::size_t row = 0; row < scored.study.rows.size(); ++row) {
    if (scored.is_scored(row)) add_row(json, scored, row);
  }
  json.close_list().close();
}

}  // namespace moeline
