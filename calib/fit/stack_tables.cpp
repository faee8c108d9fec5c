#include "calib/fit/stack_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "calib/fit/read_rows.hpp"
#include "curves/form.hpp"
#include "hardware/device_name.hpp"
#include "hardware/parse_op.hpp"
#include "moe/attention_kernels.hpp"
#include "moe/small_kernels.hpp"

namespace moeline {
namespace {

const std::string& form_for(const RowKind& kind, const std::string& profile) {
  const auto own = kind.form.find(profile);
  const auto found = own == kind.form.end() ? kind.form.find("else") : own;
  if (found != kind.form.end()) return found->second;
  throw SpecError(fmt::format("'{}' has no form for {}", kind.name, profile));
}

bool has_form(const RowKind& kind, const std::string& profile) {
  return kind.form.contains(profile) || kind.form.contains("else");
}

RequestedOp parsed(const StackTable& table, const StackReading& reading, const MachineFacts& machine) {
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

// Of forms for kernels of few shapes, which is of which.
bool is_of_few_shapes(const Form& form, const Operator& op) {
  if (form.name == "hipblaslt") return op.measured_as.starts_with("linear");
  if (form.name == "aiter_experts") return op.experts.role != ExpertRole::none;
  return form.name == "paged_attention_rocm" && op.family == Family::gqa_decode;
}

// Whether the form is one of such kernels, which some table measures.
bool suits(const Form& form, const Operator& op) {
  if (op.measured_as.empty()) return false;
  const auto is_one_of = [&](const std::vector<Form>& forms) {
    return std::any_of(forms.begin(), forms.end(), [&](const Form& each) { return each.name == form.name; });
  };
  if (is_one_of(peaks_forms())) return is_of_few_shapes(form, op);
  if (const std::string kept = state_form_of(op); !kept.empty()) return form.name == kept;
  // Kernels of sparse attention: the form's name begins like the family's, or the other way round.
  if (is_one_of(sparse_forms()) || op.measured_as.starts_with("indexer")) {
    return op.measured_as.starts_with(form.name) || form.name.starts_with(op.measured_as);
  }
  const bool batched = form.name.starts_with("batched");
  if (op.measured_as.starts_with("linear")) return is_one_of(linear_forms());
  if (op.experts.role != ExpertRole::none) return is_one_of(moe_forms());
  if (is_by_cudnn(op)) return form.name == op.measured_as;
  if (op.family == Family::attention_forward) return is_one_of(prefill_forms());
  if (is_attention(op.family)) return is_one_of(decode_forms()) && !batched;
  if (is_gemm(op.family)) return batched;
  if (is_small_kernel(op)) return form.name == "launch_floor";
  if (is_memory_bound(op.family)) return is_one_of(rows_forms());
  const bool reduces_or_gathers = op.measured_as.starts_with("nccl") || op.measured_as.starts_with("custom");
  return is_one_of(reduces_or_gathers ? collective_forms() : all_to_all_forms());
}

using Families = std::map<std::string, StackFamily>;

// What rows say of themselves in a table without a manifest, as those of traces do.
struct Origins {
  std::set<std::string> sources, stacks;

  void add(const StackTable& table, std::size_t row) {
    if (table.manifest) return;
    if (table.csv.has("source")) sources.insert(table.csv.text(row, "source"));
    if (table.csv.has("stack")) stacks.insert(table.csv.text(row, "stack"));
  }
};

void add_rows(const StackTable& table, const RowKind& kind, const std::vector<StackReading>& readings, const Form& form,
              const MachineFacts& machine, Families& families, Origins& origins) {
  for (const StackReading& reading : readings) {
    origins.add(table, reading.row);
    const RequestedOp op = parsed(table, reading, machine);
    FormRow row{{}, reading.us, measured_dimensions_of(op.kernels.back(), op.conditions.sms)};
    row.where = fmt::format("{}:{} {}", table.name, table.csv.line(reading.row), reading.op);
    row.slice = cells_of(table, kind.slice, reading.row);
    const std::string& name = op.kernels.back().measured_as;
    if (!suits(form, op.kernels.back())) {
      throw SpecError(table.csv.file(), table.csv.line(reading.row),
                      fmt::format("the form {} is not one of '{}'", form.name, reading.op));
    }
    for (const Operator& kernel : op.kernels) row.curves.push_back(form.curve(kernel, op.conditions.sms, machine));
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
  for (double& constant : family.constants) constant = digits(constant, 5);
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

void expect_machine(const StackTable& table, const std::string& profile) {
  if (!table.manifest || !is_another_machine(profile, table.manifest->device)) return;
  throw SpecError(table.csv.file(), 0,
                  fmt::format("was measured on {} (manifest.csv), not on {}", table.manifest->device, profile));
}

std::vector<StackTable> read_tables(const std::vector<std::filesystem::path>& files, const StackRequest& request) {
  std::vector<StackTable> tables;
  for (const std::filesystem::path& file : files) {
    tables.push_back({table_name(file), read_table(file), manifest_entry(file)});
    expect_machine(tables.back(), request.profile);
  }
  return tables;
}

// "ai-dynamo/aiconfigurator 095f58a: sglang 0.5.12, sglang 0.5.14, nccl 2.29.2", and what rows say of themselves.
std::string source_of(const std::vector<StackTable>& tables, const Origins& origins) {
  std::set<std::string> versions;
  std::string commit;
  for (const StackTable& table : tables) {
    if (!table.manifest) continue;
    versions.insert(table.manifest->backend + " " + table.manifest->version);
    commit = table.manifest->commit.substr(0, 7);
  }
  std::vector<std::string> sources;
  if (!versions.empty()) {
    sources.push_back(fmt::format("ai-dynamo/aiconfigurator {}: {}", commit, fmt::join(versions, ", ")));
  }
  sources.insert(sources.end(), origins.sources.begin(), origins.sources.end());
  return sources.empty() ? "tables without a manifest" : fmt::format("{}", fmt::join(sources, "; "));
}

// Tables of libraries, as NCCL's, lie among the stack's own.
Stack stack_of(const std::vector<StackTable>& tables, const Origins& origins) {
  for (const Stack stack : {Stack::sglang, Stack::trtllm, Stack::vllm}) {
    const auto is_of_it = [&](const StackTable& table) {
      return table.manifest && table.manifest->backend == name_of(stack);
    };
    if (std::any_of(tables.begin(), tables.end(), is_of_it)) return stack;
    if (origins.stacks.contains(name_of(stack))) return stack;
  }
  return Stack::none;
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
                                 const StackRequest& request, const MachineFacts& machine, const Progress& progress) {
  const std::vector<StackTable> tables = read_tables(files, request);
  StackCalibration result;
  RowLog log(result);
  Families families;
  Origins origins;
  for (const StackTable& table : tables) {
    bool is_read = false;
    for (const RowKind& kind : kinds) {
      if (!has_form(kind, request.profile)) continue;
      is_read = is_read || table.name == kind.file || table.name == kind.less.file;
      if (table.name != kind.file) continue;
      add_rows(table, kind, read_rows(table, kind, tables, log), *form_named(form_for(kind, request.profile)), machine,
               families, origins);
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
  set.stack = stack_of(tables, origins);
  set.source = source_of(tables, origins);
  set.fitted_on = machine;
  set.constants.fill(kUnknown);
  set.origins.fill(set.name);
  ProgressCount one_more(progress, "families", families.size());
  for (auto& [name, family] : families) {
    solve(request.parts, family);
    FamilyFit fit = fit_of(family);
    fit.kernel_set = set.name;
    fit.clock = set.clock;
    set.fits[name] = std::move(fit);
    result.families.push_back(std::move(family));
    one_more();
  }
  return result;
}

}  // namespace moeline
