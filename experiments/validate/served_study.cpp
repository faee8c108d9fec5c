#include "experiments/validate/served_study.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "calib/fit/read_rows.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

// Rows whose cell is one of these values.
struct Rule {
  std::string column;
  std::vector<std::string> values;
  std::string why;
  Spec written;
};

std::vector<Rule> read_rules(const Spec& spec) {
  std::vector<Rule> rules;
  for (const std::string& why : spec.keys()) {
    const Spec rule = spec.map(why);
    rule.expect({"column", "values"});
    rules.push_back({rule.text("column"), rule.texts("values"), why, rule});
  }
  return rules;
}

std::map<std::string, std::string> read_names(const Spec& spec) {
  std::map<std::string, std::string> names;
  for (const std::string& key : spec.keys()) names[key] = spec.text(key);
  return names;
}

// `config`: a folder of measured_data()/configs.
std::vector<ServedModel> read_models(const Spec& spec, bool data_is_there) {
  std::vector<ServedModel> models;
  for (const std::string& key : spec.keys()) {
    const Spec entry = spec.map(key);
    entry.expect({"names", "precision", "config", "set"});
    ServedModel model{entry.texts("names"), entry.text("precision"), {}};
    if (entry.has("set")) model.set = entry.texts("set");
    if (entry.has("config")) {
      const std::filesystem::path config = measured_data() / "configs" / entry.text("config");
      if (data_is_there && !std::filesystem::exists(config))
        throw entry.error("config", config.string() + " is absent");
      model.set.push_back("model=" + config.string());
    }
    models.push_back(std::move(model));
  }
  return models;
}

int ranks(const CsvTable& table, std::size_t row, const std::string& column) {
  constexpr int kMost = 4096;
  return table.text(row, column).empty() ? 1 : table.integer(row, column, 1, kMost);
}

bool is_colocated(const CsvTable& table, std::size_t row) {
  const std::vector<std::string> modes = {"agg", "disagg"};
  const std::string& mode = table.text(row, "mode");
  if (std::find(modes.begin(), modes.end(), mode) == modes.end()) {
    throw SpecError(table.file(), table.line(row), unknown_name("mode", mode, modes));
  }
  return mode == modes.front();
}

// What the study itself names wrong is no row's fault.
void check_names(const Spec& spec, const ServedStudy& study) {
  if (!std::filesystem::exists(study.scenario)) throw spec.error("scenario", study.scenario.string() + " is absent");
  const Spec machines = spec.map("machines"), kernels = spec.map("kernels");
  for (const auto& machine : study.machines) {  // clang 14 lets no lambda see names of a binding
    const HardwareProfile profile =
        at_key(machines, machine.first, [&] { return load_profile(machine.second, {}, spec.file()); });
    for (const auto& kernel_set : study.kernels) {
      (void)at_key(kernels, kernel_set.first, [&] { return profile.kernels(kernel_set.second, ""); });
    }
  }
}

// `side`: what the columns' names begin with.
ServedSplit read_split(const CsvTable& table, std::size_t row, const std::string& side) {
  ServedSplit split;
  split.tp = ranks(table, row, side + "tp_size");
  split.dp = ranks(table, row, side + "attention_dp_size");
  split.pp = ranks(table, row, side + "pp_size");
  split.ep = ranks(table, row, side + "moe_ep_size");
  split.moe_tp = ranks(table, row, side + "moe_tp_size");
  if (!side.empty()) split.workers = ranks(table, row, side + "num_workers");
  return split;
}

void check_columns(const std::vector<Rule>& rules, const CsvTable& table) {
  for (const Rule& rule : rules) {
    (void)at_key(rule.written, "column", [&] { return expect_name("column", rule.column, table.columns()); });
  }
}

// The first rule that takes it; "" if none does.
std::string taken_by(const std::vector<Rule>& rules, const CsvTable& table, std::size_t row) {
  for (const Rule& rule : rules) {
    const auto& values = rule.values;
    if (std::find(values.begin(), values.end(), table.text(row, rule.column)) != values.end()) return rule.why;
  }
  return "";
}

std::optional<ServedLoop> read_loop(const Spec& spec) {
  if (!spec.has("loop")) return {};
  constexpr int kMostRequests = 1000;
  const Spec loop = spec.map("loop");
  loop.expect({"requests_per_slot", "lengths"});
  const std::vector<double> ends = loop.numbers("lengths", 0.01, 1);
  if (ends.size() != 2 || ends[0] > ends[1]) throw loop.error("lengths", "has two numbers: the least and the most");
  return ServedLoop{loop.integer("requests_per_slot", 1, kMostRequests), ends[0], ends[1]};
}

// `prefill`: what prefills elsewhere is asked for.
ServedRow read_row(const CsvTable& table, std::size_t row, const std::vector<Rule>& left_out,
                   const std::vector<Rule>& apart, bool prefill) {
  ServedRow served;
  served.id = table.text(row, "id");
  served.kind = table.text(row, "class");
  served.system = table.text(row, "system");
  served.model = table.text(row, "model_path");
  served.precision = table.text(row, "precision");
  served.stack = table.text(row, "backend");
  served.left_out = taken_by(left_out, table, row);
  if (!served.left_out.empty()) return served;
  served.apart = taken_by(apart, table, row);
  if (served.kind.empty()) throw SpecError(table.file(), table.line(row), "class is empty");
  served.colocated = is_colocated(table, row);
  constexpr int kMostRequests = 1 << 20, kMostTokens = 1 << 24;  // as of a scenario
  served.concurrency = table.integer(row, "concurrency", 1, kMostRequests);
  served.input = table.integer(row, "isl", 1, kMostTokens);
  served.output = table.integer(row, "osl", 1, kMostTokens);
  served.ttft_ms = table.positive(row, "silicon_ttft_ms");
  served.tpot_ms = table.positive(row, "silicon_tpot_ms");
  served.split = read_split(table, row, served.colocated ? "" : "decode_");
  if (!served.colocated && prefill) served.prefill = read_split(table, row, "prefill_");
  return served;
}

}  // namespace

bool is_served_study(const Spec& spec) { return spec.has("served"); }

ServedStudy read_served_study(const Spec& spec) {
  spec.expect({"about", "served", "status", "scenario", "drawn_length", "step_tokens", "loop", "machines", "kernels",
               "models", "leave_out", "apart"});
  ServedStudy study;
  study.name = std::filesystem::path(spec.file()).parent_path().filename().string();
  study.about = spec.text("about");
  study.status = read_status(spec);
  study.table = measured_data() / spec.text("served");
  study.is_absent = !std::filesystem::exists(study.table);
  study.scenario = beside(spec.file(), spec.text("scenario"));
  study.drawn_length = spec.number("drawn_length", 0.1, 1);
  study.step_tokens = spec.integer("step_tokens", 1, 1 << 20);
  study.loop = read_loop(spec);
  study.machines = read_names(spec.map("machines"));
  study.kernels = read_names(spec.map("kernels"));
  study.models = read_models(spec.map("models"), !study.is_absent);
  check_names(spec, study);
  const std::vector<Rule> left_out = read_rules(spec.map("leave_out"));
  const std::vector<Rule> apart = read_rules(spec.map("apart"));
  if (study.is_absent) return study;
  const CsvTable table = read_table(study.table);
  check_columns(left_out, table);
  check_columns(apart, table);
  for (std::size_t row = 0; row < table.rows(); ++row)
    study.rows.push_back(read_row(table, row, left_out, apart, study.loop.has_value()));
  if (study.rows.empty()) throw SpecError(study.table.string(), 0, "has no rows");
  return study;
}

}  // namespace moeline
