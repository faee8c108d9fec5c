#include "experiments/plan/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/plan/launched_server.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

constexpr int kVllmMostSms = 20;  // DeepEPAll2AllManagerBase.num_sms; its buffers are made for no more

std::string vllm_backend(const LaunchedServer& s) {
  const Dispatcher& by = dispatcher_of(s.mode);
  if (!by.sends_tokens || by.vllm.empty()) return dispatcher_of(CommMode::all_gather).vllm;
  const bool of_first_version = by.of_deep_ep && !by.has_layouts;
  return of_first_version && s.prefill != nullptr ? dispatcher_of(CommMode::normal).vllm : by.vllm;
}

// Two batches overlap with DeepEP's first version alone; with any other all-to-all vLLM refuses to start so.
bool overlaps_batches(const LaunchedServer& s) {
  const std::string backend = vllm_backend(s);
  return s.overlaps() &&
         (backend == dispatcher_of(CommMode::normal).vllm || backend == dispatcher_of(CommMode::low_latency).vllm);
}

Flags vllm_parallelism(const LaunchedServer& s) {
  Flags flags = {fmt::format("--tensor-parallel-size {}", s.unit.tp)};
  if (s.unit.ep > 1) flags.push_back("--enable-expert-parallel");
  if (s.groups() == 1) return flags;
  flags.push_back(fmt::format("--data-parallel-size {}", s.groups()));
  if (s.nodes > 1) {
    // Hybrid: the same command and an API server on every node, where the internal way has one for the whole unit.
    const int local = std::max(1, s.gpus_per_node() / s.unit.tp);
    add_flags(flags, {fmt::format("--data-parallel-size-local {}", local), "--data-parallel-hybrid-lb",
                      fmt::format("--data-parallel-start-rank $((NODE_RANK * {}))", local),
                      "--data-parallel-address $HEAD_IP", "--data-parallel-rpc-port 13345"});
  }
  flags.push_back("--all2all-backend " + vllm_backend(s));
  return flags;
}

Flags vllm_batches(const LaunchedServer& s) {
  Flags flags = {fmt::format("--max-num-batched-tokens {}", s.tokens())};  // low latency: its buffers are for as many
  if (s.decode != nullptr) flags.push_back(fmt::format("--max-num-seqs {}", s.decode->batch_size));
  return flags;
}

Flags vllm_overlap(const LaunchedServer& s) {
  if (!overlaps_batches(s)) return {};
  Flags flags = {"--enable-dbo"};
  // A threshold above every batch turns it off for that kind of batch.
  if (s.alone() && !s.decode_overlaps()) {
    flags.push_back(fmt::format("--dbo-decode-token-threshold {}", s.decode_tokens() + 1));
  }
  if (s.alone() && !s.prefill_overlaps()) {
    flags.push_back(fmt::format("--dbo-prefill-token-threshold {}", s.tokens() + 1));
  }
  return flags;
}

Flags vllm_options(const LaunchedServer& s) {
  Flags flags;
  if (s.redundant_experts > 0) {
    add_flags(flags,
              {"--enable-eplb", fmt::format(R"(--eplb-config '{{"num_redundant_experts":{}}}')", s.redundant_experts)});
  }
  if (s.mtp > 0) {
    flags.push_back(fmt::format(R"(--speculative-config '{{"method":"mtp","num_speculative_tokens":{}}}')", s.mtp));
  }
  if (!s.alone()) flags.push_back(R"(--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}')");
  return flags;
}

// DeepEP's normal mode knows how to split its buffers for so many ranks (get_dispatch_config of deep_ep/buffer.py), and
// vLLM does not tell it.
void note_ranks(const LaunchedServer& s, std::vector<std::string>& notes) {
  static const std::set<int> kKnown = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 144, 160};
  if (vllm_backend(s) != dispatcher_of(CommMode::normal).vllm || kKnown.contains(s.gpus())) return;
  notes.push_back(fmt::format("DeepEP's normal mode has no sizes of buffers for {} ranks, and refuses them", s.gpus()));
}

std::vector<std::string> vllm_notes(const LaunchedServer& s) {
  std::vector<std::string> notes;
  if (s.alone() && s.sends_by_deep_ep()) notes.emplace_back("decode communicates in DeepEP's normal mode, too");
  note_one_batch(s, notes);
  if (s.overlaps() && !overlaps_batches(s)) {
    notes.emplace_back("one batch at a time with this all-to-all; the plan overlaps two");
  }
  note_ranks(s, notes);
  if (s.prefill != nullptr && s.prefill->comm_sms > 0) {
    const int sms =
        s.prefill_overlaps() && overlaps_batches(s) ? std::min(s.prefill->comm_sms, kVllmMostSms) : kVllmMostSms;
    if (sms != s.prefill->comm_sms) {
      notes.push_back(fmt::format("{} SMs communicate; the plan has {}", sms, s.prefill->comm_sms));
    }
  }
  if (s.unit.tp > s.gpus_per_node())
    notes.emplace_back("tensor parallelism over nodes needs vLLM's multi-node executor");
  if (!s.alone()) notes.emplace_back("a router of your own sends each request to prefill, then to decode");
  return notes;
}

LaunchCommand vllm_server(const LaunchedServer& s, const Plan& plan, const Architecture& model) {
  Flags flags;
  if (!s.alone()) flags.push_back("VLLM_NIXL_SIDE_CHANNEL_HOST=$NODE_IP");  // where the other side asks for KV cache
  if (s.prefill_overlaps() && overlaps_batches(s) && s.prefill->comm_sms > 0) {
    flags.push_back(fmt::format("VLLM_DBO_COMM_SMS={}", std::min(s.prefill->comm_sms, kVllmMostSms)));
  }
  flags.push_back("vllm serve " + for_shell(served_model(plan, model)));
  add_flags(flags, vllm_parallelism(s));
  add_flags(flags, vllm_batches(s));
  add_flags(flags, vllm_overlap(s));
  add_flags(flags, vllm_options(s));
  const double start = s.decode == nullptr ? 0 : habits::vllm_start_bytes(model, s.decode->batch_size);
  flags.push_back("--gpu-memory-utilization " + rounded_share(share_of_all(s.memory, start)));
  return launch_command(s, flags, vllm_notes(s));
}

}  // namespace

std::vector<LaunchCommand> vllm_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                         int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const LaunchedServer& s : launched_servers(deployment, gpus_per_node))
    commands.push_back(vllm_server(s, plan, model));
  return commands;
}

}  // namespace moeline
