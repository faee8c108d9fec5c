// Predictions of prefill and decode, and what tests ask of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/module_use.hpp"
#include "experiments/run/run.hpp"
#include "tests/support/data.hpp"
#include "tests/support/refusal.hpp"

namespace moeline::testing {

inline std::filesystem::path decode_scenario() {
  return source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml");
}
inline std::filesystem::path prefill_scenario() {
  return source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml");
}

/// Eight B200 decode DeepSeek-V3.
inline std::filesystem::path served_scenario() { return source("experiments/studies/served_b200/decode.yaml"); }

inline Run run_decode(const std::vector<std::string>& assignments = {}) {
  return run_scenario(load_setup(decode_scenario(), assignments));
}
inline Run run_prefill(const std::vector<std::string>& assignments = {}) {
  return run_scenario(load_setup(prefill_scenario(), assignments));
}

inline Run run_text(const std::string& scenario, const std::vector<std::string>& assignments = {}) {
  return run_scenario(read_setup(Spec::parse("scenario.yaml", scenario), assignments));
}

inline bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline const PhaseTimes& phase(const Run& run, const std::string& name, int micro_batch, int layer) {
  const auto found = std::find_if(run.phases.begin(), run.phases.end(), [&](const PhaseTimes& p) {
    return p.phase == name && static_cast<int>(p.micro_batch) == micro_batch && static_cast<int>(p.layer) == layer;
  });
  REQUIRE(found != run.phases.end());
  return *found;
}

/// Solo us of one kernel of a phase, by its name.
inline double solo_us(const Run& run, const std::string& phase, const std::string& kernel) {
  const TaskGraph& graph = run.program.graph;
  for (TaskId id = 0; id < graph.size(); ++id) {
    if (graph.task_name(id) == kernel && graph.phases()[graph.label(id).phase].name == phase) {
      return to_us(graph.task(id).solo);
    }
  }
  FAIL("no kernel " << kernel << " in " << phase);
  return 0;
}

/// Kernels whose name has this part, in order of their tasks; of one layer of rank 0, where that is told.
inline std::vector<TaskId> tasks_of(const Run& run, const std::string& kernel,
                                    std::optional<std::uint32_t> layer = {}) {
  std::vector<TaskId> found;
  const TaskGraph& graph = run.program.graph;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Phase& of = graph.phases()[graph.label(id).phase];
    const bool there = !layer || (of.rank == 0 && of.layer == *layer);
    if (there && says(graph.task_name(id), kernel)) found.push_back(id);
  }
  return found;
}

inline double solo_us(const Run& run, const std::vector<TaskId>& tasks) {
  double us = 0;
  for (const TaskId id : tasks) us += to_us(run.program.graph.task(id).solo);
  return us;
}

/// Over links of this name, at full speed: GB/s x us.
inline double carried(const Run& run, const std::vector<TaskId>& tasks, const std::string& link) {
  double sum = 0;
  const TaskGraph& graph = run.program.graph;
  for (const TaskId id : tasks) {
    for (const Usage& usage : graph.usages(id)) {
      if (says(graph.resources()[usage.link].name, link)) sum += usage.rate * to_us(graph.task(id).solo);
    }
  }
  return sum;
}

/// Of the model, in the whole run.
inline double flops_of(const Run& run) {
  double sum = 0;
  for (const auto& [module, use] : module_uses(run.setup, run.program, run.timeline)) sum += use.flops();
  return sum;
}

}  // namespace moeline::testing
