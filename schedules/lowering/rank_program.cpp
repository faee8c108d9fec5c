#include "schedules/lowering/rank_program.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace moeline {
namespace {

// Stream numbers as in DeepSeek's published profile.
struct StreamInfo {
  std::uint32_t id;
  const char* name;
  Role role;
};
constexpr std::uint16_t kUnused = 0xffff;
constexpr std::array<StreamInfo, kStreamNames> kStreams = {
    {{7, "compute", Role::compute},
     {27, "communication", Role::communication},
     {23, "side", Role::compute},
     {0, "host", Role::host},
     {15, "collectives", Role::communication},
     {11, "parameters", Role::communication},
     {13, "keys to the next rank", Role::communication},
     {19, "tensor parallel", Role::communication},
     {41, "to the host", Role::communication},
     {42, "from the host", Role::communication},
     {43, "states to the host", Role::communication},
     {44, "states from the host", Role::communication},
     {31, "activations to the next rank", Role::communication},
     {32, "activations to the previous rank", Role::communication},
     {33, "gradients to the next rank", Role::communication},
     {34, "gradients to the previous rank", Role::communication},
     {35, "activations from the next rank", Role::communication},
     {36, "activations from the previous rank", Role::communication},
     {37, "gradients from the next rank", Role::communication},
     {38, "gradients from the previous rank", Role::communication},
     {51, "KV caches", Role::communication}}};

}  // namespace

// In the order of RankResource.
RankProgram::RankProgram(ProgramDraft& program, int rank)
    : program_(program),
      rank_(rank),
      jitter_(program.setup().draws_jitter()),
      slowness_(program.setup().slowness(rank)),
      random_(static_cast<std::uint64_t>(program.setup().scenario.seed), static_cast<std::uint64_t>(rank)) {
  const MachineFacts& machine = program.setup().machine.facts;
  first_resource_ = graph().add_pool("SMs", static_cast<int>(machine.sms));
  graph().add_link("HBM GB/s", machine.hbm_GBps);
  graph().add_link("NVLink out GB/s", machine.nvlink_GBps);
  graph().add_link("NVLink in GB/s", machine.nvlink_GBps);
  graph().add_link("NIC out GB/s", machine.nic_GBps);
  graph().add_link("NIC in GB/s", machine.nic_GBps);
  if (program.setup().scenario.training.offloads()) {
    graph().add_link("host out GB/s", machine.host_GBps);
    graph().add_link("host in GB/s", machine.host_GBps);
  }
  streams_.fill(kUnused);
  last_.fill(kNoTask);
}

PhaseTasks RankProgram::begin(const std::string& phase, const Place& place) {
  PhaseTasks tasks;
  tasks.phase =
      graph().add_phase({phase, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(place.micro_batch),
                         static_cast<std::uint32_t>(place.layer), static_cast<std::uint32_t>(place.piece.index),
                         static_cast<std::uint32_t>(place.piece.count)});
  tasks.pieces = place.piece.count;
  tasks.first = static_cast<TaskId>(graph().size());
  tasks.repeats = program_.setup().fold.repeats(place.layer);
  return tasks;
}

PhaseTasks RankProgram::append(PreparedPhase& phase, const Place& place) {
  PhaseTasks tasks = begin(phase.name, place);
  phase.executions += tasks.repeats;
  if (place.repeats) phase.repetitions += tasks.repeats;
  std::vector<TaskId> beside;
  for (auto kernel = phase.kernels.begin(); kernel != phase.kernels.end();) {
    if (kernel->beside) {
      beside.push_back(add_beside(*kernel, tasks, place));
      ++kernel;
      continue;
    }
    if (kernel->parallel && phase.side_stream) {
      const auto end = std::find_if(kernel, phase.kernels.end(), [](const PreparedKernel& k) { return !k.parallel; });
      add_parallel(kernel, end, tasks, place);
      kernel = end;
      continue;
    }
    const TaskId before = last_[static_cast<std::size_t>(place.stream)];
    const bool together = kernel != phase.kernels.begin() && std::prev(kernel)->meets >= kernel->meets;
    if (!kernel->parts.empty()) tasks.blocks = add_parts(*kernel, tasks, place);
    const TaskId task = !kernel->parts.empty()           ? tasks.blocks.back()
                        : kernel->meets > 1 && !together ? add_meeting(*kernel, tasks, place)
                                                         : add_kernel(*kernel, tasks, place);
    if (kernel->awaits > 0) graph().start_after_end(beside[static_cast<std::size_t>(kernel->awaits) - 1], task);
    const bool barrier = kernel->family == Family::notify;
    if (tasks.notify == kNoTask && tasks.together == kNoTask && !tasks.begins_together)
      tasks.lead += kernel->task.delay + (barrier ? Time::zero() : kernel->task.solo);
    if (barrier) {
      tasks.notify = task;
      tasks.meeting = meetings_.size();
      meetings_.push_back({.arrives = task, .leaves = task, .phase = tasks.phase});
    }
    if (kernel->reads_counts && program_.setup().scenario.launch == Launch::stream) {
      const TaskId counted = tasks.notify != kNoTask ? tasks.notify : before;
      wait_for_host({"read counts, launch dispatch", Constant::read_counts, tasks.phase}, counted, task);
    }
    ++kernel;
  }
  tasks.last = last_[static_cast<std::size_t>(place.stream)];
  return tasks;
}

// On a stream of its own, so that it waits for no all-to-all that a schedule launched before.
TaskId RankProgram::add_beside(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place) {
  const TaskId before = last_[static_cast<std::size_t>(place.stream)];
  const bool sends = kernel.family == Family::send;
  const StreamName stream = sends ? StreamName::keys : StreamName::tensor_parallel;
  const TaskId task = add_kernel(kernel, phase, {place.layer, place.micro_batch, stream});
  if (before != kNoTask) graph().start_after_end(before, task);
  return task;
}

// A collective, or a kernel that computes on what all ranks bring. Inside a phase the work before it is known, and so
// it is on the compute stream; before another first kernel meet() is told of it.
TaskId RankProgram::add_meeting(const PreparedKernel& kernel, PhaseTasks& tasks, const Place& place) {
  const TaskId before = last_[static_cast<std::size_t>(place.stream)];
  const TaskId task = add_kernel(kernel, tasks, place);
  Meeting meeting{.arrives = before, .leaves = task, .work = before, .phase = tasks.phase, .ranks = kernel.meets};
  if (task == tasks.first && !kernel.computes) {
    tasks.begins_together = true;
    tasks.meeting = meetings_.size();
  } else {
    const bool is_first = !tasks.begins_together && tasks.notify == kNoTask && tasks.wire == kNoTask;
    if (is_first && tasks.together == kNoTask) {
      tasks.together = task;
      tasks.meeting = meetings_.size();
    }
    if (program_.setup().expects_waits() && before != kNoTask) {
      meeting.wait = add_host_task("the slowest rank", Time::zero(), tasks.phase);
      graph().start_after_end(before, meeting.wait);
      graph().start_after_end(meeting.wait, task);
    }
  }
  meetings_.push_back(meeting);
  return task;
}

PhaseTasks RankProgram::append_time(const std::string& phase, const std::string& name, Time time, const Place& place) {
  PhaseTasks tasks = begin(phase, place);
  Label named;
  named.name = graph().intern(name);
  named.task_class = graph().add_class("other", Role::compute);
  Task task;
  task.solo = time;
  TaskId& last = last_[static_cast<std::size_t>(place.stream)];
  const TaskId id = graph().add(task, label(named, place.stream, tasks.phase));
  if (last != kNoTask) graph().start_after_end(last, id);
  tasks.last = last = id;
  return tasks;
}

PhaseTasks RankProgram::append_issue(PreparedPhase& phase, const Place& place) {
  MOELINE_CHECK(phase.kernels.size() >= kReceive, phase.name);
  const PreparedKernel &issue = phase.kernels[0], &wire = phase.kernels[1];
  PhaseTasks tasks = begin(phase.name, place);
  phase.executions += tasks.repeats;
  if (issue.parts.empty()) {
    const TaskId issued = add_kernel(issue, tasks, place);
    tasks.last = add_kernel(wire, tasks, place.on(StreamName::communication));
    graph().start_after_end(issued, tasks.last);
  } else {
    tasks.blocks = add_parts(issue, tasks, place.on(StreamName::side));
    const std::vector<TaskId> wires = add_parts(wire, tasks, place.on(StreamName::communication));
    for (std::size_t i = 0; i < wires.size(); ++i) graph().start_after_end(tasks.blocks[i], wires[i]);
    tasks.last = wires.back();
  }
  tasks.wire = tasks.last;
  tasks.meeting = meetings_.size();
  meetings_.push_back({.arrives = tasks.wire, .phase = tasks.phase});
  return tasks;
}

void RankProgram::append_receive(const PreparedPhase& phase, const Place& place,
                                 const std::vector<PhaseTasks*>& issued) {
  PhaseTasks& own = *issued.back();
  const TaskId receive = own.last = add_kernel(phase.kernels[kReceive], own, place);
  for (const PhaseTasks* each : issued) {
    graph().start_after_end(each->wire, receive);
    meetings_[each->meeting].leaves = receive;
  }
  for (std::size_t i = kReceive + 1; i < phase.kernels.size(); ++i)
    own.last = add_meeting(phase.kernels[i], own, place);
  for (PhaseTasks* each : issued) each->last = own.last;
}

void RankProgram::order(const PhaseTasks& before, const PhaseTasks& after) {
  const bool by_blocks = !before.blocks.empty() && !after.blocks.empty();
  if (!by_blocks) return graph().start_after_end(before.last, after.first);
  const std::size_t sends = after.blocks.size() / before.blocks.size();  // of each block
  for (std::size_t i = 0; i < before.blocks.size(); ++i) {
    graph().start_after_end(before.blocks[i], after.blocks[i * sends]);
  }
}

void RankProgram::meet(const PhaseTasks& before, const PhaseTasks& after, double wait_us) {
  Meeting& meeting = meetings_[after.meeting];
  meeting.work = before.last;
  if (after.begins_together) meeting.arrives = before.last;
  if (!program_.setup().expects_waits()) return;
  program_.add_wait(wait_us);
  // What a rank does between its work and the meeting, the slowest does after the wait.
  const TaskId slowest = meeting.wait = add_host_task("the slowest rank", from_us(wait_us) + after.lead, after.phase);
  if (after.wire != kNoTask) {
    graph().start_after_end(after.blocks.empty() ? after.first : after.blocks.back(), slowest);
    graph().start_after_end(slowest, after.wire);
  } else if (after.begins_together || after.together != kNoTask) {
    graph().start_after_end(before.last, slowest);
    graph().start_after_end(slowest, after.begins_together ? after.first : after.together);
  } else {
    MOELINE_CHECK(after.notify != kNoTask, std::to_string(after.phase));
    graph().start_after_end(before.last, slowest);
    graph().end_after_end(slowest, after.notify);
  }
}

TaskId RankProgram::join_streams() {
  const TaskId join = add_host_task("join streams", Time::zero(), 0);
  for (const StreamName stream : {StreamName::compute, StreamName::communication, StreamName::side}) {
    TaskId& last = last_[static_cast<std::size_t>(stream)];
    if (last != kNoTask) graph().start_after_end(last, join);
    last = join;
  }
  return join;
}

TaskId RankProgram::gate(const PhaseTasks& one, const PhaseTasks& other) {
  const TaskId gate = add_host_task("inputs are there", Time::zero(), one.phase);
  graph().start_after_end(gate, one.first);
  graph().start_after_end(gate, other.first);
  return gate;
}

TaskId RankProgram::after_start(const PhaseTasks& phase, Time time) {
  Task task;
  task.delay = time;
  const TaskId instant = graph().add(task, host_label("result", phase.phase));
  graph().start_after_start(phase.first, instant);
  return instant;
}

void RankProgram::end_after(const PhaseTasks& phase, TaskId task, Time time) {
  const TaskId rest = add_host_task("rest", time, phase.phase);
  graph().start_after_end(task, rest);
  graph().end_after_end(rest, phase.last);
}

TaskId RankProgram::computed() {
  const TaskId end = add_host_task("computed", Time::zero(), 0);
  for (const StreamName stream : {StreamName::compute, StreamName::side}) {
    const TaskId last = last_[static_cast<std::size_t>(stream)];
    if (last != kNoTask) graph().start_after_end(last, end);
  }
  return end;
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
    const TaskId task = add_kernel(*kernel, phase, {place.layer, place.micro_batch, StreamName::side, place.repeats});
    if (!forked && fork != kNoTask) graph().start_after_end(fork, task);
    forked = true;
  }
  if (!forked) return;
  const TaskId join = add_host_task("join side stream", Time::zero(), phase.phase);
  graph().start_after_end(compute, join);
  graph().start_after_end(side, join);
  compute = join;
}

// One after the other, without gaps: they are one launch. What one execution takes more by chance, each part does;
// where parts are drawn apart, each varies by so much more that their sum varies as the whole.
std::vector<TaskId> RankProgram::add_parts(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place) {
  PreparedKernel part = kernel;
  part.computes = false;  // so that nothing is drawn again
  part.traits.jitter *= std::sqrt(static_cast<double>(kernel.parts.size()));
  part.traits.scatter *= std::sqrt(static_cast<double>(kernel.parts.size()));
  const double lengthened = kernel.computes ? ratio(drawn(kernel), kernel.task.solo) : 1;
  std::vector<TaskId> tasks;
  for (const Time& time : kernel.parts) {
    part.task.solo = from_us(to_us(time) * lengthened);
    tasks.push_back(add_kernel(part, phase, place, static_cast<float>(ratio(time, kernel.task.solo))));
    part.task.delay = Time::zero();
    part.launched_before = true;
  }
  return tasks;
}

TaskId RankProgram::add_kernel(const PreparedKernel& kernel, const PhaseTasks& phase, const Place& place, float share) {
  Task task = kernel.task;
  if (task.pool != kNoPool) task.pool = static_cast<ResourceId>(task.pool + first_resource_);
  if (kernel.computes) task.solo = drawn(kernel);
  usages_ = kernel.usages;
  for (Usage& usage : usages_) usage.link = static_cast<ResourceId>(usage.link + first_resource_);
  const TaskId id = graph().add(task, label(kernel.label, place.stream, phase.phase), usages_);
  program_.add_gap(task.delay * phase.repeats);
  if (rank_ == 0) program_.note(kernel.traits);
  program_.note(Execution{kernel.work, place.repeats, share});
  TaskId& last = last_[static_cast<std::size_t>(place.stream)];
  if (last != kNoTask) graph().start_after_end(last, id);
  last = id;
  const bool launched = kernel.stage != Stage::wire && !kernel.launched_before;
  if (has_host() && launched) launch_from_host(id, kernel, phase.phase);
  return id;
}

// This execution on this rank: a normal distribution, cut off where a time would no longer be positive.
Time RankProgram::drawn(const PreparedKernel& kernel) {
  constexpr double kLeast = 0.1;
  const double jitter = jitter_ ? std::max(kLeast, 1 + kernel.traits.jitter * random_.normal()) : 1;
  const double factor = kernel.traits.lengthened(slowness_) * jitter;
  return factor == 1 ? kernel.task.solo : from_us(to_us(kernel.task.solo) * factor);
}

Label RankProgram::label(Label label, StreamName stream, std::uint32_t phase) {
  std::uint16_t& number = streams_[static_cast<std::size_t>(stream)];
  if (number == kUnused) {
    const StreamInfo& info = kStreams[static_cast<std::size_t>(stream)];
    number = graph().add_stream({static_cast<std::uint32_t>(rank_), info.id, info.name, info.role});
  }
  label.stream = number;
  label.phase = phase;
  return label;
}

// Launches of all streams follow one another on the host, in the order of the program.
void RankProgram::launch_from_host(TaskId task, const PreparedKernel& kernel, std::uint32_t phase) {
  TaskId& host = last_[static_cast<std::size_t>(StreamName::host)];
  const TaskId launch = add_host_task("launch", kernel.host, phase, kernel.module);
  if (host != kNoTask) graph().start_after_end(host, launch);
  graph().start_after_end(launch, task);
  host = launch;
}

TaskId RankProgram::add_host_task(const char* name, Time duration, std::uint32_t phase, NameId module) {
  Task task;
  task.solo = duration;
  Label label = host_label(name, phase);
  label.detail = module;
  return graph().add(task, label);
}

Label RankProgram::host_label(const char* name, std::uint32_t phase) {
  Label named;
  named.name = graph().intern(name);
  named.task_class = graph().add_class("host", Role::host);
  return label(named, StreamName::host, phase);
}

void RankProgram::wait_for_host(const HostWork& work, TaskId counted, TaskId task) {
  const TaskId host = add_host_task(work.name, from_us(program_.host_constant_us(work.duration)), work.phase);
  graph().start_after_end(counted, host);
  graph().start_after_end(host, task);
  if (program_.host() != Host::blocks) return;
  TaskId& last = last_[static_cast<std::size_t>(StreamName::host)];
  if (last != kNoTask) graph().start_after_end(last, host);
  last = host;
}

void RankProgram::host_edge(const PhaseTasks& dispatch, const PhaseTasks& after) {
  if (dispatch.notify == kNoTask) return;
  wait_for_host({"read counts, launch mlp(W)", Constant::host_launch, dispatch.phase}, dispatch.notify, after.first);
}

}  // namespace moeline
