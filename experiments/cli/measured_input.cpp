#include "experiments/cli/measured_input.hpp"

#include "base/error.hpp"
#include "base/given_text.hpp"
#include "base/spec.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "moe/module_tree.hpp"

namespace moeline {

bool is_scenario(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || is_stdin(path) || given_text(path);
}

void add_kernel_map_options(CLI::App& command, MeasuredInput& input) {
  command.add_option("--map", input.map,
                     "YAML file: kernel patterns for phases and classes (model/measured/README.md)");
  command.add_option("--comm-pattern", input.communication,
                     "regular expression: kernels that communicate, instead of NCCL, DeepEP, NVSHMEM, pplx");
}

void add_measured_input(CLI::App& command, MeasuredInput& input) {
  command
      .add_option("trace", input.path,
                  "profiler trace: Kineto's (.json, .json.gz), or Nsight Systems' export (.sqlite)")
      ->required();
  add_kernel_map_options(command, input);
  add_window_options(command, input.window);
}

namespace {

void check_modules(const std::string& path) {
  const Spec modules = Spec::load(path).map_or_empty("modules");
  for (const std::string& name : modules.keys()) {
    try {
      (void)parent_of(name);
    } catch (const SpecError& error) {
      throw modules.error(name, error.what());
    }
  }
}

KernelMap load_checked(const std::string& path) {
  KernelMap map = load_kernel_map(path);
  check_modules(path);
  return map;
}

}  // namespace

KernelMap kernel_map_of(const MeasuredInput& input) {
  KernelMap map = input.map.empty() ? KernelMap{} : load_checked(input.map);
  if (input.communication.empty()) return map;
  map.communication = input.communication;
  try {
    (void)KernelClassifier({}, map.communication);
  } catch (const SpecError& error) {
    throw SpecError(std::string("--comm-pattern: ") + error.what());
  }
  return map;
}

Trace load_trace(const MeasuredInput& input, const KernelMap& map, const Console& console) {
  check_window(input.window);
  Trace trace = with_progress(console, [&](const Progress& progress) { return read_trace(input.path, progress); });
  return in_window(std::move(trace), input.window, map, input.path);
}

Measured load_measured(const MeasuredInput& input, const Console& console) {
  const KernelMap map = kernel_map_of(input);
  return on_behalf_of(input.path, [&] { return understand(load_trace(input, map, console), map); });
}

}  // namespace moeline
