#include "schedules/lowering/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "hardware/learnt.hpp"
#include "moe/all_to_all.hpp"
#include "moe/host_work.hpp"

namespace moeline {

namespace {

Role role_of(Family family) { return is_communication(family) ? Role::communication : Role::compute; }

// Where something is offloaded, what goes over the NIC takes the link to the host as well: both pass one PCIe switch.
// A NIC that is faster than that link does not.
double beside_host_copies(const Price& price, const Setup& setup) {
  const MachineFacts& machine = setup.machine.facts;
  const bool shares = machine.nic_GBps * machine.nics_per_gpu <= machine.host_GBps;
  return setup.scenario.training.offloads() && shares ? price.nic_GBps * machine.nics_per_gpu : 0;
}

std::vector<Usage> usages_of(Family family, const Price& price, const Setup& setup) {
  std::vector<Usage> usages;
  const auto add = [&](RankResource link, double rate) {
    if (rate > 0) usages.push_back({static_cast<ResourceId>(link), rate});
  };
  add(RankResource::hbm, price.hbm_GBps);
  add(RankResource::nvlink_out, price.nvlink_GBps);
  add(RankResource::nvlink_in, price.nvlink_GBps);
  add(RankResource::nic_out, price.nic_GBps);
  add(RankResource::nic_in, price.nic_GBps);
  const double beside = beside_host_copies(price, setup);
  add(RankResource::host_out, family == Family::to_host ? price.host_GBps : beside);
  add(RankResource::host_in, family == Family::from_host ? price.host_GBps : beside);
  return usages;
}

ModelPass pass_of(const std::string& phase, const Operator& op) {
  if (op.module.starts_with("optimizer") || is_host_copy(op.family)) return ModelPass::neither;
  if (op.purpose == Purpose::recompute) return ModelPass::recomputation;
  return phase.ends_with("(B)") || phase.ends_with("(W)") ? ModelPass::backward : ModelPass::forward;
}

// Experts' products follow each other, all alike.
bool repeats(const Operator& op, const Operator& before) {
  const auto key = [](const Operator& o) {
    return std::tie(o.name, o.module, o.family, o.m, o.n, o.k, o.groups, o.group_rows, o.expected_rows,
                    o.rows_deviation, o.flops, o.bytes, o.blocks, o.precision, o.measured_as, o.hot);
  };
  return is_gemm(op.family) && op.experts.role == ExpertRole::none && before.experts.role == ExpertRole::none &&
         key(op) == key(before);
}

Constant gap_in_graphs(const KernelSet& kernels) {
  return std::isnan(kernels[Constant::graph_gap]) ? Constant::kernel_gap : Constant::graph_gap;
}

bool leaves_sms(const Operator& op, const PhaseOptions& options) {
  if (!options.overlapped || !row_of(op.family).is_resident) return false;
  return options.leaves_sms || (options.released && op.experts.role == ExpertRole::down);
}

// All ranks' tokens are there before a kernel takes them.
int ranks_that_meet(const Operator& op) {
  const bool is_whole = (is_collective(op.family) || (is_deep_ep_v2(op) && is_all_to_all(op.family))) &&
                        !op.beside;  // its barrier is inside
  const bool meets = is_whole || op.experts.role == ExpertRole::layer;
  return meets ? op.traffic.ranks : 0;
}

// By some load the operator at this place is another than by the mean one.
bool goes_by_load(const Operator& mean, const OperatorsByLoad& by_load, std::size_t place) {
  return std::any_of(by_load.ops.begin(), by_load.ops.end(),
                     [&](const std::vector<Operator>& ops) { return !(ops.at(place) == mean); });
}

}  // namespace

// DeepSeek's kernels of training are timed with whatever the host did.
Host host_of(const Scenario& scenario) {
  const bool training = scenario.phase() == WorkloadPhase::train;
  if (scenario.launch != Launch::stream || (training && !scenario.training.by_megatron())) return Host::absent;
  return training ? Host::blocks : Host::launches;
}

Constant kernel_gap_of(const Setup& setup) {
  return setup.scenario.launch == Launch::graph ? gap_in_graphs(setup.kernels()) : Constant::kernel_gap;
}

void add_use(const ProvenanceUse& use, double times, std::vector<ProvenanceUse>& uses) {
  const auto same = std::find_if(uses.begin(), uses.end(), [&](const ProvenanceUse& other) {
    return other.family == use.family && other.provenance == use.provenance && other.kernel_set == use.kernel_set;
  });
  ProvenanceUse& into = same == uses.end() ? uses.emplace_back() : *same;
  into.family = use.family;
  into.provenance = use.provenance;
  into.kernel_set = use.kernel_set;
  into.note.add(use.note);
  into.kernels += times * use.kernels;
  into.solo_us += times * use.solo_us;
  into.corrected_us += times * use.corrected_us;
}

void add_wait(Program& program, const Meeting& meeting, double wait_us) {
  if (meeting.wait == kNoTask) return;
  const Phase& phase = program.graph.phases()[meeting.phase];
  program.graph.set_solo(meeting.wait, program.graph.task(meeting.wait).solo + from_us(wait_us));
  program.waits_us += wait_us * program.fold.repeats(static_cast<int>(phase.layer)) / (program.ranks * program.steps);
}

KernelWork work_of(const std::string& phase, const Operator& op) {
  const double model_flops = op.flops - op.recomputed_flops - op.padding_flops;
  return {op.module, pass_of(phase, op), model_flops, op.recomputed_flops};
}

PreparedPhase& ProgramDraft::prepare(const std::string& name, std::vector<Operator> ops, const PhaseOptions& options,
                                     const OperatorsByLoad& by_load) {
  PreparedPhase& phase = phases_.emplace_back();
  phase.name = name;
  phase.side_stream = options.side_stream;
  const std::vector<bool> captured = in_graphs(name, ops, setup_.scenario.graphs);
  const std::vector<double> host = host_times_us(name, ops, captured);
  phase.kernels.reserve(ops.size());
  phase.uses.reserve(ops.size());
  std::shared_ptr<const Price> known;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Operator& op = ops[i];
    const PriceConditions conditions = conditions_of(op, options);
    const bool by_chance = goes_by_load(op, by_load, i);
    if (by_chance) {
      known = price_by_chance(op, by_load, i, conditions);
    } else if (i == 0 || !repeats(op, kernels_.back().op)) {
      known = price_of(op, conditions);
    }
    const Price& price = *known;
    phase.kernels.push_back(prepare_kernel(op, price, captured[i]));
    if (by_chance) phase.kernels.back().traits.by_load = static_cast<std::uint32_t>(by_load_.size() - 1);
    phase.kernels.back().launched_before = i > 0 && captured[i] && captured[i - 1];
    phase.kernels.back().host = from_us(is_fused_away(price) ? 0 : host[i]);
    if (host_ != Host::absent) phase.kernels.back().module = graph_.intern(op.module);
    if (options.meetings) phase.kernels.back().meets = ranks_that_meet(op);
    phase.kernels.back().work = static_cast<std::uint32_t>(kernels_.size());
    KernelWork& work = kernels_.emplace_back(work_of(name, op));
    work.conditions = conditions;
    work.solo_us = price.solo_us;
    work.bound_by = bound_by(op, price, setup_.machine.facts, setup_.kernels());
    phase.uses.push_back({op.family, price.provenance, price.note, price.kernel_set, 1, price.solo_us,
                          price.gain != 1 ? price.solo_us : 0});
    phase.model_flops += op.flops - op.recomputed_flops - op.graph_flops;
    if (op.family == Family::small) phase.lumped_us += price.solo_us;
    work.op = std::move(ops[i]);
  }
  return phase;
}

PreparedKernel ProgramDraft::prepare_kernel(const Operator& op, const Price& price, bool captured) {
  PreparedKernel kernel;
  kernel.family = op.family;
  kernel.stage = op.traffic.stage;
  kernel.parallel = op.parallel;
  kernel.beside = op.beside;
  kernel.reads_counts = op.reads_counts;
  kernel.awaits = op.awaits;
  const bool wire = op.traffic.stage == Stage::wire;
  const bool free = setup_.free_communication && role_of(op.family) == Role::communication;
  kernel.computes = role_of(op.family) == Role::compute;
  if (kernel.computes) {
    constant(Constant::jitter);
    if (setup_.scenario.speed_spread > 0) constant(Constant::speed_spread);
    kernel.traits = {setup_.kernels().jitter(price.family), price.deviation, price.clocked};
  }
  if (knows_power(setup_.machine.facts)) {
    kernel.traits.power = power_of(op, price, setup_.clock, setup_.machine.facts);
  }
  if (setup_.scenario.launch != Launch::none && !wire)
    kernel.task.delay = from_us(price.gap * gap_us(price.family, captured));
  if (!free) {
    kernel.task.solo = from_us(price.solo_us);
    if (price.hold != Hold::nothing) kernel.task.pool = static_cast<ResourceId>(RankResource::sms);
    kernel.task.sms = static_cast<std::uint16_t>(price.sms);
    kernel.task.hold = price.hold;
    kernel.task.disturbs = kernel.computes && price.hold != Hold::nothing;
    kernel.task.disturbed_speed = price.disturbed_speed;
    kernel.usages = usages_of(op.family, price, setup_);
  }
  kernel.label.name = graph_.intern(learnt_name(op));
  kernel.label.task_class = graph_.add_class(row_of(op.family).task_class, role_of(op.family));
  return kernel;
}

std::vector<double> ProgramDraft::host_times_us(const std::string& phase, const std::vector<Operator>& ops,
                                                const std::vector<bool>& captured) {
  if (host_ == Host::absent) return std::vector<double>(ops.size(), 0.0);
  if (host_ == Host::launches) return std::vector<double>(ops.size(), host_constant_us(Constant::host_per_kernel));
  const bool by_nccl = setup_.scenario.comm.mode == CommMode::all_to_all;
  std::vector<double> us = host_us(phase, ops, captured, by_nccl ? setup_.model.n_routed_experts : 0);
  for (double& each : us) each /= setup_.machine.facts.host_speed;
  return us;
}

// One that another machine lent was measured on a host that nobody described: it is taken as the usual one.
double ProgramDraft::host_constant_us(Constant constant) {
  const double us = this->constant(constant);
  const bool lent = setup_.kernels().origins[static_cast<std::size_t>(constant)].find(": ") != std::string::npos;
  return lent ? us * MachineFacts{}.host_speed / setup_.machine.facts.host_speed : us;
}

// Times taken by the host's clock hold the whole gap, those of a graph's replays that of a graph.
double ProgramDraft::gap_us(const std::string& family, bool captured) {
  const auto fit = setup_.kernels().fits.find(family);
  const bool measured = fit != setup_.kernels().fits.end();
  if (measured && fit->second.host_timed) return 0;
  const double gap = constant(captured ? gap_in_graphs(setup_.kernels()) : kernel_gap_of(setup_));
  return measured && fit->second.graph_timed ? std::max(0.0, gap - constant(Constant::graph_gap)) : gap;
}

double ProgramDraft::constant(Constant constant) {
  const double value = setup_.kernels()[constant];
  if (std::isnan(value)) return 0;
  constants_.set(static_cast<std::size_t>(constant));
  return value;
}

void ProgramDraft::release(PreparedKernel& kernel, int parts) {
  const double whole_us = to_us(kernel.task.solo);
  release(kernel, parts_of(whole_us, whole_us / parts, parts, Once::last));
}

void ProgramDraft::release(PreparedKernel& kernel, int parts, const Operator& part, Once once) {
  const double part_us = price_of(part, work(kernel).conditions)->solo_us;
  release(kernel, parts_of(to_us(kernel.task.solo), part_us, parts, once));
}

void ProgramDraft::release(PreparedKernel& kernel, std::vector<Time> parts) {
  kernels_[kernel.work].parts = parts.size();
  kernel.parts = std::move(parts);
}

// Persistent kernels beside communication are launched on the SMs that it leaves.
PriceConditions ProgramDraft::conditions_of(const Operator& op, const PhaseOptions& options) const {
  PriceConditions conditions;
  conditions.overlapped = options.overlapped;
  conditions.slowed = setup_.scenario.comm.neighbours == Neighbours::measured;
  conditions.sms = static_cast<int>(setup_.machine.facts.sms);
  conditions.clock = setup_.clock;
  conditions.ideal = setup_.scenario.comm.collectives == Collectives::ideal;
  conditions.channels = setup_.scenario.phase() == WorkloadPhase::train && setup_.scenario.training.by_megatron();
  if (role_of(op.family) == Role::communication) {
    const int own = options.sms > 0 ? options.sms : setup_.scenario.comm.num_sms;
    const bool on_own = op.traffic.stage == Stage::whole || (options.released && op.traffic.stage == Stage::issue);
    if (on_own && own > 0) conditions.sms = own;
    if (op.family == Family::all_to_all || is_hybrid_ep(op)) conditions.held = own;
  } else if (leaves_sms(op, options)) {
    conditions.sms = options.sms > 0 ? options.sms : conditions.sms - setup_.scenario.comm.num_sms;
  }
  return conditions;
}

std::shared_ptr<const Price> ProgramDraft::price_of(const Operator& op, const PriceConditions& conditions) {
  std::shared_ptr<const Price> price = setup_.prices->price(op, conditions);
  constants_ |= price->constants;
  if (!(price->solo_us <= kLongestTimeUs)) {
    throw SpecError(setup_.scenario.file, 0,
                    fmt::format("'{}' would take {} us on this machine", op.name, price->solo_us));
  }
  return price;
}

namespace {

// Of the task added last; host work before it has nothing.
template <class Note>
void set_last(const Note& note, std::size_t tasks, std::vector<Note>& notes) {
  notes.resize(tasks - 1);
  notes.push_back(note);
}

}  // namespace

// Times and what they take are means; all else is of the mean load.
std::shared_ptr<const Price> ProgramDraft::price_by_chance(const Operator& op, const OperatorsByLoad& by_load,
                                                           std::size_t place, const PriceConditions& conditions) {
  Price mean = *price_of(op, conditions);
  mean.solo_us = mean.deviation = 0;
  std::vector<double> us;
  double hbm_MB = 0, most_GBps = 0;
  for (std::size_t i = 0; i < by_load.ops.size(); ++i) {
    const auto price = price_of(by_load.ops[i].at(place), conditions);
    const double weight = by_load.loads->weights()[i];
    us.push_back(price->solo_us);
    mean.solo_us += weight * price->solo_us;
    hbm_MB += weight * price->hbm_GBps * price->solo_us;
    most_GBps = std::max(most_GBps, price->hbm_GBps);
  }
  for (double& each : us) each = mean.solo_us > 0 ? each / mean.solo_us - 1 : 0;
  by_load_.push_back({by_load.loads, std::move(us)});
  if (mean.solo_us > 0) mean.hbm_GBps = std::min(most_GBps, hbm_MB / mean.solo_us);  // rounding adds nothing
  return std::make_shared<const Price>(mean);
}

void ProgramDraft::note(const KernelTraits& traits) { set_last(traits, graph_.size(), traits_); }

void ProgramDraft::note(Execution execution) { set_last(execution, graph_.size(), executions_); }

Program ProgramDraft::finish(int ranks, std::vector<Meeting> meetings, double steps) && {
  Program program{.graph = TaskGraph(std::move(graph_)), .ranks = ranks, .steps = steps};
  const double parts = ranks * steps;
  for (const PreparedPhase& phase : phases_) {
    if (phase.executions == 0) continue;
    const double times = static_cast<double>(phase.executions) / parts;
    for (const ProvenanceUse& use : phase.uses) add_use(use, times, program.provenance);
    program.model_flops += (phase.executions - phase.repetitions) * phase.model_flops / parts;
    program.lumped_us += phase.executions * phase.lumped_us / parts;
  }
  std::sort(program.provenance.begin(), program.provenance.end(), [](const ProvenanceUse& a, const ProvenanceUse& b) {
    return std::tie(a.family, a.provenance, a.kernel_set) < std::tie(b.family, b.provenance, b.kernel_set);
  });
  if (ranks == 1) traits_.resize(program.graph.size());  // the host's tasks behind the last kernel
  program.traits = std::move(traits_);
  program.meetings = std::move(meetings);
  program.kernels = std::move(kernels_);
  program.executions = std::move(executions_);
  program.by_load = std::move(by_load_);
  program.constants = constants_;
  program.gaps_us = gaps_us_ / parts;
  program.waits_us = waits_us_ / parts;
  program.fold = setup_.fold;
  return program;
}

}  // namespace moeline
