#include "experiments/plan/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "experiments/plan/launched_server.hpp"

namespace moeline {
namespace {

constexpr int kSglangPort = 30000, kBootstrapPort = 8998;  // its defaults
constexpr int kPage = 64;  // tokens: of its KV cache on Blackwell (arg_groups/overrides.py), and a chunk is whole pages
// Tokens that a rank may send at once in DeepEP's low-latency mode, whose kernels count them below a tag.
constexpr int kMostSlots = 1024;
// The least that an attention group runs at a time where it is not told; a unit that drafts tokens would run 48 in all
// (arg_groups/speculative_hook.py).
constexpr int kUsualRequests = 2048;

bool by_second_version(const LaunchedServer& s) { return s.sends_by_deep_ep() && dispatcher_of(s.mode).has_layouts; }

// Of an attention group. What decodes in a mixed chunk is taken from it.
int chunk_of(const LaunchedServer& s) {
  const int tokens = s.mixes ? s.tokens() : s.prefill->tokens;
  return (tokens + kPage - 1) / kPage * kPage;
}

// What each rank's buffers hold, 128 tokens unless set: with the first version those of the low-latency mode.
Flags sglang_buffers(const LaunchedServer& s) {
  if (by_second_version(s)) {
    const int tokens = std::max(s.prefill == nullptr ? 0 : chunk_of(s), s.decode_tokens());
    return {fmt::format("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK={}", tokens)};
  }
  if (s.decode == nullptr || !s.sends_by_deep_ep()) return {};
  return {fmt::format("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK={}", std::min(s.decode_tokens(), kMostSlots))};
}

Flags sglang_parallelism(const LaunchedServer& s) {
  Flags flags = {fmt::format("--tp-size {}", s.gpus())};  // of all GPUs: attention's own TP is tp-size / dp-size
  if (s.nodes > 1) {
    add_flags(flags, {fmt::format("--nnodes {}", s.nodes), "--node-rank $NODE_RANK", "--dist-init-addr $HEAD_IP:5000"});
  }
  if (s.groups() > 1) add_flags(flags, {fmt::format("--dp-size {}", s.groups()), "--enable-dp-attention"});
  if (s.groups() > 1 && s.unit.tp == 1) add_flags(flags, {"--enable-dp-lm-head", "--moe-dense-tp-size 1"});
  if (s.unit.ep > 1) flags.push_back(fmt::format("--ep-size {}", s.unit.ep));
  if (!s.sends_by_deep_ep()) return flags;
  flags.push_back("--moe-a2a-backend " + dispatcher_of(s.mode).sglang);
  if (by_second_version(s)) {
    if (s.nodes > 1) flags.emplace_back("--deepep-v2-mode hybrid");
    return flags;
  }
  flags.push_back(fmt::format("--deepep-mode {}", s.alone()              ? "auto"
                                                  : s.prefill != nullptr ? "normal"
                                                                         : "low_latency"));
  if (s.prefill != nullptr && s.prefill->comm_sms > 0) {
    const std::string sms = fmt::format(R"({{"num_sms":{}}})", s.prefill->comm_sms);
    flags.push_back(fmt::format(R"(--deepep-config '{{"normal_dispatch":{0},"normal_combine":{0}}}')", sms));
  }
  return flags;
}

Flags sglang_batches(const LaunchedServer& s) {
  Flags flags;
  if (s.prefill != nullptr) flags.push_back(fmt::format("--chunked-prefill-size {}", chunk_of(s) * s.groups()));
  if (s.decode == nullptr && s.mtp > 0) {
    flags.push_back(fmt::format("--max-running-requests {}", kUsualRequests * s.groups()));
  }
  if (s.decode != nullptr) {
    add_flags(flags, {fmt::format("--max-running-requests {}", s.decode->batch_size * s.groups()),
                      fmt::format("--cuda-graph-max-bs {}", s.decode->batch_size)});
  }
  return flags;
}

Flags sglang_options(const LaunchedServer& s) {
  Flags flags;
  if (s.overlaps() && !by_second_version(s)) flags.emplace_back("--enable-two-batch-overlap");
  if (s.decodes_by("single-batch") && !by_second_version(s)) flags.emplace_back("--enable-single-batch-overlap");
  if (s.mixes && s.mtp == 0) flags.push_back("--enable-mixed-chunk");  // the other programs always do
  if (s.redundant_experts > 0) {
    add_flags(flags, {fmt::format("--ep-num-redundant-experts {}", s.redundant_experts), "--enable-eplb"});
  }
  if (s.mtp > 0) {
    add_flags(flags, {"--speculative-algorithm EAGLE", fmt::format("--speculative-num-steps {}", s.mtp),
                      "--speculative-eagle-topk 1", fmt::format("--speculative-num-draft-tokens {}", s.mtp + 1)});
    if (by_second_version(s))
      flags.emplace_back("--speculative-moe-a2a-backend deepep");  // drafts cannot go by the second
  }
  return flags;
}

// SGLang overlaps nothing with DeepEP's second version, and starts it for the models that it was validated with.
void note_second_version(const LaunchedServer& s, const Architecture& model, std::vector<std::string>& notes) {
  static const std::set<std::string> kValidated = {"deepseek_v3", "kimi_k2", "deepseek_v4", "qwen3_moe"};
  if (!by_second_version(s)) return;
  if (s.overlaps() || s.decodes_by("single-batch")) {
    notes.emplace_back("nothing overlaps with DeepEP's second version; the plan has that");
  }
  if (s.mtp > 0) notes.emplace_back("drafts go by DeepEP's first version");
  if (!kValidated.contains(model.model_type)) {
    notes.push_back(fmt::format("DeepEP's second version is refused for {}; --moe-a2a-backend deepep is the first one",
                                model.model_type));
  }
}

std::vector<std::string> sglang_notes(const LaunchedServer& s, const Architecture& model) {
  std::vector<std::string> notes;
  if (s.mode == CommMode::nvlink) notes.emplace_back("tokens are gathered; the plan sends them by NVLink's all-to-all");
  if (!s.decodes_by("single-batch")) note_one_batch(s, notes);
  note_second_version(s, model, notes);
  if (s.mixes && s.mtp > 0) {
    notes.emplace_back("prompts and answers take turns where tokens are drafted; the plan mixes them in a step");
  }
  if (s.sends_by_deep_ep() && !by_second_version(s) && s.decode_tokens() > kMostSlots) {
    notes.push_back(fmt::format("a rank sends {} tokens at most in the low-latency mode; the plan has {}", kMostSlots,
                                s.decode_tokens()));
  }
  if (s.alone() && s.prefill_overlaps() != s.decode_overlaps()) {
    notes.push_back(fmt::format("two batches overlap in prefill and decode; the plan has that in {} only",
                                s.prefill_overlaps() ? "prefill" : "decode"));
  }
  return notes;
}

LaunchCommand sglang_server(const LaunchedServer& s, const Plan& plan, const Architecture& model) {
  Flags flags = sglang_buffers(s);
  add_flags(flags, {"python -m sglang.launch_server", "--model-path " + for_shell(served_model(plan, model)),
                    "--host 0.0.0.0", fmt::format("--port {}", kSglangPort)});
  if (!s.alone()) flags.push_back("--disaggregation-mode " + s.role);
  add_flags(flags, sglang_parallelism(s));
  add_flags(flags, sglang_batches(s));
  add_flags(flags, sglang_options(s));
  flags.push_back("--mem-fraction-static " + rounded_share(static_share(s.memory)));
  return launch_command(s, flags, sglang_notes(s, model));
}

LaunchCommand sglang_router(const Deployment& d) {
  const Flags flags = {"python -m sglang_router.launch_router",
                       "--pd-disaggregation",
                       fmt::format("--prefill http://$PREFILL_IP:{} {}", kSglangPort, kBootstrapPort),
                       fmt::format("--decode http://$DECODE_IP:{}", kSglangPort),
                       "--host 0.0.0.0",
                       "--port 8000"};
  std::vector<std::string> notes;
  if (d.prefill.all_units() > 1 || d.decode.all_units() > 1) {
    notes.push_back(fmt::format("--prefill and --decode once per unit, with its first node: {} and {} times",
                                d.prefill.all_units(), d.decode.all_units()));
  }
  return {"router", 1, 1, joined(flags), notes};
}

}  // namespace

std::vector<LaunchCommand> sglang_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                           int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const LaunchedServer& s : launched_servers(deployment, gpus_per_node))
    commands.push_back(sglang_server(s, plan, model));
  if (!deployment.colocated) commands.push_back(sglang_router(deployment));
  return commands;
}

}  // namespace moeline
