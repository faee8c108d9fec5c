#include "experiments/plan/flags.hpp"

#include <fmt/format.h>

#include "experiments/plan/launched_server.hpp"

namespace moeline {
namespace {

// What trtllm-serve has no flag for, as YAML. Its parallelism counts all GPUs, like SGLang's; its sizes are a rank's
// with attention data parallelism, else the unit's, which is one attention group.
std::vector<std::string> trtllm_options(const LaunchedServer& s) {
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

std::vector<std::string> trtllm_notes(const LaunchedServer& s) {
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

LaunchCommand trtllm_server(const LaunchedServer& s, const Plan& plan, const Architecture& model) {
  const std::string file = fmt::format("{}.yaml", s.role);
  Flags flags;
  const std::vector<std::string> options = trtllm_options(s);
  flags.emplace_back("printf '%s\\n'");
  for (const std::string& option : options) flags.push_back("'" + option + "'");
  flags.push_back(fmt::format("> {} &&", file));
  add_flags(flags, {"trtllm-serve " + for_shell(served_model(plan, model)), "--host 0.0.0.0", "--port 8000",
                    fmt::format("--tp_size {}", s.gpus())});
  if (s.unit.ep > 1) flags.push_back(fmt::format("--ep_size {}", s.unit.ep));
  if (s.decode != nullptr) flags.push_back(fmt::format("--max_batch_size {}", s.decode->batch_size));
  flags.push_back(fmt::format("--max_num_tokens {}", s.tokens()));
  flags.push_back("--kv_cache_free_gpu_memory_fraction " + rounded_share(share_of_free(s.memory)));
  flags.push_back("--extra_llm_api_options " + file);
  return launch_command(s, flags, trtllm_notes(s));
}

}  // namespace

std::vector<LaunchCommand> trtllm_commands(const Deployment& deployment, const Plan& plan, const Architecture& model,
                                           int gpus_per_node) {
  std::vector<LaunchCommand> commands;
  for (const LaunchedServer& s : launched_servers(deployment, gpus_per_node))
    commands.push_back(trtllm_server(s, plan, model));
  return commands;
}

}  // namespace moeline
