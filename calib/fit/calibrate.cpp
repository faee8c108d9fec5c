#include "calib/fit/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "calib/fit/attention_observations.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/gemm_observations.hpp"
#include "calib/fit/solve.hpp"
#include "calib/fit/trace_observations.hpp"

namespace moeline {
namespace {

struct Tables {
  std::vector<Observation> observations;
  std::vector<std::string> sources;

  void add(const std::vector<Observation>& more, const std::string& source) {
    observations.insert(observations.end(), more.begin(), more.end());
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
  }
};

// DeepEP's: what transfers beside compute kernels are measured in multiples of.
bool is_transfer_table(const CsvTable& table) {
  for (const char* column : {"dispatch_transmit_us", "dispatch_avg_t_us", "logical_bandwidth_GBps", "holds_sms_us"}) {
    if (table.has(column)) return true;
  }
  return false;
}

bool is_training_trace(const CsvTable& table) { return table.has("launch_us"); }

// Everything but the training trace.
void add_benchmark(const CsvTable& table, const std::string& kernels, const Architecture& model,
                   const MachineFacts& machine, Tables& tables) {
  if (table.has("dispatch_transmit_us")) {
    tables.add(normal_observations(table, model, machine), "ai-dynamo/aiconfigurator's DeepEP tables of H100");
  } else if (table.has("dispatch_avg_t_us")) {
    tables.add(low_latency_observations(table, model, machine, kernels),
               "ai-dynamo/aiconfigurator's DeepEP tables of H100");
  } else if (table.has("logical_bandwidth_GBps")) {
    tables.add(published_observations(table, model, machine, kernels), "DeepEP's published figures");
  } else if (table.has("holds_sms_us")) {
    tables.add(hold_observations(table, model, machine), "two figures of what low-latency kernels hold SMs for");
  } else if (table.has("flash_mla_bound")) {
    tables.add(flash_mla_observations(table, kernels, machine), "FlashMLA's published figures");
  } else if (is_dense_gemm_table(table)) {
    tables.add(dense_gemm_observations(table, machine, kernels), "alibaba/InferSim's GEMM tables of H800");
  } else if (is_grouped_gemm_table(table)) {
    tables.add(grouped_gemm_observations(table, machine, kernels), "alibaba/InferSim's GEMM tables of H800");
  } else if (is_published_gemm_table(table)) {
    tables.add(published_gemm_observations(table, machine, kernels), "DeepGEMM's published figures");
  } else if (is_attention_table(table)) {
    tables.add(attention_observations(table, machine), "alibaba/InferSim's attention tables of H800");
  } else {
    throw SpecError(
        table.file(), 1,
        "is not a table that calibrate knows: attributed kernels of a trace (column launch_us), DeepEP's "
        "benchmarks (dispatch_transmit_us, dispatch_avg_t_us), kernel tables (latency_us or up_proj_us), or "
        "published figures as in calib/data");
  }
}

void add_trace(const CsvTable& table, const std::string& kernels, const std::vector<int>& layers,
               const Architecture& model, const MachineFacts& machine, const Tables& transfers, Tables& tables) {
  Constants alone;
  alone.fill(kUnknown);
  if (!transfers.observations.empty()) alone = solve(transfers.observations);
  set_own_node_constants(kernels, alone);
  std::vector<Observation> observations = trace_observations(table, layers, model, machine, alone);
  leave_out_startup(observations);
  tables.add(std::move(observations),
             fmt::format("layers {} of deepseek-ai/profile-data train.json (H800, EP64, 20 communication SMs)",
                         fmt::join(layers, ", ")));
}

// What was never left out of the fit belongs to its range all the same.
void take_errors(const FamilyFit& from, FamilyFit& fit) {
  fit.held_out = from.held_out;
  fit.kernels = from.kernels;
  fit.median_abs_error = from.median_abs_error;
  fit.p95_abs_error = from.p95_abs_error;
  fit.worst_error = from.worst_error;
  fit.mean_error = from.mean_error;
}

double rounded(double constant) { return std::strtod(fmt::format("{:.5g}", constant).c_str(), nullptr); }

}  // namespace

Calibration calibrate(const std::vector<std::filesystem::path>& files, const CalibrationRequest& request,
                      const Architecture& model, const MachineFacts& machine) {
  Tables tables;
  Tables transfers;  // of these
  std::vector<CsvTable> traces;
  for (const std::filesystem::path& file : files) {
    const CsvTable table(file);
    if (is_training_trace(table)) {
      traces.push_back(table);
    } else {
      add_benchmark(table, request.kernels, model, machine, tables);
      if (is_transfer_table(table)) add_benchmark(table, request.kernels, model, machine, transfers);
    }
  }
  for (const CsvTable& trace : traces)
    add_trace(trace, request.kernels, request.layers, model, machine, transfers, tables);
  KernelSet set;
  set.name = request.kernels;
  set.date = request.kernels.substr(request.kernels.find('-') + 1);
  set.source = fmt::format("least squares on {}", fmt::join(tables.sources, "; "));
  set.fitted_on = machine;
  set.constants = solve(tables.observations);
  set_own_node_constants(set.name, set.constants);
  set_unfitted_startup(set.constants);
  for (double& constant : set.constants) constant = rounded(constant);
  set.fits = assess(tables.observations, set.constants);
  set.fits.erase("jitter");  // a spread: single differences have no error
  if (request.cross_validate) {
    for (const auto& [family, fit] : cross_validate(tables.observations)) take_errors(fit, set.fits[family]);
  }
  return {std::move(set), std::move(tables.observations)};
}

}  // namespace moeline
