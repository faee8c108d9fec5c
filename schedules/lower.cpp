#include "schedules/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace moeline {

const char* class_name(Family family) {
  switch (family) {
    case Family::gemm_fp8:
    case Family::gemm_fp8_wgrad:
    case Family::gemm_bf16:
    case Family::gemm_bf16_batched:
      return "gemm";
    case Family::gemm_fp8_grouped:
    case Family::gemm_fp8_masked:
    case Family::gemm_bf16_grouped:
      return "grouped_gemm";
    case Family::attention_forward:
    case Family::attention_backward:
    case Family::mla_decode:
    case Family::gqa_decode:
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
    case Family::low_latency_dispatch:
      return "dispatch";
    case Family::combine:
    case Family::low_latency_combine:
      return "combine";
    default:
      return "memory";
  }
}

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

Role role_of(Family family) { return is_communication(family) ? Role::communication : Role::compute; }

std::string kernel_name(const Operator& op) {
  switch (op.traffic.stage) {
    case Stage::issue:
      return op.name + " issue";
    case Stage::wire:
      return op.name + " on the wire";
    case Stage::receive:
      return op.name + " receive";
    case Stage::whole:
      break;
  }
  return op.name;
}

std::string detail_of(const Operator& op, const Price& price) {
  std::string shape;
  if (is_gemm(op.family)) {
    shape = fmt::format(" m={:.0f} n={:.0f} k={:.0f}", op.m, op.n, op.k);
    if (op.groups > 1) shape += fmt::format(" groups={:.0f}", op.groups);
  } else if (is_low_latency(op.family)) {
    shape = fmt::format(" {:.1f} MB off-node, {:.1f} MB in the node, bound by {}", op.traffic.wire_bytes / 1e6,
                        op.traffic.nvlink_bytes / 1e6, price.bound_by);
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

Constant kernel_gap_of(const Setup& setup) {
  const bool graph = setup.scenario.launch == "graph" && !std::isnan(setup.kernels[Constant::graph_gap]);
  return graph ? Constant::graph_gap : Constant::kernel_gap;
}

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

PreparedPhase RankProgram::prepare(const std::string& name, const std::vector<Operator>& ops, double wait_us) {
  PreparedPhase phase;
  phase.name = name;
  phase.wait_us = setup_.free_communication ? 0 : wait_us;
  const double jitter = constant(Constant::jitter);
  for (const Operator& op : ops) {
    const Price price = price_of(op);
    phase.kernels.push_back(prepare_kernel(op, price));
    phase.uses.push_back({op.family, price.provenance, price.note, price.kernel_set, 1, price.solo_us});
    phase.model_flops += op.flops - op.recomputed_flops;
    if (op.family == Family::small) phase.lumped_us += price.solo_us;
    if (is_communication(op.family)) continue;
    phase.variance_us2 += std::pow(jitter * price.solo_us, 2);
  }
  return phase;
}

PreparedKernel RankProgram::prepare_kernel(const Operator& op, const Price& price) {
  PreparedKernel kernel;
  kernel.family = op.family;
  kernel.stage = op.traffic.stage;
  kernel.parallel = op.parallel;
  const bool wire = op.traffic.stage == Stage::wire;
  const bool free = setup_.free_communication && role_of(op.family) == Role::communication;
  if (!wire) kernel.task.delay = from_us(constant(kernel_gap_of(setup_)));
  if (!free) {
    kernel.task.solo = from_us(price.solo_us);
    if (price.hold != Hold::nothing) kernel.task.pool = sms_;
    kernel.task.sms = static_cast<std::uint16_t>(price.sms);
    kernel.task.hold = price.hold;
    kernel.usages = usages_of(price);
  }
  kernel.label.name = draft_.intern(kernel_name(op));
  kernel.label.detail = draft_.intern(detail_of(op, price));
  kernel.label.task_class = draft_.add_class(class_name(op.family), role_of(op.family));
  return kernel;
}

PhaseTasks RankProgram::begin(const PreparedPhase& phase, const Place& place) {
  account(phase);
  PhaseTasks tasks;
  tasks.phase = draft_.add_phase(
      {phase.name, 0, static_cast<std::uint32_t>(place.micro_batch), static_cast<std::uint32_t>(place.layer)});
  tasks.first = static_cast<TaskId>(draft_.size());
  tasks.wait_us = phase.wait_us;
  return tasks;
}

PhaseTasks RankProgram::append(const PreparedPhase& phase, const Place& place) {
  const std::vector<std::string>& side = options_.side_phases;
  const bool use_side = std::find(side.begin(), side.end(), phase.name) != side.end();
  PhaseTasks tasks = begin(phase, place);
  for (auto kernel = phase.kernels.begin(); kernel != phase.kernels.end();) {
    if (kernel->parallel && use_side) {
      const auto end = std::find_if(kernel, phase.kernels.end(), [](const PreparedKernel& k) { return !k.parallel; });
      add_parallel(kernel, end, tasks, place);
      kernel = end;
      continue;
    }
    const TaskId task = add_kernel(*kernel, tasks, place);
    if (kernel->family == Family::notify) tasks.notify = task;
    if (kernel->family == Family::dispatch && setup_.scenario.launch == "stream") {
      wait_for_host("read counts, launch dispatch", Constant::read_counts, tasks, task);
    }
    ++kernel;
  }
  tasks.last = last_[static_cast<std::size_t>(place.stream)];
  return tasks;
}

PhaseTasks RankProgram::append_issue(const PreparedPhase& phase, const Place& place) {
  MOELINE_CHECK(phase.kernels.size() == 3, phase.name);  // issue, wire, receive
  PhaseTasks tasks = begin(phase, place);
  const TaskId issue = add_kernel(phase.kernels[0], tasks, place);
  tasks.last = add_kernel(phase.kernels[1], tasks, {place.layer, place.micro_batch, StreamName::communication});
  draft_.start_after_end(issue, tasks.last);
  tasks.wire = tasks.last;
  return tasks;
}

void RankProgram::append_receive(const PreparedPhase& phase, const Place& place, PhaseTasks& issued) {
  const TaskId wire = issued.last;
  issued.last = add_kernel(phase.kernels[2], issued, place);
  draft_.start_after_end(wire, issued.last);
}

void RankProgram::connect(const PhaseDependency& dependency, const PhaseTasks& before, const PhaseTasks& after) {
  order(before, after);
  const bool meets_ranks = is_transfer(dependency.after) && !is_transfer(dependency.before);
  if (!meets_ranks || after.wait_us <= 0) return;
  waits_us_ += after.wait_us;
  const TaskId slowest = add_host_task("the slowest rank", from_us(after.wait_us), after.phase);
  draft_.start_after_end(before.last, slowest);
  if (after.wire != kNoTask) {
    draft_.start_after_end(slowest, after.wire);
  } else {
    MOELINE_CHECK(after.notify != kNoTask, dependency.after);
    draft_.end_after_end(slowest, after.notify);
  }
}

// Independent kernels alternate between the compute and the side stream: a fork before them and a join after.
void RankProgram::add_parallel(std::vector<PreparedKernel>::const_iterator first,
                               std::vector<PreparedKernel>::const_iterator last, const PhaseTasks& phase,
                               const Place& place) {
  TaskId& compute = last_[static_cast<std::size_t>(StreamName::compute)];
  TaskId& side = last_[static_cast<std::size_t>(StreamName::side)];
  const TaskId fork = compute;
  bool forked = false;
  for (auto kernel = first; kernel != last; ++kernel) {
    if ((kernel - first) % 2 == 0) {
      add_kernel(*kernel, phase, place);
      continue;
    }
    const TaskId task = add_kernel(*kernel, phase, {place.layer, place.micro_batch, StreamName::side});
    if (!forked && fork != kNoTask) draft_.start_after_end(fork, task);
    forked = true;
  }
  if (!forked) return;
  const TaskId join = add_host_task("join side stream", Time::zero(), phase.phase);
  draft_.start_after_end(compute, join);
  draft_.start_after_end(side, join);
  compute = join;
}

TaskId RankProgram::add_kernel(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place) {
  Label label = kernel.label;
  label.stream = static_cast<std::uint16_t>(place.stream);
  label.phase = phase.phase;
  const TaskId id = draft_.add(kernel.task, label, kernel.usages);
  gaps_us_ += to_us(kernel.task.delay);
  TaskId& last = last_[static_cast<std::size_t>(place.stream)];
  if (last != kNoTask) draft_.start_after_end(last, id);
  last = id;
  if (options_.eager && kernel.stage != Stage::wire) launch_from_host(id, phase.phase);
  return id;
}

// Launches of all streams follow one another on the host, in the order of the program.
void RankProgram::launch_from_host(TaskId kernel, std::uint32_t phase) {
  TaskId& host = last_[static_cast<std::size_t>(StreamName::host)];
  const TaskId launch = add_host_task("launch", from_us(constant(Constant::host_per_kernel)), phase);
  if (host != kNoTask) draft_.start_after_end(host, launch);
  draft_.start_after_end(launch, kernel);
  host = launch;
}

// 0 where neither the set nor one it borrows from knows it.
double RankProgram::constant(Constant constant) {
  const double value = setup_.kernels[constant];
  if (std::isnan(value)) return 0;
  constants_.set(static_cast<std::size_t>(constant));
  return value;
}

// Persistent kernels beside communication are launched on the SMs that it leaves.
Price RankProgram::price_of(const Operator& op) {
  PriceConditions conditions;
  conditions.overlapped = options_.overlapped;
  conditions.sms = static_cast<int>(setup_.machine.facts.sms);
  if (role_of(op.family) == Role::communication) {
    if (op.traffic.stage == Stage::whole) conditions.sms = setup_.scenario.comm.num_sms;
  } else if (options_.overlapped && is_resident(op.family)) {
    conditions.sms -= setup_.scenario.comm.num_sms;
  }
  Price price = moeline::price(op, conditions, setup_.machine.facts, setup_.kernels);
  constants_ |= price.constants;
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
  const TaskId host = add_host_task(work, from_us(constant(duration)), dispatch.phase);
  draft_.start_after_end(dispatch.notify, host);
  draft_.start_after_end(host, task);
}

void RankProgram::host_edge(const PhaseTasks& dispatch, const PhaseTasks& after) {
  wait_for_host("read counts, launch mlp(W)", Constant::host_launch, dispatch, after.first);
}

void RankProgram::account(const PreparedPhase& phase) {
  for (const ProvenanceUse& more : phase.uses) {
    ProvenanceUse& use = provenance_[{more.family, more.provenance, more.kernel_set}];
    use.family = more.family;
    use.provenance = more.provenance;
    use.note.add(more.note);
    use.kernel_set = more.kernel_set;
    use.kernels += more.kernels;
    use.solo_us += more.solo_us;
  }
  model_flops_ += phase.model_flops;
  lumped_us_ += phase.lumped_us;
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
  return {.graph = TaskGraph(std::move(draft_)),
          .provenance = std::move(provenance),
          .model_flops = model_flops_,
          .lumped_us = lumped_us_,
          .constants = constants_,
          .gaps_us = gaps_us_,
          .waits_us = waits_us_};
}

}  // namespace moeline
