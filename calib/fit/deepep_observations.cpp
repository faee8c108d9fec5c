#include "calib/fit/deepep_observations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "moe/training.hpp"

namespace moeline {
namespace {

constexpr int kMostSms = 8;
constexpr double kFewestTokens = 1024;

// DeepEP's benchmark routes as if there were one expert group per node, at most four of them chosen.
LayerWork benchmark_work(Architecture model, int ep, int tokens, int gpus_per_node) {
  LayerWork work;
  model.n_group = ep / gpus_per_node;
  model.topk_group = std::min(model.n_group, 4);
  work.model = model;
  work.seq_len = tokens;
  work.ep = ep;
  work.gpus_per_node = gpus_per_node;
  work.spread = expected_spread(model, ep, gpus_per_node);
  return work;
}

Operator transfer_of(const LayerWork& work, bool dispatch) {
  return dispatch ? dispatch_forward(work).back() : combine_forward(work).back();
}

}  // namespace

std::vector<Observation> copy_observations(const CsvTable& table, const Architecture& model,
                                           const MachineFacts& machine) {
  const int node = static_cast<int>(machine.gpus_per_node);
  std::vector<Observation> observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int ep = static_cast<int>(table.number(row, "ep"));
    const double tokens = table.number(row, "num_token");
    if (ep <= node || tokens < kFewestTokens) continue;
    const LayerWork work = benchmark_work(model, ep, static_cast<int>(tokens), node);
    for (const bool dispatch : {true, false}) {
      const int sms = static_cast<int>(table.number(row, dispatch ? "dispatch_sms" : "combine_sms"));
      if (sms > kMostSms) continue;
      const Operator op = transfer_of(work, dispatch);
      observations.push_back({"sm_copies", table.number(row, dispatch ? "dispatch_transmit_us" : "combine_transmit_us"),
                              {copy_term(op, sms)}, op.traffic.copied_bytes, sms,
                              fmt::format("{}:{} {}", table.file(), table.line(row), op.name)});
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
    const int ep = static_cast<int>(table.number(row, "ep"));
    const LayerWork work = benchmark_work(model, ep, static_cast<int>(table.number(row, "tokens_per_rank")),
                                          static_cast<int>(machine.gpus_per_node));
    const Operator op = transfer_of(work, table.text(row, "op") == "dispatch");
    const double own_node = work.gpus_per_node / static_cast<double>(ep);
    const double logical_bytes = op.traffic.wire_bytes / (1 - own_node);
    const double us = logical_bytes / (table.number(row, "logical_bandwidth_GBps") * 1e3);
    observations.push_back({"all_to_all_alone", us, {wire_term(op, machine, false)}, op.traffic.wire_bytes, 0,
                            fmt::format("{}:{} {}", table.file(), table.line(row), op.name)});
  }
  return observations;
}

}  // namespace moeline
