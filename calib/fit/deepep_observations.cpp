#include "calib/fit/deepep_observations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "moe/training.hpp"

namespace moeline {
namespace {

constexpr int kMostSms = 8;
constexpr double kFewestTokens = 1024;

LayerWork benchmark_work(const CsvTable& table, std::size_t row, const char* tokens, const Architecture& model,
                         const MachineFacts& machine) {
  const int gpus_per_node = static_cast<int>(machine.gpus_per_node);
  const int ep = table.integer(row, "ep", 1, model.n_routed_experts);
  if (ep % gpus_per_node != 0 || model.n_routed_experts % ep != 0) {
    throw SpecError(table.file(), table.line(row),
                    fmt::format("ep {} must be whole nodes of {} GPUs and divide the {} experts", ep, gpus_per_node,
                                model.n_routed_experts));
  }
  LayerWork work;
  work.model = benchmark_gating(model, ep / gpus_per_node);
  work.seq_len = table.integer(row, tokens, 1, 1 << 24);
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  work.spread = expected_spread(work.model, ep, gpus_per_node);
  return work;
}

Operator transfer_of(const LayerWork& work, bool dispatch) {
  return dispatch ? dispatch_forward(work).back() : combine_forward(work).back();
}

}  // namespace

Architecture benchmark_gating(Architecture model, int nodes) {
  model.n_group = nodes;
  model.topk_group = std::min(nodes, 4);
  return model;
}

std::vector<Observation> copy_observations(const CsvTable& table, const Architecture& model,
                                           const MachineFacts& machine) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.number(row, "ep") <= machine.gpus_per_node || table.number(row, "num_token") < kFewestTokens) continue;
    const LayerWork work = benchmark_work(table, row, "num_token", model, machine);
    for (const bool dispatch : {true, false}) {
      const int sms = table.integer(row, dispatch ? "dispatch_sms" : "combine_sms", 1, 4096);
      if (sms > kMostSms) continue;
      const Operator op = transfer_of(work, dispatch);
      observations.push_back({"sm_copies",
                              table.number(row, dispatch ? "dispatch_transmit_us" : "combine_transmit_us"),
                              {copy_term(op, sms)},
                              op.traffic.copied_bytes,
                              sms,
                              fmt::format("{}:{} {}", table.file(), table.line(row), op.name)});
      observations.back().ranks = work.ep;
    }
  }
  return observations;
}

std::vector<Observation> alone_observations(const CsvTable& table, const Architecture& model,
                                            const MachineFacts& machine) {
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "mode") != "normal" || table.text(row, "note").find("February 2025") == std::string::npos) {
      continue;
    }
    const LayerWork work = benchmark_work(table, row, "tokens_per_rank", model, machine);
    const Operator op = transfer_of(work, table.text(row, "op") == "dispatch");
    const double us = op.traffic.rdma_bytes / (table.number(row, "logical_bandwidth_GBps") * 1e3);
    observations.push_back({"all_to_all_alone",
                            us,
                            {wire_term(op, machine, false)},
                            size_of(op),
                            0,
                            fmt::format("{}:{} {}", table.file(), table.line(row), op.name)});
    observations.back().ranks = work.ep;
  }
  return observations;
}

}  // namespace moeline
