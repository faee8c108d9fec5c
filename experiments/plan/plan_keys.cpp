#include "experiments/plan/plan_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/profile.hpp"

namespace moeline {
namespace {

// A path may hold what means something in YAML.
std::string quoted(const std::string& text) {
  std::string inside;
  for (const char c : text) inside += c == '\'' ? "''" : std::string(1, c);
  return "'" + inside + "'";
}

// Refuses what load_profile and its kernel sets do not know, at its line.
PlanHardware read_machine(const Spec& list, const std::string& name, const std::filesystem::path& file) {
  const Spec spec = list.is_null(name) ? list.map_or_empty("") : list.map(name);
  spec.expect({"usd_per_gpu_hour", "kernels", "set"});
  PlanHardware machine;
  machine.name = name;
  machine.kernels = spec.text_or("kernels", "");
  machine.set = texts_or_none(spec, "set");
  if (spec.has("usd_per_gpu_hour")) machine.usd_per_gpu_hour = spec.number("usd_per_gpu_hour", 1e-6, 1e6);
  const HardwareProfile profile = at_key(list, name, [&] { return load_profile(name, {}, file.string()); });
  machine.name = spelt_as(profile.name, name);
  try {
    (void)load_profile(name, machine.set, file.string());
  } catch (const SpecError& error) {
    throw spec.error("set", std::string("is refused: ") + error.what());
  }
  if (profile.kernel_sets.empty() && profile.carried_over.empty()) {
    throw list.error(name, std::string(kNoKernelSet));
  }
  if (!machine.kernels.empty()) (void)at_key(spec, "kernels", [&] { return profile.kernels(machine.kernels, ""); });
  return machine;
}

}  // namespace

std::vector<PlanHardware> read_plan_hardware(const Spec& plan, const std::filesystem::path& file) {
  const Spec list = plan.map("hardware");
  std::vector<PlanHardware> hardware;
  for (const std::string& name : list.keys()) hardware.push_back(read_machine(list, name, file));
  if (hardware.empty()) throw plan.error("hardware", "names no machine");
  const auto priced = [](const PlanHardware& machine) { return machine.usd_per_gpu_hour > 0; };
  if (hardware.size() > 1 && !std::all_of(hardware.begin(), hardware.end(), priced)) {
    throw plan.error("hardware", "compares several machines, each of which needs its usd_per_gpu_hour");
  }
  return hardware;
}

std::string scenario_head(const std::string& model, const PlanHardware& machine) {
  const std::string kernels = machine.kernels.empty() ? "" : fmt::format("kernels: {}\n", machine.kernels);
  return fmt::format("schema: 1\nmodel: {}\nhardware: {}\n{}", quoted(model), machine.name, kernels);
}

void add_facts(const PlanHardware& machine, std::vector<std::string>& set) {
  for (const std::string& fact : machine.set) set.push_back("hardware." + fact);
}

}  // namespace moeline
