#include "experiments/cli/output/plan_output.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {
namespace {

std::string usd(const Deployment& d) {
  return d.usd_per_hour > 0 ? fmt::format("{:.2f}", d.cost_per_million_tokens) : "";
}

std::string hardware_of(const Deployment& d) { return d.decode_choice.hardware; }

// "compute 90 %": of a full step.
std::string bound_of(const Side& side) {
  const double exposed = side.exposed_ms / side.step_ms;
  if (side.bound_by == "compute") return fmt::format("compute {:.0f} %", 100 * (1 - exposed));
  return side.bound_by == "network" ? fmt::format("network {:.0f} %", 100 * exposed) : side.bound_by;
}

void add_side(TextTable& table, const char* name, const std::string& how, const Side& side) {
  const std::string units =
      side.spares > 0 ? fmt::format("({} + {})", side.units, side.spares) : std::to_string(side.units);
  table.row({name, std::to_string(side.gpus), units + " x " + how, fmt::format("{:.2f}", side.step_ms),
             fmt::format("{:.2f}", side.exposed_ms), fmt::format("{:.0f}", side.tokens_per_s_per_gpu),
             percent(side.utilization), bound_of(side)});
}

void add_memory(TextTable& table, const char* name, const Side& side) {
  const Memory& m = side.memory.held;
  table.row({name, fmt::format("{:.1f}", gib(m.weights)), fmt::format("{:.1f}", gib(m.activations)),
             fmt::format("{:.1f}", gib(m.communication)), fmt::format("{:.1f}", gib(m.kv_cache)),
             fmt::format("{:.1f}", gib(side.memory.room)), fmt::format("{:.0f}", gib(side.memory.capacity)),
             side.fits_requests > 0 ? std::to_string(side.fits_requests) : ""});
}

std::string change(const Deployment& best, const Deployment& other) {
  if (other.gpus == 0) return "nothing is within the limits";
  const bool priced = best.usd_per_hour > 0;
  const double now = priced ? other.usd_per_hour / best.usd_per_hour : 1.0 * other.gpus / best.gpus;
  return fmt::format("{} GPUs {}", other.gpus, signed_percent(now - 1));
}

std::string commands_text(const char* program, const std::vector<LaunchCommand>& commands) {
  std::string text;
  for (const LaunchCommand& command : commands) {
    text += fmt::format("# {}, {}: {} units of {} nodes\n", program, command.role, command.units, command.nodes);
    for (const std::string& note : command.notes) text += "# " + note + "\n";
    text += command.command + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> question_lines(const Plan& plan) {
  const Demand& traffic = plan.traffic;
  const CachedTokens cached = cached_tokens(traffic.input, traffic.output);
  return {fmt::format("{}: {:.4g} requests/s, {:.0f} tokens of input ({:.0f} % cached) and {:.0f} of output on average",
                      plan.model, traffic.requests_per_s, traffic.input.mean(), 100 * traffic.cache_hit_share,
                      traffic.output.mean()),
          fmt::format("to prefill: {:.4g} tokens/s; to produce: {:.4g} tokens/s; cache of a request that decodes: "
                      "{:.0f} +- {:.0f} tokens",
                      traffic.new_tokens_per_s(), traffic.output_tokens_per_s(), cached.mean, cached.deviation),
          fmt::format("at {:.4g} % of requests: TTFT {:.0f} ms or less, TPOT {:.4g} ms or less", plan.limits.percentile,
                      plan.limits.ttft_ms, plan.limits.tpot_ms)};
}

std::string nodes_of(const Deployment& d) {
  return fmt::format("{} node{} of {}", d.nodes, d.nodes == 1 ? "" : "s", d.gpus_per_node);
}

std::string formats_of(const NumberFormats& f) {
  const std::string weights = name_of(f.weights), experts = name_of(f.experts);
  const std::string first = !f.has_experts       ? weights + " weights"
                            : weights == experts ? weights + " weights and experts"
                                                 : weights + " weights, " + experts + " experts";
  return first + ", " + name_of(f.kv_cache) + " KV cache";
}

std::vector<std::string> answer_lines(const Deployment& d) {
  const std::string ratio =
      d.colocated ? (d.mixed ? ", prompts in steps that decode as well" : ", prompts in steps of their own")
                  : fmt::format(", prefill : decode = 1 : {:.2f}", 1.0 * d.decode.gpus / d.prefill.gpus);
  const std::string cost = d.usd_per_hour > 0 ? fmt::format("; {:.2f} USD/h, {:.3f} USD per million tokens",
                                                            d.usd_per_hour, d.cost_per_million_tokens)
                                              : "";
  return {
      fmt::format("{} GPUs {} ({}), {}: prefill and decode {}{}", d.gpus, hardware_of(d), nodes_of(d),
                  formats_of(d.formats), d.colocated ? "on the same" : "apart", ratio),
      fmt::format("TTFT {:.0f} ms, TPOT {:.2f} ms: {:.1f} tokens/s for each user, {:.1f} from each GPU{}; bound by {}",
                  d.ttft_ms, d.tpot_ms, d.tokens_per_s_per_user, d.tokens_per_s_per_gpu, cost, d.bound_by)};
}

std::string served_line(const PlanResult& result) {
  const Promises& promises = *result.promises;
  const Confirmation& c = promises.last().confirmation;
  const std::string others =
      promises.tried.size() == 1 ? "" : fmt::format(", as {} before it did not", promises.tried.size() - 1);
  const std::string kept = promises.kept
                               ? "it keeps the limits" + others
                               : fmt::format("it breaks a limit, as did {} others: with more GPUs, or other limits",
                                             promises.tried.size() - 1);
  return fmt::format("served request by request, {}: {} requests, {:.0f} in flight on average", kept, c.requests,
                     c.measures.mean_running + c.measures.mean_waiting);
}

TextTable served_table(const PlanResult& result) {
  const Served& last = result.promises->last();
  const ServeMeasures& m = last.confirmation.measures;
  TextTable table("lrrrrr");
  table.row({"", "TTFT ms", "TPOT ms", "queue ms", "wait to decode ms", "KV transfer ms"});
  const auto cell = [](double value) { return fmt::format("{:.1f}", value); };
  const std::string at = fmt::format("at {:g} %", result.plan.limits.percentile);
  table.row({at, cell(last.confirmation.ttft_ms), cell(last.confirmation.tpot_ms), "", "", ""});
  table.row({"mean", cell(m.steady.ttft_ms.mean), cell(m.steady.tpot_ms.mean), cell(m.where.queue), cell(m.where.slot),
             cell(m.where.transfer)});
  table.row({"estimated " + at, cell(last.deployment.ttft_ms), cell(last.deployment.tpot_ms), "", "", ""});
  return table;
}

TextTable sides_table(const Deployment& d) {
  TextTable sides("lrlrrrrl");
  sides.row({"", "GPUs", "units", "step ms", "exposed ms", "tokens/s/GPU", "busy", "bound by"});
  add_side(sides, "prefill", describe(d.prefill_choice), d.prefill);
  add_side(sides, "decode", describe(d.decode_choice), d.decode);
  return sides;
}

TextTable memory_table(const Deployment& d) {
  TextTable memory("lrrrrrrr");
  memory.row(
      {"GiB per GPU", "weights", "activations", "buffers", "KV cache", "it may have", "of", "requests that fit"});
  if (d.colocated) {
    add_memory(memory, "both", d.decode);
  } else {
    add_memory(memory, "prefill", d.prefill);
    add_memory(memory, "decode", d.decode);
  }
  return memory;
}

TextTable others_table(const std::vector<Deployment>& deployments, std::size_t most) {
  TextTable table("rlllrrrl");
  table.row({"GPUs", "machine", "prefill", "decode", "TTFT ms", "TPOT ms", "USD/M", "why not"});
  for (std::size_t i = 1; i < deployments.size() && i <= most; ++i) {
    const Deployment& d = deployments[i];
    table.row({std::to_string(d.gpus), hardware_of(d), (d.colocated ? "both: " : "") + describe(d.prefill_choice),
               describe(d.decode_choice), fmt::format("{:.0f}", d.ttft_ms), fmt::format("{:.1f}", d.tpot_ms), usd(d),
               d.loses});
  }
  return table;
}

TextTable sensitivity_table(const PlanResult& result) {
  TextTable table("lrlrl");
  table.row({"", "less", "then", "more", "then"});
  for (const Sensitivity& each : result.sensitivities) {
    const Deployment& best = result.answer.deployments.front();
    table.row({each.assumption, each.less, change(best, each.with_less), each.more, change(best, each.with_more)});
  }
  return table;
}

std::vector<std::string> impossible_lines(const Answer& answer) {
  std::vector<std::string> lines;
  for (const Impossible& each : answer.impossible) lines.push_back(fmt::format("{}: {}", each.what, each.why));
  return lines;
}

std::string nearest_line(const Plan& plan, const Answer& answer) {
  if (!answer.nearest) return "and none would be with others";
  const Limits& limits = *answer.nearest_limits;
  return fmt::format("the nearest: TTFT {:.0f} ms instead of {:.0f}, TPOT {:.3g} ms instead of {:.3g}", limits.ttft_ms,
                     plan.limits.ttft_ms, limits.tpot_ms, plan.limits.tpot_ms);
}

LaunchCommands launch_commands(const Plan& plan, const Deployment& d) {
  const Architecture model = load_architecture(plan.model, plan.file.string());
  const int gpus = d.gpus_per_node;
  return {sglang_commands(d, plan, model, gpus), vllm_commands(d, plan, model, gpus),
          trtllm_commands(d, plan, model, gpus)};
}

std::vector<ProgramCommands> launch_texts(const Plan& plan, const Deployment& d) {
  const LaunchCommands commands = launch_commands(plan, d);
  return {{"SGLang", commands_text("SGLang", commands.sglang)},
          {"vLLM", commands_text("vLLM", commands.vllm)},
          {"TensorRT-LLM", commands_text("TensorRT-LLM", commands.trtllm)}};
}

}  // namespace moeline
