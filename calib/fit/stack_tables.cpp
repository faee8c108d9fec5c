#include "calib/fit/stack_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "calib/fit/table_file.hpp"
#include "curves/stack_forms.hpp"
#include "hardware/device_name.hpp"
#include "hardware/parse_op.hpp"

namespace moeline {
namespace {

struct Table {
  std::string name;
  CsvTable csv;
  std::optional<ManifestEntry> manifest;
};

// A row on its way into a fit.
struct Reading {
  std::string op;
  std::size_t row = 0;
  double us = 0;
};

class Log {
 public:
  explicit Log(StackCalibration& result) : lines_(result.log), repeatability_(result.repeatability) {}
  void note(const RowKind& kind, std::size_t rows, const std::string& what) {
    if (rows > 0) lines_.push_back(fmt::format("{}: {} rows {}", kind.name, rows, what));
  }
  void compare(const RowKind& kind, const std::string& beside, std::size_t ops, const std::vector<double>& deviations) {
    if (ops > 0) repeatability_.push_back({kind.name, beside, ops, summary_of(deviations)});
  }

 private:
  std::vector<std::string>& lines_;
  std::vector<Repeatability>& repeatability_;
};

const std::string& form_for(const RowKind& kind, const std::string& profile) {
  const auto own = kind.form.find(profile);
  const auto found = own == kind.form.end() ? kind.form.find("else") : own;
  if (found != kind.form.end()) return found->second;
  throw SpecError(fmt::format("'{}' has no form for {}", kind.name, profile));
}

bool has_form(const RowKind& kind, const std::string& profile) {
  return kind.form.contains(profile) || kind.form.contains("else");
}

// What each rule leaves out is counted once, for the first that applies.
std::vector<Reading> read_rows(const Table& table, const RowKind& kind, Log& log) {
  std::vector<Reading> readings;
  std::map<std::string, std::size_t> left_out;
  for (std::size_t row = 0; row < table.csv.rows(); ++row) {
    if (!meets(kind.where, table.csv, row)) continue;
    const auto rule = std::find_if(kind.leave_out.begin(), kind.leave_out.end(),
                                   [&](const LeaveOut& each) { return meets(each.conditions, table.csv, row); });
    if (rule != kind.leave_out.end()) {
      ++left_out[rule->reason];
      continue;
    }
    readings.push_back({op_of(kind, table.csv, row), row, table.csv.positive(row, kind.time) * kind.us_per_unit});
  }
  for (const auto& [reason, rows] : left_out) log.note(kind, rows, "left out: " + reason);
  return readings;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One OP measured several times counts once.
std::vector<Reading> merged(const RowKind& kind, std::vector<Reading> readings, Log& log) {
  std::map<std::string, std::vector<double>> times;
  for (const Reading& reading : readings) times[reading.op].push_back(reading.us);
  const std::size_t before = readings.size();
  std::set<std::string> seen;
  std::erase_if(readings, [&](const Reading& reading) { return !seen.insert(reading.op).second; });
  std::size_t repeated = 0;
  std::vector<double> deviations;
  for (Reading& reading : readings) {
    const std::vector<double>& all = times.at(reading.op);
    reading.us = median(all);
    if (all.size() == 1) continue;
    ++repeated;
    for (const double us : all) deviations.push_back(us / reading.us - 1);
  }
  log.compare(kind, "the same table", repeated, deviations);
  log.note(kind, before - readings.size(), "were repeats: the median counts");
  return readings;
}

std::string cells_of(const Table& table, const std::vector<std::string>& columns, std::size_t row) {
  std::string cells;
  for (const std::string& column : columns) cells += column + " " + table.csv.text(row, column) + " ";
  return cells;
}

// What another table has of the same kernels by itself. Without that table no row is left.
void take_off(const Table& table, const RowKind& kind, const std::vector<Table>& tables, std::vector<Reading>& readings,
              Log& log) {
  if (kind.less.file.empty()) return;
  std::map<std::string, double> part;
  for (const Table& other : tables) {
    if (other.name != kind.less.file) continue;
    for (std::size_t row = 0; row < other.csv.rows(); ++row) {
      part[cells_of(other, kind.less.by, row)] = other.csv.positive(row, kind.time) * kind.us_per_unit;
    }
  }
  for (Reading& reading : readings) {
    const auto found = part.find(cells_of(table, kind.less.by, reading.row));
    reading.us = found == part.end() ? 0 : reading.us - found->second;
  }
  const std::size_t before = readings.size();
  std::erase_if(readings, [](const Reading& reading) { return reading.us <= 0; });
  log.note(kind, before - readings.size(), fmt::format("left out: more than that, or nothing, in {}", kind.less.file));
}

// Rows that another version of the stack ran much faster.
void drop_by_witness(const RowKind& kind, const std::vector<Table>& tables, std::vector<Reading>& readings, Log& log) {
  if (kind.witness.above == 0) return;
  const auto witness = std::find_if(tables.begin(), tables.end(),
                                    [&](const Table& other) { return other.name.starts_with(kind.witness.file); });
  if (witness == tables.end()) return;
  std::map<std::string, double> there;
  for (std::size_t row = 0; row < witness->csv.rows(); ++row) {
    if (!meets(kind.where, witness->csv, row)) continue;
    there[op_of(kind, witness->csv, row)] = witness->csv.positive(row, kind.time) * kind.us_per_unit;
  }
  std::vector<double> deviations;
  for (const Reading& reading : readings) {
    const auto other = there.find(reading.op);
    if (other != there.end()) deviations.push_back(reading.us / other->second - 1);
  }
  log.compare(kind, witness->name, deviations.size(), deviations);
  const std::size_t before = readings.size();
  std::erase_if(readings, [&](const Reading& reading) {
    const auto other = there.find(reading.op);
    return other != there.end() && reading.us > kind.witness.above * other->second;
  });
  log.note(kind, before - readings.size(),
           fmt::format("left out: above {} times their time in {}", kind.witness.above, witness->name));
}

// How much work a row is, by column: the larger the more.
std::vector<double> work_of(const Table& table, const Spikes& spikes, const Reading& reading) {
  std::vector<double> work;
  for (const std::string& column : spikes.rising) work.push_back(table.csv.number(reading.row, column));
  for (const std::string& column : spikes.falling) work.push_back(-table.csv.number(reading.row, column));
  return work;
}

// Least time of any row with no less work: on a grid of the values that occur, from its far corner on.
class Envelope {
 public:
  void add(const std::vector<double>& work, double us) {
    axes_.resize(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) axes_[i].push_back(work[i]);
    points_.emplace_back(work, us);
  }

  void close() {
    constexpr std::size_t kMostCells = 10'000'000;
    std::size_t cells = 1;
    for (std::vector<double>& axis : axes_) {
      std::sort(axis.begin(), axis.end());
      axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
      cells *= axis.size();
      if (cells > kMostCells) throw SpecError("spikes: the columns have too many values to be compared on a grid");
    }
    least_.assign(cells, std::numeric_limits<double>::infinity());
    for (const auto& [work, us] : points_) least_[place(work)] = std::min(least_[place(work)], us);
    std::size_t stride = 1;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      for (std::size_t i = cells; i-- > 0;) {
        if (i / stride % axis->size() + 1 < axis->size()) least_[i] = std::min(least_[i], least_[i + stride]);
      }
      stride *= axis->size();
    }
  }

  [[nodiscard]] double at(const std::vector<double>& work) const { return least_[place(work)]; }

 private:
  [[nodiscard]] std::size_t place(const std::vector<double>& work) const {
    std::size_t index = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto at = std::lower_bound(axes_[i].begin(), axes_[i].end(), work[i]) - axes_[i].begin();
      index = index * axes_[i].size() + static_cast<std::size_t>(at);
    }
    return index;
  }

  std::vector<std::vector<double>> axes_;
  std::vector<std::pair<std::vector<double>, double>> points_;
  std::vector<double> least_;  // by cell, the last axis fastest
};

void drop_spikes(const Table& table, const RowKind& kind, std::vector<Reading>& readings, Log& log) {
  const Spikes& spikes = kind.spikes;
  if (spikes.above == 0) return;
  std::map<std::string, Envelope> envelopes;
  for (const Reading& reading : readings) {
    envelopes[cells_of(table, spikes.same, reading.row)].add(work_of(table, spikes, reading), reading.us);
  }
  for (auto& [cells, envelope] : envelopes) envelope.close();
  const std::size_t before = readings.size();
  std::erase_if(readings, [&](const Reading& reading) {
    const Envelope& envelope = envelopes.at(cells_of(table, spikes.same, reading.row));
    return reading.us > spikes.above * envelope.at(work_of(table, spikes, reading));
  });
  log.note(kind, before - readings.size(), fmt::format("left out: above {} times a row with more work", spikes.above));
}

RequestedOp parsed(const Table& table, const Reading& reading, const MachineFacts& machine) {
  try {
    return parse_op(reading.op, machine);
  } catch (const SpecError& error) {
    throw SpecError(table.csv.file(), table.csv.line(reading.row), error.what());
  }
}

// Of kernels that keep a state each has a form of its own; "" of others.
std::string state_form_of(const Operator& op) {
  if (op.family == Family::state_scan) return "chunked_delta_rule";
  if (op.family == Family::state_update) return "delta_rule_update";
  if (!op.measured_as.starts_with("conv")) return "";
  return op.measured_as.ends_with("decode") ? "causal_convolution_update" : "causal_convolution";
}

// Whether the form is one of such kernels, which some table measures.
bool suits(const Form& form, const Operator& op) {
  if (op.measured_as.empty()) return false;
  const auto is_one_of = [&](const std::vector<Form>& forms) {
    return std::any_of(forms.begin(), forms.end(), [&](const Form& each) { return each.name == form.name; });
  };
  if (const std::string kept = state_form_of(op); !kept.empty()) return form.name == kept;
  // Kernels of sparse attention: the form's name begins like the family's, or the other way round.
  if (is_one_of(sparse_forms()) || op.measured_as.starts_with("indexer")) {
    return op.measured_as.starts_with(form.name) || form.name.starts_with(op.measured_as);
  }
  const bool batched = form.name.starts_with("batched");
  if (op.measured_as.starts_with("linear")) return is_one_of(linear_forms());
  if (op.experts.role != ExpertRole::none) return is_one_of(moe_forms());
  if (op.family == Family::attention_forward) return is_one_of(prefill_forms());
  if (is_attention(op.family)) return is_one_of(decode_forms()) && !batched;
  if (is_gemm(op.family)) return batched;
  if (is_memory_bound(op.family)) return is_one_of(rows_forms());
  const bool reduces_or_gathers = op.measured_as.starts_with("nccl") || op.measured_as.starts_with("custom");
  return is_one_of(reduces_or_gathers ? collective_forms() : all_to_all_forms());
}

using Families = std::map<std::string, StackFamily>;

void add_rows(const Table& table, const RowKind& kind, const std::vector<Reading>& readings, const Form& form,
              const MachineFacts& machine, Families& families) {
  for (const Reading& reading : readings) {
    const RequestedOp op = parsed(table, reading, machine);
    FormRow row{{}, reading.us, measured_dimensions_of(op.kernels.back(), op.sms)};
    row.where = fmt::format("{}:{} {}", table.name, table.csv.line(reading.row), reading.op);
    row.slice = cells_of(table, kind.slice, reading.row);
    const std::string& name = op.kernels.back().measured_as;
    if (!suits(form, op.kernels.back())) {
      throw SpecError(table.csv.file(), table.csv.line(reading.row),
                      fmt::format("the form {} is not one of '{}'", form.name, reading.op));
    }
    for (const Operator& kernel : op.kernels) row.curves.push_back(form.curve(kernel, op.sms, machine));
    StackFamily& family = families[name];
    family.name = name;
    if (family.form != nullptr && family.form != &form) {
      throw SpecError(table.csv.file(), table.csv.line(reading.row),
                      fmt::format("{} has the form {} here and {} before", name, form.name, family.form->name));
    }
    family.form = &form;
    family.grids = kind.grids;
    family.rows.push_back(std::move(row));
  }
}

double rounded(double constant) { return std::strtod(fmt::format("{:.5g}", constant).c_str(), nullptr); }

FamilyFit fit_of(const StackFamily& family) {
  FamilyFit fit;
  fit.form = family.form;
  fit.constants = family.constants;
  fit.graph_timed = true;
  fit.correction = family.correction;
  fit.held_out = family.is_held_out();
  const std::vector<double> errors = errors_of(family.rows, family.predicted());
  for (const double error : errors) {
    fit.mean_error += error / static_cast<double>(errors.size());
    if (std::abs(error) >= std::abs(fit.worst_error)) fit.worst_error = error;
  }
  for (const FormRow& row : family.rows) extend(fit.range, row.dimensions);
  fit.kernels = static_cast<int>(family.rows.size());
  const ErrorSummary summary = summary_of(errors);
  fit.median_error = summary.median;
  fit.median_abs_error = summary.median_abs;
  fit.p95_abs_error = summary.p95_abs;
  return fit;
}

void solve(int parts, StackFamily& family) {
  family.constants = fit_form(*family.form, family.rows);
  for (double& constant : family.constants) constant = rounded(constant);
  RowFit whole;
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    whole.seen.push_back(i);
    whole.us.push_back(predict(family.rows[i], family.constants));
  }
  GridChoice choice = choose_grid(family.grids, family.rows, fit_without_slices(*family.form, family.rows, parts));
  family.correction = fit_correction(choice.grid, family.rows, whole);
  family.correction.curve_median_abs_error = choice.curve.median_abs;
  family.correction.curve_p95_abs_error = choice.curve.p95_abs;
  family.fitted = corrected(family.correction, family.rows, whole);
  family.left_out = std::move(choice.left_out);
}

void expect_machine(const Table& table, const std::string& profile) {
  if (!table.manifest || !is_another_machine(profile, table.manifest->device)) return;
  throw SpecError(table.csv.file(), 0,
                  fmt::format("was measured on {} (manifest.csv), not on {}", table.manifest->device, profile));
}

std::vector<Table> read_tables(const std::vector<std::filesystem::path>& files, const StackRequest& request) {
  std::vector<Table> tables;
  for (const std::filesystem::path& file : files) {
    tables.push_back({table_name(file), read_table(file), manifest_entry(file)});
    expect_machine(tables.back(), request.profile);
  }
  return tables;
}

// "ai-dynamo/aiconfigurator 095f58a: sglang 0.5.12, sglang 0.5.14, nccl 2.29.2"
std::string source_of(const std::vector<Table>& tables) {
  std::set<std::string> versions;
  std::string commit;
  for (const Table& table : tables) {
    if (!table.manifest) continue;
    versions.insert(table.manifest->backend + " " + table.manifest->version);
    commit = table.manifest->commit.substr(0, 7);
  }
  if (versions.empty()) return "tables without a manifest";
  return fmt::format("ai-dynamo/aiconfigurator {}: {}", commit, fmt::join(versions, ", "));
}

}  // namespace

bool is_stack_table(const std::filesystem::path& file, const std::vector<RowKind>& kinds) {
  const std::string name = table_name(file);
  return std::any_of(kinds.begin(), kinds.end(), [&](const RowKind& kind) {
    return name == kind.file || name == kind.less.file ||
           (!kind.witness.file.empty() && name.starts_with(kind.witness.file));
  });
}

StackCalibration calibrate_stack(const std::vector<std::filesystem::path>& files, const std::vector<RowKind>& kinds,
                                 const StackRequest& request, const MachineFacts& machine) {
  const std::vector<Table> tables = read_tables(files, request);
  StackCalibration result;
  Log log(result);
  Families families;
  for (const Table& table : tables) {
    bool is_read = false;
    for (const RowKind& kind : kinds) {
      if (!has_form(kind, request.profile)) continue;
      is_read = is_read || table.name == kind.file || table.name == kind.less.file;
      if (table.name != kind.file) continue;
      std::vector<Reading> readings = merged(kind, read_rows(table, kind, log), log);
      if (readings.empty()) result.log.push_back(kind.name + ": no row is left");
      take_off(table, kind, tables, readings, log);
      drop_by_witness(kind, tables, readings, log);
      drop_spikes(table, kind, readings, log);
      add_rows(table, kind, readings, *form_named(form_for(kind, request.profile)), machine, families);
    }
    if (!is_read)
      result.log.push_back(fmt::format("{}: has nothing that is fitted on {}", table.name, request.profile));
  }
  if (families.empty())
    throw SpecError(files.front().string(), 0, "no row of these tables is one that the mapping fits");
  KernelSet& set = result.kernels;
  set.name = request.kernels;
  set.date = request.date;
  set.clock = Clock::burst;
  set.of_a_stack = true;
  set.source = source_of(tables);
  set.fitted_on = machine;
  set.constants.fill(kUnknown);
  set.origins.fill(set.name);
  for (auto& [name, family] : families) {
    solve(request.parts, family);
    FamilyFit fit = fit_of(family);
    fit.kernel_set = set.name;
    fit.clock = set.clock;
    set.fits[name] = std::move(fit);
    result.families.push_back(std::move(family));
  }
  return result;
}

}  // namespace moeline
