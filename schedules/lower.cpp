#include "schedules/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace moeline {
namespace {

// Stream numbers as in DeepSeek's published profile.
struct StreamInfo {
  std::uint32_t id;
  const char* name;
  Role role;
};
constexpr std::array<StreamInfo, 4> kStreams = {{{7, "compute", Role::compute},
                                                 {27, "communication", Role::communication},
                                                 {23, "side", Role::compute},
                                                 {0, "host", Role::host}}};

const char* class_of(Family family) {
  switch (family) {
    case Family::gemm_fp8:
    case Family::gemm_fp8_wgrad:
    case Family::gemm_bf16:
      return "gemm";
    case Family::gemm_fp8_grouped:
      return "grouped_gemm";
    case Family::attention_forward:
    case Family::attention_backward:
      return "attention";
    case Family::small:
      return "small";
    case Family::routing_scan:
    case Family::count_rows:
    case Family::map_rows:
      return "other";
    case Family::notify:
      return "barrier";
    case Family::dispatch:
    case Family::dispatch_cached:
      return "dispatch";
    case Family::combine:
      return "combine";
    default:
      return "memory";
  }
}

Role role_of(Family family) { return family >= Family::notify ? Role::communication : Role::compute; }

std::string detail_of(const Operator& op, const Price& price) {
  std::string shape;
  if (is_gemm(op.family)) {
    shape = fmt::format(" m={:.0f} n={:.0f} k={:.0f}", op.m, op.n, op.k);
  } else if (is_all_to_all(op.family)) {
    shape = fmt::format(" {:.1f} MB by RDMA, {:.1f} of it off-node, {:.1f} MB by NVLink, bound by {}",
                        op.traffic.rdma_bytes / 1e6, op.traffic.wire_bytes / 1e6, op.traffic.nvlink_bytes / 1e6,
                        price.bound_by);
  } else if (op.flops > 0) {
    shape = fmt::format(" {:.1f} GFLOP", op.flops / 1e9);
  } else if (op.bytes > 0) {
    shape = fmt::format(" {:.1f} MB", op.bytes / 1e6);
  }
  return fmt::format("{}{}, {}", name_of(op.family), shape, name_of(price.provenance));
}

}  // namespace

RankProgram::RankProgram(const Setup& setup, Options options) : setup_(setup), options_(std::move(options)) {
  const MachineFacts& machine = setup.machine.facts;
  sms_ = draft_.add_pool("SMs", static_cast<int>(machine.sms));
  hbm_ = draft_.add_link("HBM GB/s", machine.hbm_GBps);
  nvlink_out_ = draft_.add_link("NVLink out GB/s", machine.nvlink_GBps);
  nvlink_in_ = draft_.add_link("NVLink in GB/s", machine.nvlink_GBps);
  nic_out_ = draft_.add_link("NIC out GB/s", machine.nic_GBps);
  nic_in_ = draft_.add_link("NIC in GB/s", machine.nic_GBps);
  for (const StreamInfo& stream : kStreams) draft_.add_stream({0, stream.id, stream.name, stream.role});
}

PhaseTasks RankProgram::append(const std::string& phase, int layer, StreamName stream) {
  const bool forward = phase.ends_with("(F)");
  const std::vector<Operator> ops = training_phase(phase, setup_.layer_work(forward, layer));
  const std::uint32_t id = draft_.add_phase({phase, 0, 0, static_cast<std::uint32_t>(layer)});
  const bool use_side =
      std::find(options_.side_phases.begin(), options_.side_phases.end(), phase) != options_.side_phases.end();
  PhaseTasks tasks;
  tasks.phase = id;
  tasks.first = static_cast<TaskId>(draft_.size());
  for (auto op = ops.begin(); op != ops.end();) {
    if (op->parallel && use_side) {
      const auto end = std::find_if(op, ops.end(), [](const Operator& other) { return !other.parallel; });
      append_parallel({op, end}, id);
      op = end;
      continue;
    }
    const TaskId task = add_kernel(*op, id, stream);
    if (op->family == Family::notify) tasks.notify = task;
    if (op->family == Family::dispatch && setup_.scenario.launch == "stream") {
      wait_for_host("read counts, launch dispatch", Constant::read_counts, tasks, task);
    }
    ++op;
  }
  tasks.last = last_[static_cast<std::size_t>(stream)];
  return tasks;
}

// Independent kernels alternate between the compute and the side stream: a fork before them and a join after.
void RankProgram::append_parallel(const std::vector<Operator>& ops, std::uint32_t phase) {
  TaskId& compute = last_[static_cast<std::size_t>(StreamName::compute)];
  TaskId& side = last_[static_cast<std::size_t>(StreamName::side)];
  const TaskId fork = compute;
  bool forked = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (i % 2 == 0) {
      add_kernel(ops[i], phase, StreamName::compute);
      continue;
    }
    const TaskId task = add_kernel(ops[i], phase, StreamName::side);
    if (!forked && fork != kNone) draft_.start_after_end(fork, task);
    forked = true;
  }
  if (!forked) return;
  const TaskId join = add_host_task("join side stream", Time::zero(), phase);
  draft_.start_after_end(compute, join);
  draft_.start_after_end(side, join);
  compute = join;
}

TaskId RankProgram::add_kernel(const Operator& op, std::uint32_t phase, StreamName stream) {
  const Price price = price_of(op);
  account(op, price);
  const bool free = setup_.free_communication && role_of(op.family) == Role::communication;
  Task task;
  task.delay = from_us(setup_.kernels[Constant::kernel_gap]);
  if (!free) {
    task.solo = from_us(price.solo_us);
    task.pool = sms_;
    task.sms = static_cast<std::uint16_t>(price.sms);
    task.hold = price.hold;
  }
  Label label;
  label.name = draft_.intern(op.name);
  label.detail = draft_.intern(detail_of(op, price));
  label.task_class = draft_.add_class(class_of(op.family), role_of(op.family));
  label.stream = static_cast<std::uint16_t>(stream);
  label.phase = phase;
  const TaskId id = draft_.add(task, label, free ? std::vector<Usage>{} : usages_of(price));
  TaskId& last = last_[static_cast<std::size_t>(stream)];
  if (last != kNone) draft_.start_after_end(last, id);
  last = id;
  return id;
}

// Persistent kernels beside communication are launched on the SMs that it leaves.
Price RankProgram::price_of(const Operator& op) const {
  PriceConditions conditions;
  conditions.overlapped = options_.overlapped;
  conditions.sms = static_cast<int>(setup_.machine.facts.sms);
  if (role_of(op.family) == Role::communication) {
    conditions.sms = setup_.scenario.comm.num_sms;
  } else if (options_.overlapped && is_resident(op.family)) {
    conditions.sms -= setup_.scenario.comm.num_sms;
  }
  Price price = moeline::price(op, conditions, setup_.machine.facts, setup_.kernels);
  if (!(price.solo_us <= kLongestTimeUs)) {
    throw SpecError(setup_.scenario.file, 0,
                    fmt::format("'{}' would take {} us on this machine", op.name, price.solo_us));
  }
  return price;
}

TaskId RankProgram::add_host_task(const char* name, Time duration, std::uint32_t phase) {
  Task task;
  task.solo = duration;
  Label label;
  label.name = draft_.intern(name);
  label.task_class = draft_.add_class("host", Role::host);
  label.stream = static_cast<std::uint16_t>(StreamName::host);
  label.phase = phase;
  return draft_.add(task, label);
}

void RankProgram::wait_for_host(const char* work, Constant duration, const PhaseTasks& dispatch, TaskId task) {
  const TaskId host = add_host_task(work, from_us(setup_.kernels[duration]), dispatch.phase);
  draft_.start_after_end(dispatch.notify, host);
  draft_.start_after_end(host, task);
}

void RankProgram::host_edge(const PhaseTasks& dispatch, const PhaseTasks& after) {
  wait_for_host("read counts, launch mlp(W)", Constant::host_launch, dispatch, after.first);
}

void RankProgram::data_edges(const LayerPhases& previous, const LayerPhases& now) {
  for (const PhaseDependency& dependency : training_dependencies()) {
    const LayerPhases& source = dependency.next_layer ? previous : now;
    const auto before = source.find(dependency.before);
    const auto after = now.find(dependency.after);
    if (before != source.end() && after != now.end()) order(before->second, after->second);
  }
}

void RankProgram::account(const Operator& op, const Price& price) {
  ProvenanceUse& use = provenance_[{op.family, price.provenance}];
  use.family = op.family;
  use.provenance = price.provenance;
  ++use.kernels;
  use.solo_us += price.solo_us;
  if (op.family == Family::small) lumped_us_ += price.solo_us;
  model_flops_ += op.flops - op.recomputed_flops;
}

std::vector<Usage> RankProgram::usages_of(const Price& price) const {
  std::vector<Usage> usages;
  const auto add = [&](ResourceId link, double rate) {
    if (rate > 0) usages.push_back({link, rate});
  };
  add(hbm_, price.hbm_GBps);
  add(nvlink_out_, price.nvlink_GBps);
  add(nvlink_in_, price.nvlink_GBps);
  add(nic_out_, price.nic_GBps);
  add(nic_in_, price.nic_GBps);
  return usages;
}

Program RankProgram::finish() && {
  std::vector<ProvenanceUse> provenance;
  for (const auto& [key, use] : provenance_) provenance.push_back(use);
  return {TaskGraph(std::move(draft_)), std::move(provenance), model_flops_, lumped_us_};
}

}  // namespace moeline
