#include "calib/fit/row_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "base/spec.hpp"
#include "curves/form.hpp"

namespace moeline {
namespace {

constexpr std::string_view kIfAny = " if any";  // after a column that some tables lack

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + by.size()) {
    end = text.find(by, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

std::vector<std::string> words_at(const Spec& spec, const std::string& key) {
  return spec.is_list(key) ? spec.texts(key) : std::vector<std::string>{spec.text(key)};
}

// "m x n: [256x12288]", "latency: {above: 4}".
std::vector<RowCondition> read_conditions(const Spec& spec) {
  std::vector<RowCondition> conditions;
  for (const std::string& key : spec.keys()) {
    RowCondition condition;
    condition.is_ratio = key.find(" / ") != std::string::npos;
    condition.columns = split(key, condition.is_ratio ? " / " : " x ");
    const std::vector<std::string> inside = spec.words(key);
    const bool is_bound = !spec.is_list(key) && !inside.empty() &&
                          (inside[0] == "above" || inside[0] == "below" || inside[0] == "not_multiple_of");
    if (is_bound) {
      const Spec bounds = spec.map(key);
      bounds.expect({"above", "below", "not_multiple_of"});
      if (bounds.has("above")) condition.above = bounds.number("above", -1e30, 1e30);
      if (bounds.has("not_multiple_of")) condition.not_multiple_of = bounds.number("not_multiple_of", 1, 1e9);
      if (bounds.has("below")) condition.below = bounds.number("below", -1e30, 1e30);
    } else {
      condition.words = words_at(spec, key);
      if (condition.words.empty()) throw spec.error(key, "must name at least one word");
    }
    if (condition.is_ratio && (condition.columns.size() != 2 || !is_bound)) {
      throw spec.error(key, "is a ratio of two columns: {above: 2} or {below: 2}");
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

std::map<std::string, std::string> read_words(const Spec& spec) {
  std::map<std::string, std::string> words;
  for (const std::string& key : spec.keys()) words[key] = spec.text(key);
  return words;
}

// "flash_attention_3", or a form for each machine.
std::map<std::string, std::string> read_forms(const Spec& spec) {
  const std::vector<std::string> names = form_names();
  if (spec.words("form").size() == 1) return {{"else", spec.choice("form", names)}};
  const Spec by_machine = spec.map("form");
  std::map<std::string, std::string> forms;
  for (const std::string& machine : by_machine.keys()) forms[machine] = by_machine.choice(machine, names);
  return forms;
}

double us_per(const Spec& spec, const std::string& unit) {
  if (unit == "us") return 1;
  if (unit == "ms") return 1e3;
  throw spec.error("time", fmt::format("is 'COLUMN ms' or 'COLUMN us', not of '{}'", unit));
}

void read_time(const Spec& spec, RowKind& kind) {
  const std::vector<std::string> time = split(spec.text("time"), " ");
  if (time.size() != 2) throw spec.error("time", "is 'COLUMN ms' or 'COLUMN us'");
  kind.time = time[0];
  kind.us_per_unit = us_per(spec, time[1]);
}

Spikes read_spikes(const Spec& spec) {
  spec.expect({"same", "rising", "falling", "above"});
  const auto columns = [&](const char* key) { return spec.has(key) ? spec.texts(key) : std::vector<std::string>{}; };
  return {columns("same"), columns("rising"), columns("falling"), spec.number("above", 1, 1e3)};
}

RowKind read_row_kind(const std::string& name, const Spec& spec) {
  spec.expect(
      {"file", "where", "form", "op", "keys", "words", "time", "slice", "spikes", "witness", "less", "leave_out"});
  RowKind kind;
  kind.name = name;
  kind.file = spec.text("file");
  kind.where = read_conditions(spec.map_or_empty("where"));
  kind.form = read_forms(spec);
  kind.op = spec.text("op");
  const Spec keys = spec.map("keys");
  for (const std::string& key : keys.keys()) kind.keys.emplace_back(key, keys.text(key));
  if (kind.keys.empty()) throw spec.error("keys", "must name at least one");
  kind.words = read_words(spec.map_or_empty("words"));
  read_time(spec, kind);
  kind.slice = spec.texts("slice");
  if (spec.has("spikes")) kind.spikes = read_spikes(spec.map("spikes"));
  if (spec.has("witness")) {
    const Spec witness = spec.map("witness");
    witness.expect({"file", "above"});
    kind.witness = {witness.text("file"), witness.number("above", 1, 1e3)};
  }
  if (spec.has("less")) {
    const Spec less = spec.map("less");
    less.expect({"file", "by"});
    kind.less = {less.text("file"), less.texts("by")};
    if (kind.less.by.empty()) throw less.error("by", "must name at least one column");
  }
  const Spec rules = spec.map_or_empty("leave_out");
  for (const std::string& reason : rules.keys()) {
    kind.leave_out.push_back({reason, read_conditions(rules.map(reason))});
    if (kind.leave_out.back().conditions.empty()) throw rules.error(reason, "would leave out every row");
  }
  return kind;
}

// "linear: {by size: {m: 10, n: 5, k: 5}}", by OP.
void read_grids(const Spec& corrections, std::vector<RowKind>& kinds) {
  constexpr int kMostKnots = 64;  // of an axis
  for (const std::string& op : corrections.keys()) {
    const Spec named = corrections.map(op);
    std::vector<Grid> grids;
    for (const std::string& name : named.keys()) {
      const Spec knots = named.map(name);
      knots.expect(dimension_names());
      Grid grid;
      for (std::size_t i = 0; i < dimension_names().size(); ++i) {
        const std::string& dimension = dimension_names()[i];
        if (knots.has(dimension)) grid[static_cast<Dimension>(i)] = knots.integer(dimension, 2, kMostKnots);
      }
      if (grid.empty()) throw named.error(name, "must name at least one dimension");
      grids.push_back(std::move(grid));
    }
    bool is_read = false;
    for (RowKind& kind : kinds) {
      if (kind.op != op) continue;
      kind.grids = grids;
      is_read = true;
    }
    if (!is_read) throw corrections.error(op, "is the OP of no entry");
  }
}

std::string cell(const RowKind& kind, const CsvTable& table, std::size_t row, const std::string& column) {
  const std::string& text = table.text(row, column);
  const auto word = kind.words.find(text);
  return word == kind.words.end() ? text : word->second;
}

// A cell, or a number as it stands.
double number_in(const RowKind& kind, const CsvTable& table, std::size_t row, const std::string& column) {
  const bool stands = std::isdigit(static_cast<unsigned char>(column.front())) != 0;
  const std::string text = stands ? column : cell(kind, table, row, column);
  std::istringstream stream(text);
  double value = 0;
  if (!(stream >> value) || !stream.eof()) {
    throw SpecError(table.file(), table.line(row), fmt::format("{}: '{}' is not a number", column, text.substr(0, 40)));
  }
  return value;
}

// "m", "isl + step", "3 * m * k"; "=hot" is the word itself.
std::string value_of(const RowKind& kind, const CsvTable& table, std::size_t row, const std::string& expression) {
  if (expression.starts_with("=")) return expression.substr(1);
  const std::vector<std::string> summands = split(expression, " + "), factors = split(expression, " * ");
  if (summands.size() == 1 && factors.size() == 1) return cell(kind, table, row, expression);
  const bool adds = summands.size() > 1;
  double value = adds ? 0 : 1;
  for (const std::string& column : adds ? summands : factors) {
    const double next = number_in(kind, table, row, column);
    value = adds ? value + next : value * next;
  }
  return fmt::format("{}", value);
}

bool meets(const RowCondition& condition, const CsvTable& table, std::size_t row) {
  const auto is_there = [&](const std::string& column) { return table.has(column); };
  if (!std::all_of(condition.columns.begin(), condition.columns.end(), is_there)) return false;
  if (condition.words.empty()) {
    double value = table.number(row, condition.columns[0]);
    if (condition.is_ratio) value /= table.number(row, condition.columns[1]);
    const double block = condition.not_multiple_of;
    return value > condition.above && value < condition.below && (block == 0 || std::fmod(value, block) != 0);
  }
  std::string joined = table.text(row, condition.columns[0]);
  for (std::size_t i = 1; i < condition.columns.size(); ++i) joined += "x" + table.text(row, condition.columns[i]);
  return std::find(condition.words.begin(), condition.words.end(), joined) != condition.words.end();
}

}  // namespace

std::vector<RowKind> read_row_kinds(const std::filesystem::path& path) {
  const Spec spec = Spec::load(path);
  spec.expect({"schema", "corrections", "rows"});
  (void)spec.integer("schema", 1, 1);
  const Spec rows = spec.map("rows");
  std::vector<RowKind> kinds;
  for (const std::string& name : rows.keys()) kinds.push_back(read_row_kind(name, rows.map(name)));
  read_grids(spec.map_or_empty("corrections"), kinds);
  return kinds;
}

bool meets(const std::vector<RowCondition>& conditions, const CsvTable& table, std::size_t row) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const RowCondition& condition) { return meets(condition, table, row); });
}

std::string op_of(const RowKind& kind, const CsvTable& table, std::size_t row) {
  std::string text = kind.op;
  char before = ':';
  for (const auto& [key, expression] : kind.keys) {
    const bool optional = expression.ends_with(kIfAny);
    const std::string column = optional ? expression.substr(0, expression.size() - kIfAny.size()) : expression;
    if (optional && !table.has(column)) continue;
    text += before + key + "=" + value_of(kind, table, row, column);
    before = ',';
  }
  return text;
}

}  // namespace moeline
