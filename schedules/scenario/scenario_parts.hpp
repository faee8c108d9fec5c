// The mappings of a scenario file, one function each. They refuse what is not modelled; nothing is ignored.
#pragma once

#include <string>
#include <vector>

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Sets what is the scenario's; what is the machine's comes back: "nic_GBps=100" of "hardware.nic_GBps=100".
[[nodiscard]] std::vector<std::string> apply_changes(const std::vector<std::string>& assignments, Spec& scenario);
/// A whole scenario, with changes to its machine.
[[nodiscard]] Setup read_scenario(const Spec& scenario, const std::vector<std::string>& hardware_overrides);
/// Of the whole file.
void check_keys(const Spec& scenario);
/// `schedule: auto`.
[[nodiscard]] bool leaves_schedule_open(const Spec& scenario);
[[nodiscard]] Workload read_workload(const Spec& spec, const ScheduleKind& schedule);
/// What drafts them, and which are accepted. REQUIRES: `w.query_len` is read.
void read_drafts(const Spec& spec, DecodeWorkload& w);
/// The distribution and the copies of experts: they enter the rules for ep.
void read_distribution(const Spec& spec, Scenario& scenario);
/// All of routing. REQUIRES: read_distribution() has been called.
void read_routing(const Spec& spec, const Architecture& model, int gpus_per_node, Scenario& scenario);
/// Which clock the SMs have.
void read_clock(const Spec& spec, Setup& setup);
/// Which ranks are simulated, and how they differ.
void read_ranks(const Spec& spec, Setup& setup);

/// One of the `modelled` values, the first by default; the `real` ones stand for what this version does not model.
[[nodiscard]] std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                                   const std::vector<std::string>& real);

}  // namespace moeline
