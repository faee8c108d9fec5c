#include "calib/fit/deepep_observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "moe/all_to_all.hpp"
#include "moe/kernels.hpp"
#include "routing/gating.hpp"

namespace moeline {
namespace {

bool is_h100(const MachineFacts& machine) {
  constexpr double kNvlinkGBps = 450;  // tells it from an H800
  return machine.nvlink_GBps == kNvlinkGBps;
}

// One row's work, as the benchmark draws it.
AllToAllWork benchmark_work(const CsvTable& table, std::size_t row, const char* tokens, const Architecture& model,
                            const MachineFacts& machine) {
  constexpr int kMostRanks = 4096;
  if (model.n_routed_experts == 0) {
    throw SpecError(table.file(), table.line(row),
                    fmt::format("ep: the model '{}' has no routed experts, and these are their transfers", model.name));
  }
  AllToAllWork work;
  work.gpus_per_node = static_cast<int>(machine.gpus_per_node);
  work.ep = table.integer(row, "ep", 1, kMostRanks);
  if (work.ep % work.gpus_per_node != 0) {
    throw SpecError(table.file(), table.line(row),
                    fmt::format("ep: {} must be whole nodes of {} GPUs", work.ep, work.gpus_per_node));
  }
  work.hidden = model.hidden_size;
  work.top_k = model.num_experts_per_tok;
  work.tokens = table.integer(row, tokens, 1, 1 << 24);
  work.experts = model.n_routed_experts;
  return work;
}

// The spread of normal mode's tokens over nodes and ranks, drawn once per number of ranks.
class Spreads {
 public:
  Spreads(const CsvTable& table, const Architecture& model) : table_(table), model_(model) {}

  void set(AllToAllWork& work, std::size_t row) {
    if (model_.n_routed_experts % work.ep != 0) {
      throw SpecError(table_.file(), table_.line(row),
                      fmt::format("ep: {} must divide the {} experts", work.ep, model_.n_routed_experts));
    }
    const auto [found, is_new] = by_ep_.try_emplace(work.ep);
    if (is_new) {
      const Architecture gating = benchmark_gating(model_, work.ep / work.gpus_per_node);
      found->second = expected_spread(gating, work.ep, work.gpus_per_node);
    }
    work.spread = found->second;
  }

 private:
  const CsvTable& table_;
  const Architecture& model_;
  std::map<int, Spread> by_ep_;
};

bool is_dispatch(const CsvTable& table, std::size_t row) {
  const std::string& op = table.text(row, "op");
  if (op != "dispatch" && op != "combine") {
    throw SpecError(table.file(), table.line(row), fmt::format("op: '{}' is neither dispatch nor combine", op));
  }
  return op == "dispatch";
}

Operator normal_transfer(const AllToAllWork& work, bool dispatch) {
  return dispatch ? normal_dispatch(work).back() : normal_combine(work).back();
}

Operator low_latency_transfer(const AllToAllWork& work, bool dispatch) {
  return dispatch ? low_latency_dispatch(work, Stage::whole) : low_latency_combine(work, Stage::whole);
}

// Messages inside the node cost the NIC what others do, or nothing; then set_own_node_constants completes the fit.
void settle_own_node(const KernelLibrary& library, Curve& curve) {
  for (Branch& branch : curve.branches) {
    for (Term& term : branch.terms) {
      const bool normal = term.constant == Constant::normal_own_node;
      if (!normal && term.constant != Constant::low_latency_own_node) continue;
      term.constant = normal ? Constant::normal_nic : Constant::low_latency_nic;
      if (!(normal ? library.normal_over_nic : library.low_latency_over_nic)) term.feature = 0;
    }
  }
}

// The share of their time for which messages over NVLink keep the NIC waiting. Of none, a quarter, a half and all it is
// the one with which both H100's table and H800's are met well when an EP is left out.
constexpr double kWaits = 0.25;

// Messages over NVLink, where there are any, keep the NIC waiting for that share; set_own_node_constants completes
// this, too.
void settle_waits(const KernelLibrary& library, Curve& curve) {
  const auto waits = [](const Term& term) { return term.constant == Constant::low_latency_waits; };
  for (Branch& branch : curve.branches) {
    if (library.low_latency_over_nic) std::erase_if(branch.terms, waits);
    for (Term& term : branch.terms) {
      if (waits(term)) term = {Constant::low_latency_nvlink, kWaits * term.feature};
    }
  }
}

// `sms`: 0 of low-latency transfers, which hold them for a part of the time.
Observation observe(const char* family, const CsvTable& table, std::size_t row, double us, const Operator& op, int sms,
                    Curve curve) {
  Observation o = timed(table, row, op, sms, us, std::move(curve));
  o.family = family;
  return o;
}

// Scored apart: where SMs bind; with two nodes they do up to 24, the NIC has little to do.
const char* family_of(const AllToAllWork& work, bool few_sms) {
  return few_sms || work.ep == 2 * work.gpus_per_node ? "sm_copies" : "all_to_all_alone";
}

// One number of ranks is left out at a time; of a single node, which alone shows NVLink, one number of tokens.
std::string fold_of(const AllToAllWork& work) {
  if (work.ep > work.gpus_per_node) return fmt::format("EP{}", work.ep);
  return fmt::format("EP{}, {} tokens", work.ep, work.tokens);
}

// Published tables have one size: of a single node dispatch and combine are left out in turn.
std::string published_fold(const AllToAllWork& work, bool dispatch) {
  if (work.ep > work.gpus_per_node) return fmt::format("EP{}", work.ep);
  return fmt::format("EP{} {}", work.ep, dispatch ? "dispatch" : "combine");
}

// In the node over NVLink, where the library uses it; between nodes the NIC's start-up.
void keep_startup(const AllToAllWork& work, Curve& curve) {
  keep_branch(curve, work.ep > work.gpus_per_node ? "NIC" : "NVLink");
}

Observation published_normal(const CsvTable& table, std::size_t row, const AllToAllWork& work,
                             const MachineFacts& machine, const KernelLibrary& library) {
  const bool dispatch = is_dispatch(table, row);
  const int sms = table.integer(row, "sms", 1, 4096);
  const Operator op = normal_transfer(work, dispatch);
  Curve curve = transfer_curve(op, sms, machine);
  settle_own_node(library, curve);
  const double us = bytes_at_peak_us(logical_bytes(op), table.positive(row, "logical_bandwidth_GBps"));
  Observation o = observe("all_to_all_alone", table, row, us, op, sms, std::move(curve));
  o.fold = published_fold(work, dispatch);
  return o;
}

// The last row: its time is the NIC's, and that of the SMs as well.
void read_as_both(std::vector<Observation>& observations) {
  Observation sms = observations.back();
  keep_branch(observations.back().curves[0], "NIC");
  sms.family = "sm_copies";
  keep_branch(sms.curves[0], "SMs");
  observations.push_back(std::move(sms));
}

Observation published_low_latency(const CsvTable& table, std::size_t row, const AllToAllWork& work,
                                  const MachineFacts& machine, const KernelLibrary& library) {
  const bool dispatch = is_dispatch(table, row);
  const Operator op = low_latency_transfer(work, dispatch);
  Curve curve = transfer_curve(op, static_cast<int>(machine.sms), machine);
  settle_own_node(library, curve);
  settle_waits(library, curve);
  if (library.low_latency_over_nic) keep_branch(curve, "NIC");
  Observation o = observe("low_latency", table, row, table.positive(row, "latency_us"), op, 0, std::move(curve));
  o.fold = published_fold(work, dispatch);
  return o;
}

}  // namespace

double logical_bytes(const Operator& transfer) {
  const Traffic& traffic = transfer.traffic;
  const double copied = traffic.rdma_bytes > 0 ? traffic.rdma_bytes : traffic.copied_bytes;
  return copied * traffic.payload_bytes / traffic.record_bytes;
}

std::vector<Observation> normal_observations(const CsvTable& table, const Architecture& model,
                                             const MachineFacts& machine, const TokenRange& tokens) {
  constexpr int kFewSms = 8;
  Spreads spreads(table, model);
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    AllToAllWork work = benchmark_work(table, row, "num_token", model, machine);
    if (work.tokens < tokens.from || work.tokens >= tokens.below) continue;
    spreads.set(work, row);
    for (const bool dispatch : {true, false}) {
      const int sms = table.integer(row, dispatch ? "dispatch_sms" : "combine_sms", 1, 4096);
      const bool few_sms = sms <= kFewSms && work.ep > work.gpus_per_node;
      const bool outlier = work.ep == 16 && sms == 12 && dispatch;
      if (outlier || (!is_h100(machine) && !few_sms)) continue;
      const Operator op = normal_transfer(work, dispatch);
      Curve curve = transfer_curve(op, sms, machine);
      settle_own_node({}, curve);
      if (!is_h100(machine)) keep_branch(curve, "SMs");
      if (work.ep <= work.gpus_per_node) keep_branch(curve, "NVLink");
      observations.push_back(observe(family_of(work, few_sms), table, row,
                                     table.positive(row, dispatch ? "dispatch_transmit_us" : "combine_transmit_us"), op,
                                     sms, std::move(curve)));
      observations.back().fold = fold_of(work);
      if (work.ep > work.gpus_per_node) observations.back().fold_across = fmt::format("{} SMs", sms);
    }
  }
  return observations;
}

std::vector<Observation> low_latency_observations(const CsvTable& table, const Architecture& model,
                                                  const MachineFacts& machine, const KernelLibrary& library) {
  constexpr double kFewTokens = 4;
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const AllToAllWork work = benchmark_work(table, row, "num_token", model, machine);
    const bool in_node = work.ep <= work.gpus_per_node;
    if (!is_h100(machine) && (work.tokens > kFewTokens || (in_node && library.low_latency_over_nic))) continue;
    for (const bool dispatch : {true, false}) {
      const Operator op = low_latency_transfer(work, dispatch);
      Curve curve = transfer_curve(op, static_cast<int>(machine.sms), machine);
      settle_own_node({}, curve);
      settle_waits(library, curve);
      if (!is_h100(machine)) keep_startup(work, curve);
      observations.push_back(observe(is_h100(machine) ? "low_latency" : "low_latency_startup", table, row,
                                     table.positive(row, dispatch ? "dispatch_avg_t_us" : "combine_avg_t_us"), op, 0,
                                     std::move(curve)));
      observations.back().fold = fold_of(work);
      observations.back().fold_across = fmt::format("{} tokens", work.tokens);
    }
  }
  return observations;
}

std::vector<Observation> published_observations(const CsvTable& table, const Architecture& model,
                                                const MachineFacts& machine, const std::string& kernel_set) {
  const KernelLibrary library = library_of(kernel_set);
  Spreads spreads(table, model);
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!is_for(kernel_set, table, row)) continue;
    AllToAllWork work = benchmark_work(table, row, "tokens_per_rank", model, machine);
    const bool low_latency = table.text(row, "mode") == "low_latency";
    if (low_latency && library.low_latency_over_nic && work.ep <= work.gpus_per_node)
      continue;  // the curve is NVLink's there
    if (low_latency) {
      observations.push_back(published_low_latency(table, row, work, machine, library));
    } else {
      spreads.set(work, row);
      observations.push_back(published_normal(table, row, work, machine, library));
      if (library.matches_sms_to_nic) read_as_both(observations);
    }
  }
  return observations;
}

std::vector<Observation> hold_observations(const CsvTable& table, const Architecture& model,
                                           const MachineFacts& machine) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const AllToAllWork work = benchmark_work(table, row, "tokens_per_rank", model, machine);
    const Operator op = low_latency_transfer(work, is_dispatch(table, row));
    observations.push_back(
        observe("low_latency_hold", table, row, table.positive(row, "holds_sms_us"), op, 0, hold_curve(op)));
  }
  return observations;
}

void set_own_node_constants(const KernelLibrary& library, Constants& constants) {
  const auto set = [&](Constant own_node, Constant nic, bool over_nic) {
    const double nic_multiple = constants[static_cast<std::size_t>(nic)];
    if (std::isnan(nic_multiple)) return;
    constants[static_cast<std::size_t>(own_node)] = over_nic ? nic_multiple : 0;
  };
  set(Constant::normal_own_node, Constant::normal_nic, library.normal_over_nic);
  set(Constant::low_latency_own_node, Constant::low_latency_nic, library.low_latency_over_nic);
  const auto at = [&](Constant constant) -> double& { return constants[static_cast<std::size_t>(constant)]; };
  if (std::isnan(at(Constant::low_latency_nic))) return;
  at(Constant::low_latency_waits) = library.low_latency_over_nic ? 0 : kWaits * at(Constant::low_latency_nvlink);
}

}  // namespace moeline
