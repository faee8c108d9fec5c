#include "calib/fit/calibrate.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/solve.hpp"
#include "calib/fit/trace_observations.hpp"

namespace moeline {
namespace {

std::vector<Observation> observations_of(const CsvTable& table, const std::vector<int>& layers,
                                         const Architecture& model, const MachineFacts& machine) {
  if (table.has("launch_us")) return trace_observations(table, layers, model, machine);
  if (table.has("dispatch_transmit_us")) return copy_observations(table, model, machine);
  if (table.has("logical_bandwidth_GBps")) return alone_observations(table, model, machine);
  throw SpecError(table.file(), 1,
                  "is not a table that calibrate knows: attributed kernels of a trace (column launch_us), DeepEP's "
                  "benchmark (dispatch_transmit_us), or DeepEP's published bandwidths (logical_bandwidth_GBps)");
}

}  // namespace

Calibration calibrate(const std::vector<std::filesystem::path>& files, const std::vector<int>& layers,
                      const Architecture& model, const MachineFacts& machine) {
  Calibration result;
  for (const std::filesystem::path& file : files) {
    const std::vector<Observation> more = observations_of(CsvTable(file), layers, model, machine);
    result.observations.insert(result.observations.end(), more.begin(), more.end());
  }
  KernelSet& set = result.kernels;
  set.name = "deepseek-2025-02";
  set.date = "2025-02";
  set.source = fmt::format(
      "\"least squares on layers {} of deepseek-ai/profile-data train.json (H800, EP64, 20 communication SMs); SM "
      "copies from ai-dynamo/aiconfigurator's DeepEP tables of H100, all-to-all alone from DeepEP's table of February "
      "2025\"",
      fmt::join(layers, ", "));
  set.fitted_on = machine;
  set.constants = solve(result.observations);
  for (double& constant : set.constants) constant = std::strtod(fmt::format("{:.5g}", constant).c_str(), nullptr);
  set.fits = assess(result.observations, set.constants);
  return result;
}

}  // namespace moeline
