#include "experiments/plan/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {

namespace {

namespace fs = std::filesystem;

using Flags = std::vector<std::string>;

// One kind of server: what prefills, what decodes, or, colocated, what does both.
struct Server {
  std::string role;
  int units = 0, nodes = 0;
  Parallelism unit{};
  CommMode mode = CommMode::normal;  // of decode, where both sides are one server
  int redundant_experts = 0;
  int mtp = 0;         // prefill drafts, too: decode needs the MTP module's KV cache of the prompt
  bool mixes = false;  // prompts are prefilled in steps that decode as well
  const PrefillChoice* prefill = nullptr;
  const DecodeChoice* decode = nullptr;
  Memory memory;

  [[nodiscard]] bool alone() const { return prefill != nullptr && decode != nullptr; }
  [[nodiscard]] int gpus() const { return unit.group(); }
  [[nodiscard]] int gpus_per_node() const { return gpus() / nodes; }
  [[nodiscard]] int groups() const { return unit.attention_groups(); }
  [[nodiscard]] bool sends_by_deep_ep() const { return is_deep_ep(mode); }
  [[nodiscard]] bool prefill_overlaps() const { return prefill != nullptr && is_two_batch(prefill->schedule); }
  [[nodiscard]] bool decode_overlaps() const { return decode != nullptr && is_two_batch(decode->schedule); }
  [[nodiscard]] bool overlaps() const { return prefill_overlaps() || decode_overlaps(); }
  // What overlaps one batch with itself.
  [[nodiscard]] bool decodes_by(const char* schedule) const {
    return decode != nullptr && decode->schedule == schedule;
  }
  // Of an attention group. A request's drafted tokens are verified beside its newest one.
  [[nodiscard]] int decode_tokens() const { return decode == nullptr ? 0 : decode->batch_size * (1 + mtp); }
  // Of a step: a mixed one has both.
  [[nodiscard]] int tokens() const {
    const int prompts = prefill == nullptr ? 0 : prefill->tokens;
    return mixes ? prompts + decode_tokens() : std::max(prompts, decode_tokens());
  }
};

Memory larger(const Memory& a, const Memory& b) {
  return {.weights = std::max(a.weights, b.weights),
          .kv_cache = std::max(a.kv_cache, b.kv_cache),
          .activations = std::max(a.activations, b.activations),
          .communication = std::max(a.communication, b.communication)};
}

std::vector<Server> servers(const Deployment& d, int gpus_per_node) {
  Server prefill{.role = "prefill", .units = d.prefill.units, .prefill = &d.prefill_choice, .memory = d.prefill.memory};
  prefill.unit = d.prefill_choice.unit;
  prefill.mode = d.prefill_choice.mode;
  prefill.redundant_experts = d.prefill_choice.redundant_experts;
  Server decode{.role = "decode", .units = d.decode.units, .decode = &d.decode_choice, .memory = d.decode.memory};
  decode.unit = d.decode_choice.unit;
  decode.mode = d.decode_choice.mode;
  decode.redundant_experts = d.decode_choice.redundant_experts;
  std::vector<Server> all = {prefill, decode};
  if (d.colocated) {
    decode.role = "serve";
    decode.prefill = &d.prefill_choice;
    decode.mixes = d.mixed;
    decode.memory = larger(d.prefill.memory, d.decode.memory);
    all = {decode};
  }
  for (Server& server : all) {
    server.mtp = d.decode_choice.mtp;
    server.nodes = (server.gpus() + gpus_per_node - 1) / gpus_per_node;
  }
  return all;
}

void add(Flags& flags, const Flags& more) { flags.insert(flags.end(), more.begin(), more.end()); }

std::string joined(const Flags& flags) { return fmt::format("{}", fmt::join(flags, " \\\n  ")); }

// Where decode overlaps one batch with itself, and the program has no such option.
void note_one_batch(const Server& s, std::vector<std::string>& notes) {
  if (s.decodes_by("single-batch")) notes.emplace_back("nothing overlaps one batch; the plan does (single-batch)");
  if (s.decodes_by("per-expert")) notes.emplace_back("nothing overlaps groups of experts; the plan does (per-expert)");
}

LaunchCommand launch(const Server& server, const Flags& flags, std::vector<std::string> notes) {
  return {server.role, server.units, server.nodes, joined(flags), std::move(notes)};
}

// A share of memory, rounded down: what is granted to one is taken from another.
std::string share(double value) { return shortest(std::floor(value * 1000 + 1e-6) / 1000); }

std::string for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '.' ||
           c == '-' || c == '_';
  });
  return plain ? text : quoted + "'";
}

// The first line of a file of the zoo ends "... config.json (ORGANIZATION/NAME)."
std::string hugging_face_id(const std::string& zoo_name) {
  const std::string text = read_text(home() / "model/zoo" / (zoo_name + ".yaml"));
  const std::string before = "config.json (";
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return zoo_name;
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find(')', begin) - begin);
}

// What the server is to load. Our own YAML is not loaded by anyone: there is only the name.
std::string served_model(const Plan& plan, const Architecture& model) {
  const std::vector<std::string> zoo = names_in("model/zoo");
  if (std::find(zoo.begin(), zoo.end(), plan.model) != zoo.end()) return hugging_face_id(plan.model);
  const fs::path path = beside(plan.file, plan.model);
  std::error_code failed;
  if (fs::is_directory(path, failed)) return path.string();
  return path.filename() == "config.json" ? path.parent_path().string() : model.name;
}

// SGLang -------------------------------------------------------------------------------------------------------------

constexpr int kSglangPort = 30000, kBootstrapPort = 8998;  // its defaults

// Weights and KV cache over all of the GPU's memory. The plan has them fit beside activations and communication into
// 1 - reserve of it, so this share of that, whatever the GPU's size, holds them and leaves room for the others.
double static_share(const Memory& memory, double reserve) {
  MOELINE_CHECK(memory.total() > 0, fmt::format("total={}", memory.total()));
  return (1 - reserve) * (memory.weights + memory.kv_cache) / memory.total();
}

Flags sglang_parallelism(const Server& s) {
  Flags flags = {fmt::format("--tp-size {}", s.gpus())};  // of all GPUs: attention's own TP is tp-size / dp-size
  if (s.nodes > 1) {
    add(flags, {fmt::format("--nnodes {}", s.nodes), "--node-rank $NODE_RANK", "--dist-init-addr $HEAD_IP:5000"});
  }
  if (s.groups() > 1) add(flags, {fmt::format("--dp-size {}", s.groups()), "--enable-dp-attention"});
  if (s.groups() > 1 && s.unit.tp == 1) add(flags, {"--enable-dp-lm-head", "--moe-dense-tp-size 1"});
  if (s.unit.ep > 1) flags.push_back(fmt::format("--ep-size {}", s.unit.ep));
  if (!s.sends_by_deep_ep()) return flags;
  add(flags, {"--moe-a2a-backend deepep", fmt::format("--deepep-mode {}", s.alone()              ? "auto"
                                                                          : s.prefill != nullptr ? "normal"
                                                                                                 : "low_latency")});
  if (s.prefill != nullptr && s.prefill->comm_sms > 0) {
    const std::string sms = fmt::format(R"({{"num_sms":{}}})", s.prefill->comm_sms);
    flags.push_back(fmt::format(R"(--deepep-config '{{"normal_dispatch":{0},"normal_combine":{0}}}')", sms));
  }
  return flags;
}

Flags sglang_batches(const Server& s) {
  Flags flags;
  if (s.prefill != nullptr) {  // of which a mixed chunk's decoding requests are taken
    const int tokens = s.mixes ? s.tokens() : s.prefill->tokens;
    flags.push_back(fmt::format("--chunked-prefill-size {}", tokens * s.groups()));
  }
  if (s.decode != nullptr) {
    add(flags, {fmt::format("--max-running-requests {}", s.decode->batch_size * s.groups()),
                fmt::format("--cuda-graph-max-bs {}", s.decode->batch_size)});
  }
  return flags;
}

Flags sglang_options(const Server& s) {
  Flags flags;
  if (s.overlaps()) flags.push_back("--enable-two-batch-overlap");
  if (s.decodes_by("single-batch")) flags.push_back("--enable-single-batch-overlap");
  if (s.mixes) flags.push_back("--enable-mixed-chunk");  // the other programs always do
  if (s.redundant_experts > 0) {
    add(flags, {fmt::format("--ep-num-redundant-experts {}", s.redundant_experts), "--enable-eplb"});
  }
  if (s.mtp > 0) {
    add(flags, {"--speculative-algorithm EAGLE", fmt::format("--speculative-num-steps {}", s.mtp),
                "--speculative-eagle-topk 1", fmt::format("--speculative-num-draft-tokens {}", s.mtp + 1)});
  }
  return flags;
}

std::vector<std::string> sglang_notes(const Server& s) {
  std::vector<std::string> notes;
  if (s.mode == CommMode::nvlink) notes.emplace_back("tokens are gathered; the plan sends them by NVLink's all-to-all");
  if (!s.decodes_by("single-batch")) note_one_batch(s, notes);
  if (s.alone() && s.prefill_overlaps() != s.decode_overlaps()) {
    notes.push_back(fmt::format("two batches overlap in prefill and decode; the plan has that in {} only",
                                s.prefill_overlaps() ? "prefill" : "decode"));
  }
  return notes;
}

LaunchCommand sglang_server(const Server& s, const Plan& plan, const Architecture& model) {
  Flags flags;
  if (s.decode != nullptr && s.sends_by_deep_ep()) {  // the low-latency mode's buffers; 128 unless set
    flags.push_back(fmt::format("SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK={}", s.decode_tokens()));
  }
  add(flags, {"python -m sglang.launch_server", "--model-path " + for_shell(served_model(plan, model)),
              "--host 0.0.0.0", fmt::format("--port {}", kSglangPort)});
  if (!s.alone()) flags.push_back("--disaggregation-mode " + s.role);
  add(flags, sglang_parallelism(s));
  add(flags, sglang_batches(s));
  add(flags, sglang_options(s));
  flags.push_back("--mem-fraction-static " + share(static_share(s.memory, plan.memory_reserve)));
  return launch(s, flags, sglang_notes(s));
}

LaunchCommand sglang_router(const Deployment& d) {
  const Flags flags = {"python -m sglang_router.launch_router",
                       "--pd-disaggregation",
                       fmt::format("--prefill http://$PREFILL_IP:{} {}", kSglangPort, kBootstrapPort),
                       fmt::format("--decode http://$DECODE_IP:{}", kSglangPort),
                       "--host 0.0.0.0",
                       "--port 8000"};
  std::vector<std::string> notes;
  if (d.prefill.units > 1 || d.decode.units > 1) {
    notes.push_back(fmt::format("--prefill and --decode once per unit, with its first node: {} and {} times",
                                d.prefill.units, d.decode.units));
  }
  return {"router", 1, 1, joined(flags), notes};
}

// vLLM ---------------------------------------------------------------------------------------------------------------

constexpr int kVllmMostSms = 20;  // DeepEPAll2AllManagerBase.num_sms; its buffers are made for no more

std::string vllm_backend(const Server& s) {
  if (s.mode == CommMode::nvlink) return "flashinfer_all2allv";
  if (!s.sends_by_deep_ep()) return "allgather_reducescatter";
  return s.prefill != nullptr ? "deepep_high_throughput" : "deepep_low_latency";
}

Flags vllm_parallelism(const Server& s) {
  Flags flags = {fmt::format("--tensor-parallel-size {}", s.unit.tp)};
  if (s.unit.ep > 1) flags.push_back("--enable-expert-parallel");
  if (s.groups() == 1) return flags;
  flags.push_back(fmt::format("--data-parallel-size {}", s.groups()));
  if (s.nodes > 1) {
    // Hybrid: the same command and an API server on every node, where the internal way has one for the whole unit.
    const int local = std::max(1, s.gpus_per_node() / s.unit.tp);
    add(flags, {fmt::format("--data-parallel-size-local {}", local), "--data-parallel-hybrid-lb",
                fmt::format("--data-parallel-start-rank $((NODE_RANK * {}))", local),
                "--data-parallel-address $HEAD_IP", "--data-parallel-rpc-port 13345"});
  }
  flags.push_back("--all2all-backend " + vllm_backend(s));
  return flags;
}

Flags vllm_batches(const Server& s) {
  Flags flags = {fmt::format("--max-num-batched-tokens {}", s.tokens())};  // low latency: its buffers are for as many
  if (s.decode != nullptr) flags.push_back(fmt::format("--max-num-seqs {}", s.decode->batch_size));
  return flags;
}

Flags vllm_overlap(const Server& s) {
  if (!s.overlaps()) return {};
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

Flags vllm_options(const Server& s) {
  Flags flags;
  if (s.redundant_experts > 0) {
    add(flags,
        {"--enable-eplb", fmt::format(R"(--eplb-config '{{"num_redundant_experts":{}}}')", s.redundant_experts)});
  }
  if (s.mtp > 0) {
    flags.push_back(fmt::format(R"(--speculative-config '{{"method":"mtp","num_speculative_tokens":{}}}')", s.mtp));
  }
  if (!s.alone()) flags.push_back(R"(--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}')");
  return flags;
}

std::vector<std::string> vllm_notes(const Server& s) {
  std::vector<std::string> notes;
  if (s.alone() && s.sends_by_deep_ep()) notes.emplace_back("decode communicates in DeepEP's normal mode, too");
  note_one_batch(s, notes);
  if (s.prefill != nullptr && s.prefill->comm_sms > 0) {
    const int sms = s.prefill_overlaps() ? std::min(s.prefill->comm_sms, kVllmMostSms) : kVllmMostSms;
    if (sms != s.prefill->comm_sms) {
      notes.push_back(fmt::format("{} SMs communicate; the plan has {}", sms, s.prefill->comm_sms));
    }
  }
  if (s.unit.tp > s.gpus_per_node())
    notes.emplace_back("tensor parallelism over nodes needs vLLM's multi-node executor");
  if (!s.alone()) notes.emplace_back("a router of your own sends each request to prefill, then to decode");
  return notes;
}

LaunchCommand vllm_server(const Server& s, const Plan& plan, const Architecture& model) {
  Flags flags;
  if (!s.alone()) flags.push_back("VLLM_NIXL_SIDE_CHANNEL_HOST=$NODE_IP");  // where the other side asks for KV cache
  if (s.prefill_overlaps() && s.prefill->comm_sms > 0) {
    flags.push_back(fmt::format("VLLM_DBO_COMM_SMS={}", std::min(s.prefill->comm_sms, kVllmMostSms)));
  }
  flags.push_back("vllm serve " + for_shell(served_model(plan, model)));
  add(flags, vllm_parallelism(s));
  add(flags, vllm_batches(s));
  add(flags, vllm_overlap(s));
  add(flags, vllm_options(s));
  flags.push_back("--gpu-memory-utilization " + share(1 - plan.memory_reserve));  // activations included
  return launch(s, flags, vllm_notes(s));
}

// TensorRT-LLM -------------------------------------------------------------------------------------------------------

// What trtllm-serve has no flag for, as YAML. Its parallelism counts all GPUs, like SGLang's; its sizes are a rank's
// with attention data parallelism, else the unit's, which is one attention group.
std::vector<std::string> trtllm_options(const Server& s) {
  std::vector<std::string> lines;
  if (s.groups() > 1) lines.emplace_back("enable_attention_dp: true");
  if (s.prefill != nullptr) lines.emplace_back("enable_chunked_prefill: true");
  if (s.decode != nullptr) {
    lines.push_back(
        fmt::format("cuda_graph_config: {{enable_padding: true, max_batch_size: {}}}", s.decode->batch_size));
  }
  if (s.mtp > 0)
    lines.push_back(fmt::format("speculative_config: {{decoding_type: MTP, num_nextn_predict_layers: {}}}", s.mtp));
  if (!s.alone()) lines.emplace_back("cache_transceiver_config: {backend: DEFAULT}");
  return lines;
}

std::vector<std::string> trtllm_notes(const Server& s) {
  std::vector<std::string> notes;
  if (s.groups() > 1 && s.unit.tp > 1) {
    notes.push_back(fmt::format("attention is parallel over data on each of {} GPUs; the plan has groups of {}",
                                s.gpus(), s.unit.tp));
  }
  if (s.overlaps()) notes.emplace_back("one batch at a time; the plan overlaps two");
  note_one_batch(s, notes);
  if (s.sends_by_deep_ep()) notes.emplace_back("how tokens reach experts is the program's choice; the plan has DeepEP");
  if (s.redundant_experts > 0) {
    notes.push_back(fmt::format(
        "redundant experts need moe_config.load_balancer with num_slots; the plan has {} copies", s.redundant_experts));
  }
  if (!s.alone()) notes.emplace_back("`trtllm-serve disaggregated` sends each request to prefill, then to decode");
  if (s.nodes > 1)
    notes.emplace_back("once for the unit, by mpirun or srun over its nodes, behind trtllm-llmapi-launch");
  return notes;
}

LaunchCommand trtllm_server(const Server& s, const Plan& plan, const Architecture& model) {
  const std::string file = fmt::format("{}.yaml", s.role);
  Flags flags;
  const std::vector<std::string> options = trtllm_options(s);
  flags.emplace_back("printf '%s\\n'");
  for (const std::string& option : options) flags.push_back("'" + option + "'");
  flags.push_back(fmt::format("> {} &&", file));
  add(flags, {"trtllm-serve " + for_shell(served_model(plan, model)), "--host 0.0.0.0", "--port 8000",
              fmt::format("--tp_size {}", s.gpus())});
  if (s.unit.ep > 1) flags.push_back(fmt::format("--ep_size {}", s.unit.ep));
  if (s.decode != nullptr) flags.push_back(fmt::format("--max_batch_size {}", s.decode->batch_size));
  flags.push_back(fmt::format("--max_num_tokens {}", s.tokens()));
  // Of what weights leave free; the rest is for activations, and the plan's reserve.
  const double free = s.memory.total() / (1 - plan.memory_reserve) - s.memory.weights;
  flags.push_back("--kv_cache_free_gpu_memory_fraction " + share(s.memory.kv_cache / free));
  flags.push_back("--extra_llm_api_options " + file);
  return launch(s, flags, trtllm_notes(s));
}

}  // namespace

std::vector<LaunchCommand> sglang_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                           int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const Server& s : servers(deployment, gpus_per_node)) commands.push_back(sglang_server(s, plan, model));
  if (!deployment.colocated) commands.push_back(sglang_router(deployment));
  return commands;
}

std::vector<LaunchCommand> vllm_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                         int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const Server& s : servers(deployment, gpus_per_node)) commands.push_back(vllm_server(s, plan, model));
  return commands;
}

std::vector<LaunchCommand> trtllm_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                           int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const Server& s : servers(deployment, gpus_per_node)) commands.push_back(trtllm_server(s, plan, model));
  return commands;
}

}  // namespace moeline
