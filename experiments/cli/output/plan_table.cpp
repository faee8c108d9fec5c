#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/plan/flags.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

std::string usd(const Deployment& d) {
  return d.usd_per_hour > 0 ? fmt::format("{:.2f}", d.cost_per_million_tokens) : "";
}

std::string hardware_of(const Deployment& d) { return d.decode_choice.hardware; }

std::string question(const Plan& plan) {
  const Demand& traffic = plan.traffic;
  const CachedTokens cached = cached_tokens(traffic.input, traffic.output);
  return fmt::format(
      "{}: {:.4g} requests/s, {:.0f} tokens of input ({:.0f} % cached) and {:.0f} of output on average\n"
      "to prefill: {:.4g} tokens/s; to produce: {:.4g} tokens/s; cache of a request that decodes: {:.0f} +- {:.0f} "
      "tokens\n"
      "at {:.4g} % of requests: TTFT {:.0f} ms or less, TPOT {:.4g} ms or less\n",
      plan.model, traffic.requests_per_s, traffic.input.mean(), 100 * traffic.cache_hit_share, traffic.output.mean(),
      traffic.new_tokens_per_s(), traffic.output_tokens_per_s(), cached.mean, cached.deviation, plan.limits.percentile,
      plan.limits.ttft_ms, plan.limits.tpot_ms);
}

void add_side(TextTable& table, const char* name, const std::string& how, const Side& side) {
  table.row({name, std::to_string(side.gpus), fmt::format("{} x {}", side.units, how),
             fmt::format("{:.2f}", side.step_ms), fmt::format("{:.2f}", side.exposed_ms),
             fmt::format("{:.0f}", side.tokens_per_s_per_gpu), percent(side.utilization), side.bound_by});
}

void add_memory(TextTable& table, const char* name, const Side& side, const Plan& plan, double memory_gib) {
  const Memory& m = side.memory;
  table.row({name, fmt::format("{:.1f}", gib(m.weights)), fmt::format("{:.1f}", gib(m.kv_cache)),
             fmt::format("{:.1f}", gib(m.activations)), fmt::format("{:.1f}", gib(m.communication)),
             fmt::format("{:.1f}", memory_gib * plan.memory_reserve),
             fmt::format("{:.1f}", gib(m.total()) + memory_gib * plan.memory_reserve),
             fmt::format("{:.0f}", memory_gib), side.fits_requests > 0 ? std::to_string(side.fits_requests) : ""});
}

std::string best_text(const Plan& plan, const Deployment& d) {
  const MachineFacts facts = facts_of(plan, d);
  const std::string ratio = d.colocated
                                ? fmt::format(", {} steps of decode after a full one of prefill", d.decode_steps)
                                : fmt::format(", prefill : decode = 1 : {:.2f}", 1.0 * d.decode.gpus / d.prefill.gpus);
  std::string text = fmt::format("{} GPUs {} ({:.4g} nodes of {:.0f}), {}{}\n", d.gpus, hardware_of(d),
                                 d.gpus / facts.gpus_per_node, facts.gpus_per_node,
                                 d.colocated ? "prefill and decode on the same" : "prefill and decode apart", ratio);
  text += fmt::format("TTFT {:.0f} ms, TPOT {:.2f} ms: {:.1f} tokens/s for each user, {:.1f} from each GPU", d.ttft_ms,
                      d.tpot_ms, d.tokens_per_s_per_user, d.tokens_per_s_per_gpu);
  if (d.usd_per_hour > 0) {
    text += fmt::format("; {:.2f} USD/h, {:.3f} USD per million tokens", d.usd_per_hour, d.cost_per_million_tokens);
  }
  text += fmt::format("; bound by {}\n\n", d.bound_by);
  TextTable sides("lrlrrrrl");
  sides.row({"", "GPUs", "units", "step ms", "exposed ms", "tokens/s/GPU", "busy", "bound by"});
  add_side(sides, "prefill", describe(d.prefill_choice), d.prefill);
  add_side(sides, "decode", describe(d.decode_choice), d.decode);
  text += sides.text("  ");
  TextTable memory("lrrrrrrrr");
  memory.row({"GiB per GPU", "weights", "KV cache", "activations", "buffers", "reserve", "together", "of",
              "requests that fit"});
  if (d.colocated) {
    add_memory(memory, "both", d.decode, plan, facts.memory_gib);
  } else {
    add_memory(memory, "prefill", d.prefill, plan, facts.memory_gib);
    add_memory(memory, "decode", d.decode, plan, facts.memory_gib);
  }
  return text + "\n" + memory.text("  ");
}

std::string others(const std::vector<Deployment>& deployments) {
  constexpr std::size_t kShown = 12;
  TextTable table("rlllrrrl");
  table.row({"GPUs", "machine", "prefill", "decode", "TTFT ms", "TPOT ms", "USD/M", "why not"});
  for (std::size_t i = 1; i < std::min(deployments.size(), kShown); ++i) {
    const Deployment& d = deployments[i];
    table.row({std::to_string(d.gpus), hardware_of(d), (d.colocated ? "both: " : "") + describe(d.prefill_choice),
               describe(d.decode_choice), fmt::format("{:.0f}", d.ttft_ms), fmt::format("{:.1f}", d.tpot_ms), usd(d),
               d.loses});
  }
  const std::size_t left = deployments.size() > kShown ? deployments.size() - kShown : 0;
  return table.text("  ") + (left > 0 ? fmt::format("  and {} more (--format csv)\n", left) : "");
}

std::string front_table(const Answer& answer) {
  constexpr std::size_t kShown = 16;
  const std::vector<TradeOff> front = pareto_front(answer.trade_offs);
  const std::size_t every = (front.size() + kShown - 1) / kShown;
  TextTable table("rrrll");
  table.row({"tokens/s/user", "TPOT ms", "tokens/s/GPU", "machine", "decode"});
  for (std::size_t i = 0; i < front.size(); i += every) {
    const TradeOff& point = front[i];
    table.row({fmt::format("{:.1f}", point.tokens_per_s_per_user),
               fmt::format("{:.1f}", 1e3 / point.tokens_per_s_per_user),
               fmt::format("{:.1f}", point.tokens_per_s_per_gpu), point.choice.hardware, describe(point.choice)});
  }
  const std::string some = every > 1 ? fmt::format("  one of {} of {} points\n", every, front.size()) : "";
  return table.text("  ") + some;
}

std::string change(const Deployment& best, const Deployment& other) {
  if (other.gpus == 0) return "nothing is within the limits";
  const bool priced = best.usd_per_hour > 0;
  const double now = priced ? other.usd_per_hour / best.usd_per_hour : 1.0 * other.gpus / best.gpus;
  return fmt::format("{} GPUs {}", other.gpus, signed_percent(now - 1));
}

std::string sensitivity_table(const PlanResult& result) {
  TextTable table("lrlrl");
  for (const Sensitivity& each : result.sensitivities) {
    const Deployment& best = result.answer.deployments.front();
    table.row({each.assumption, each.less, change(best, each.with_less), each.more, change(best, each.with_more)});
  }
  return table.text("  ");
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

std::string flags_text(const Plan& plan, const Deployment& d) {
  const Architecture model = load_architecture(plan.model, plan.file.string());
  const auto gpus = static_cast<int>(facts_of(plan, d).gpus_per_node);
  return commands_text("SGLang", sglang_commands(d, plan, model, gpus)) + "\n" +
         commands_text("vLLM", vllm_commands(d, plan, model, gpus));
}

std::string impossible_text(const Answer& answer) {
  std::string text;
  for (const Impossible& each : answer.impossible) text += fmt::format("  {}: {}\n", each.what, each.why);
  return text.empty() ? "" : "\nleft out before anything was simulated\n" + text;
}

std::string nothing_text(const Plan& plan, const Answer& answer) {
  std::string text = "\nno deployment is within the limits\n";
  if (!answer.nearest) return text + "and none would be with others\n";
  const Limits& limits = *answer.nearest_limits;
  text += fmt::format("the nearest: TTFT {:.0f} ms instead of {:.0f}, TPOT {:.3g} ms instead of {:.3g}\n\n",
                      limits.ttft_ms, plan.limits.ttft_ms, limits.tpot_ms, plan.limits.tpot_ms);
  return text + best_text(plan, *answer.nearest);
}

}  // namespace

std::string plan_table(const PlanResult& result) {
  const std::vector<Deployment>& deployments = result.answer.deployments;
  std::string text = question(result.plan);
  if (deployments.empty()) return text + nothing_text(result.plan, result.answer) + impossible_text(result.answer);
  text += "\n" + best_text(result.plan, deployments.front());
  if (deployments.size() > 1) text += "\nthe others\n" + others(deployments);
  if (!result.answer.trade_offs.empty()) {
    text += "\nif TPOT were not limited: decode with the same prefill, of which nothing else is better in both\n" +
            front_table(result.answer);
  }
  if (!result.sensitivities.empty()) text += "\nif an assumption is wrong\n" + sensitivity_table(result);
  return text + impossible_text(result.answer) + "\n" + flags_text(result.plan, deployments.front());
}

}  // namespace moeline
