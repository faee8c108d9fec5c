// A scenario file, read: the whole, and a function for each of its mappings. They refuse what is not modelled; nothing
// is ignored. Ordinary keys are read by their rows (keys.hpp); what depends on others is said here.
#pragma once

#include <memory>
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

// read_workload.cpp

[[nodiscard]] Workload read_workload(const Spec& spec, const ScheduleKind& schedule);
/// Of `concurrency` requests those of each attention group. REQUIRES: the workload and the parallelism are read.
void share_out_requests(const Spec& workload, Scenario& scenario);
/// `graph_batch`: a word, or a number of requests.
void read_graph_batch(const Spec& spec, DecodeWorkload& w);
/// What drafts them, and which are accepted. REQUIRES: `w.query_len` is read.
void read_drafts(const Spec& spec, DecodeWorkload& w);
/// One of the `modelled` values, the first by default; the `real` ones stand for what this version does not model.
[[nodiscard]] std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                                   const std::vector<std::string>& real);

// read_routing.cpp

/// The distribution and the copies of experts: they enter the rules for ep.
void read_distribution(const Spec& spec, Scenario& scenario);
/// All of routing. REQUIRES: read_distribution() has been called.
void read_routing(const Spec& spec, const Architecture& model, int gpus_per_node, Scenario& scenario);

// read_model.cpp: in which number formats, and by whose kernels

/// Reads `precision`: of linear layers (attention, dense and shared FFNs), of routed experts and of the KV cache; the
/// checkpoint's own where a key is absent or says so. What is chosen replaces the checkpoint's formats, module by
/// module, in memory and in prices. Throws SpecError for a format that the module cannot have or the machine cannot
/// multiply.
void read_precision(const Spec& spec, Setup& setup);
/// `training.operators`, by default DeepSeek's for FP8 models like theirs, else Megatron's. Brings the model into the
/// number formats that it is trained in. Refuses, with what it asks for, a model that they do not know.
/// REQUIRES: model and precision have been read.
void read_training_operators(const Spec& scenario, Setup& setup);

// read_parallelism.cpp

inline constexpr int kMostRanks = 1 << 20;

/// The ranks around a given ep, of training.
[[nodiscard]] Parallelism read_world(const Spec& spec, int ep);
[[nodiscard]] Parallelism read_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model,
                                           int gpus_per_node);

/// Refuses widths that the split does not leave whole blocks of. REQUIRES: `setup` has its scenario's comm.
void check_widths(const Spec& parallelism, const Setup& setup);

// read_pipeline.cpp

inline constexpr int kMostPipelineRanks = 1 << 12;
inline constexpr int kMostChunks = 1 << 10;  ///< of the model on a rank

[[nodiscard]] Parallelism read_pipeline_parallelism(const Spec& spec, const ScheduleKind& schedule);
/// The keys of parallelism that pipelines alone have: virtual_pp, and what the schedule demands of pp.
void read_pipeline_keys(const Spec& spec, const ScheduleKind& schedule, Parallelism& parallelism);
/// `spec`: the whole file. REQUIRES: the scenario has its schedule, workload and overlap.
[[nodiscard]] SlotCosts read_slot_costs(const Spec& spec, const Scenario& scenario);
/// What the schedule demands of the number of ranks and micro-batches, and a bound on the size of it all.
void check_pipeline(const Spec& spec, const Scenario& scenario);
/// Decoder layers of each stage of a pipeline: as listed; else in training empty, which is balanced, and in prefill and
/// decode as equal as they can be. Throws SpecError where there is no pipeline, or more stages than layers.
[[nodiscard]] std::vector<int> read_stages(const Spec& scenario, const Setup& setup);

// read_comm.cpp

/// How tokens reach experts by the habit of the stack whose kernels are used, as far as the scenario may have it.
/// REQUIRES: `setup` has its scenario's parallelism.
[[nodiscard]] CommMode usual_mode(const Setup& setup);
/// REQUIRES: the same.
void read_comm(const Spec& spec, Setup& setup);
/// REQUIRES: and knows how its kernels are launched.
void read_cpu_sync(const Spec& comm, Setup& setup);

// read_experts.cpp: how a rank runs its experts, and how its kernels are launched

/// Whether experts run as one fused layer, of which there may be several kinds. REQUIRES: comm has been read.
[[nodiscard]] bool runs_fused(const Setup& setup);

/// Whether shared experts may run elsewhere than before the routed ones: there are some, and it is no training.
[[nodiscard]] bool serves_shared_experts(const Setup& setup);

/// Whether the kernels have the model's experts in one kernel with their transfers.
[[nodiscard]] bool has_mega_moe(const Setup& setup);

/// Whether shared experts run beside the routed ones. REQUIRES: comm and launch have been read.
[[nodiscard]] SharedExperts read_shared_experts(const Spec& spec, const Setup& setup);
/// Sets `launch` and `graphs`. A list of parts of a layer belongs to training by Megatron's operators.
void read_launch(const Spec& spec, Setup& setup);

// read_backends.cpp: whose kernels run attention and experts

/// The family of measured layers that the model's experts belong to. REQUIRES: the setup knows its kernels.
[[nodiscard]] std::string measured_experts(const Setup& setup, ExpertLayout layout);
/// Of the core of the first layer that attends to keys, in decode where a step decodes; "": none does, or it is
/// training. REQUIRES: all else has been read and drawn.
[[nodiscard]] std::string attention_family(const Setup& setup);
/// `moe_backend` and `attention_backend`; takes the kernels from other sets where it must. REQUIRES: all else has been
/// read and drawn.
void read_backends(const Spec& spec, const std::shared_ptr<const HardwareProfile>& profile, Setup& setup);

// read_training.cpp

/// `training`, `stages` and `level`. Refuses what does not apply. REQUIRES: all else has been read.
void read_training(const Spec& scenario, Setup& setup);

/// Where they do not enter, they must still be spelt right.
void check_training_keys(const Spec& scenario, const ScheduleKind& schedule);

}  // namespace moeline
