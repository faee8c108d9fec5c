#include "experiments/cli/output/plan_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/cli/output/plan_parts.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/plan/flags.hpp"
#include "experiments/report/json.hpp"
#include "hardware/profile.hpp"

namespace moeline {

// The answer as a person reads it.

namespace {

std::string joined(const std::vector<std::string>& lines, const char* indent = "") {
  std::string text;
  for (const std::string& line : lines) text += indent + line + "\n";
  return text;
}

std::string best_text(const Plan& plan, const Deployment& d) {
  return joined(answer_lines(plan, d)) + "\n" + sides_table(d).text("  ") + "\n" + memory_table(plan, d).text("  ") +
         "\n  " + known_line("prefill's kernels'", d.prefill.known) + "\n  " +
         known_line("decode's kernels'", d.decode.known) + "\n";
}

std::string others(const std::vector<Deployment>& deployments) {
  constexpr std::size_t kShown = 11;
  const std::size_t count = deployments.size() - 1;
  const std::string more = count > kShown ? fmt::format("  and {} more (--format csv)\n", count - kShown) : "";
  return others_table(deployments, kShown).text("  ") + more;
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

std::string flags_text(const Plan& plan, const Deployment& d) {
  std::string text;
  for (const ProgramCommands& each : launch_texts(plan, d)) text += "\n" + each.text;
  return text;
}

std::string impossible_text(const Answer& answer) {
  if (answer.impossible.empty()) return "";
  return "\nleft out before anything was simulated\n" + joined(impossible_lines(answer), "  ");
}

std::string nothing_text(const Plan& plan, const Answer& answer) {
  const std::string text = "\nno deployment is within the limits\n" + nearest_line(plan, answer) + "\n";
  return answer.nearest ? text + "\n" + best_text(plan, *answer.nearest) : text;
}

}  // namespace

namespace {

std::string confirmed_text(const PlanResult& result) {
  const Confirmation& c = *result.confirmed;
  const ServeMeasures& m = c.measures;
  const double percentile = result.plan.limits.percentile;
  TextTable table("lrrrr");
  table.row({"", "TTFT ms", "TPOT ms", "queue ms", "KV transfer ms"});
  const auto cell = [](double value) { return fmt::format("{:.1f}", value); };
  table.row({fmt::format("at {:g} %", percentile), cell(c.ttft_ms), cell(c.tpot_ms), "", ""});
  table.row(
      {"mean", cell(m.steady.ttft_ms.mean), cell(m.steady.tpot_ms.mean), cell(m.where.queue), cell(m.where.transfer)});
  return fmt::format("\nserved request by request: {} requests, {:.0f} in flight on average\n{}", c.requests,
                     m.mean_running + m.mean_waiting, table.text("  "));
}

std::string course_text(const Course& course) {
  TextTable table("rrrrr");
  table.row({"part of the day", "load", "prefill units", "decode units", "GPUs"});
  for (std::size_t i = 0; i < course.parts.size(); ++i) {
    const CoursePart& part = course.parts[i];
    const std::string gpus = part.gpus > 0 ? fmt::format("{}", part.gpus) : "not served";
    table.row({fmt::format("{}", i + 1), fmt::format("{:.2f}", part.load), fmt::format("{}", part.prefill_units),
               fmt::format("{}", part.decode_units), gpus});
  }
  return fmt::format("\nalong the day, of the same units as many as it takes: {:.1f} GPUs on average, {} at most\n{}",
                     course.mean_gpus, course.most_gpus, table.text("  "));
}

}  // namespace

std::string plan_table(const PlanResult& result) {
  const std::vector<Deployment>& deployments = result.answer.deployments;
  std::string text = joined(question_lines(result.plan));
  if (deployments.empty()) return text + nothing_text(result.plan, result.answer) + impossible_text(result.answer);
  text += "\n" + best_text(result.plan, deployments.front());
  if (result.confirmed) text += confirmed_text(result);
  if (result.course) text += course_text(*result.course);
  if (deployments.size() > 1) text += "\nthe others\n" + others(deployments);
  if (!result.answer.trade_offs.empty()) {
    text += "\nif TPOT were not limited: decode with the same prefill, of which nothing else is better in both\n" +
            front_table(result.answer);
  }
  if (!result.sensitivities.empty()) {
    text += "\nif an assumption is wrong\n" + sensitivity_table(result).text("  ");
  }
  return text + impossible_text(result.answer) + flags_text(result.plan, deployments.front());
}

namespace {

void add_memory(Json& json, const Side& side) {
  const Memory& m = side.memory;
  json.open("memory_gib").add("weights", gib(m.weights)).add("kv_cache", gib(m.kv_cache));
  json.add("activations", gib(m.activations)).add("communication", gib(m.communication)).add("total", gib(m.total()));
  json.close();
}

void add_side(Json& json, const Side& side) {
  json.add("units", side.units).add("gpus", side.gpus).add("step_ms", side.step_ms, 4);
  json.add("exposed_ms", side.exposed_ms, 4).add("tokens_per_s_per_gpu", side.tokens_per_s_per_gpu, 2);
  json.add("utilization", side.utilization, 4).add("bound_by", side.bound_by);
  add_known_shares(json, side.known);
  add_memory(json, side);
}

template <class Choice>
void add_unit(Json& json, const Choice& choice) {
  const Parallelism& unit = choice.unit;
  json.add("tp", unit.tp).add("dp", unit.dp).add("ep", unit.ep);
  if (unit.moe_tp > 1) json.add("moe_tp", unit.moe_tp);
  json.add("comm", word_of(choice.mode));
}

void add_prefill(Json& json, const Deployment& d) {
  const PrefillChoice& choice = d.prefill_choice;
  json.open("prefill").add("hardware", choice.hardware);
  add_unit(json, choice);
  json.add("redundant_experts", choice.redundant_experts).add("tokens", choice.tokens);
  if (choice.comm_sms > 0) json.add("comm_sms", choice.comm_sms);
  json.add("schedule", choice.schedule);
  json.flag("two_batch", is_two_batch(choice.schedule));
  add_side(json, d.prefill);
  json.close();
}

void add_decode(Json& json, const Deployment& d) {
  const DecodeChoice& choice = d.decode_choice;
  json.open("decode").add("hardware", choice.hardware);
  add_unit(json, choice);
  json.add("redundant_experts", choice.redundant_experts).add("batch_size", choice.batch_size);
  json.add("schedule", choice.schedule)
      .flag("two_batch", is_two_batch(choice.schedule))
      .add("mtp", choice.mtp)
      .add("fits_requests", d.decode.fits_requests);
  add_side(json, d.decode);
  json.close();
}

void add_numbers(Json& json, const Deployment& d) {
  json.add("gpus", d.gpus).flag("colocated", d.colocated);
  if (d.colocated) json.add("decode_steps_per_prefill_step", d.decode_steps).flag("mixed_steps", d.mixed);
  add_prefill(json, d);
  add_decode(json, d);
  json.add("tokens_per_s_per_gpu", d.tokens_per_s_per_gpu, 3).add("tokens_per_s_per_user", d.tokens_per_s_per_user, 3);
  json.add("tpot_ms", d.tpot_ms, 4).add("ttft_ms", d.ttft_ms);
  if (d.usd_per_hour > 0) {
    json.add("usd_per_hour", d.usd_per_hour, 2).add("cost_per_million_tokens", d.cost_per_million_tokens, 4);
  }
  json.add("bound_by", d.bound_by);
  if (!d.loses.empty()) json.add("loses", d.loses);
}

void add_limits(Json& json, const char* name, const Limits& limits) {
  json.open(name).add("ttft_ms", limits.ttft_ms).add("tpot_ms", limits.tpot_ms);
  json.add("percentile", limits.percentile).close();
}

void add_traffic(Json& json, const Demand& traffic) {
  const CachedTokens cached = cached_tokens(traffic.input, traffic.output);
  json.open("traffic").add("requests_per_s", traffic.requests_per_s).add("input_tokens", traffic.input.mean());
  json.add("output_tokens", traffic.output.mean()).add("cache_hit_share", traffic.cache_hit_share, 4);
  json.add("cached_tokens_mean", cached.mean).add("cached_tokens_deviation", cached.deviation).close();
}

void add_front(Json& json, const Answer& answer) {
  json.open_list("pareto");
  for (const TradeOff& point : pareto_front(answer.trade_offs)) {
    json.open().add("tokens_per_s_per_user", point.tokens_per_s_per_user);
    json.add("tokens_per_s_per_gpu", point.tokens_per_s_per_gpu).add("hardware", point.choice.hardware);
    add_unit(json, point.choice);
    json.add("batch_size", point.choice.batch_size);
    json.add("schedule", point.choice.schedule)
        .flag("two_batch", is_two_batch(point.choice.schedule))
        .add("mtp", point.choice.mtp)
        .close();
  }
  json.close_list();
}

void add_changed(Json& json, const char* name, const std::string& how, const Deployment& d) {
  json.open(name).add("change", how);
  if (d.gpus > 0) json.add("gpus", d.gpus);
  if (d.usd_per_hour > 0) json.add("cost_per_million_tokens", d.cost_per_million_tokens, 4);
  json.close();
}

void add_sensitivities(Json& json, const std::vector<Sensitivity>& sensitivities) {
  json.open_list("sensitivity");
  for (const Sensitivity& each : sensitivities) {
    json.open().add("assumption", each.assumption);
    add_changed(json, "less", each.less, each.with_less);
    add_changed(json, "more", each.more, each.with_more);
    json.close();
  }
  json.close_list();
}

void add_commands(Json& json, const char* name, const std::vector<LaunchCommand>& commands) {
  json.open_list(name);
  for (const LaunchCommand& each : commands) {
    json.open().add("role", each.role).add("units", each.units).add("nodes", each.nodes).add("command", each.command);
    json.add("notes", each.notes).close();
  }
  json.close_list();
}

}  // namespace

MachineFacts facts_of(const Plan& plan, const Deployment& deployment) {
  const std::string& name = deployment.decode_choice.hardware;
  const auto machine = std::find_if(plan.hardware.begin(), plan.hardware.end(),
                                    [&](const PlanHardware& each) { return each.name == name; });
  return facts_of(plan, *machine);
}

namespace {

void add_confirmed(Json& json, const Confirmation& confirmed) {
  const ServeMeasures& m = confirmed.measures;
  json.open("confirmed").add("requests", confirmed.requests);
  json.add("ttft_ms", confirmed.ttft_ms).add("tpot_ms", confirmed.tpot_ms);
  json.add("mean_ttft_ms", m.steady.ttft_ms.mean).add("mean_tpot_ms", m.steady.tpot_ms.mean);
  json.add("queue_ms", m.where.queue).add("kv_transfer_ms", m.where.transfer);
  json.add("mean_running", m.mean_running).add("mean_waiting", m.mean_waiting).close();
}

void add_course(Json& json, const Course& course) {
  json.open("course").add("mean_gpus", course.mean_gpus).add("most_gpus", course.most_gpus).open_list("parts");
  for (const CoursePart& part : course.parts) {
    json.open().add("load", part.load, 6).add("prefill_units", part.prefill_units);
    json.add("decode_units", part.decode_units).add("gpus", part.gpus).close();
  }
  json.close_list().close();
}

}  // namespace

std::string plan_json(const PlanResult& result) {
  const Plan& plan = result.plan;
  const Answer& answer = result.answer;
  Json json;
  json.open().add("schema_version", 1).add("plan", plan.file.string()).add("model", plan.model);
  add_traffic(json, plan.traffic);
  add_limits(json, "limits", plan.limits);
  json.open_list("deployments");
  for (const Deployment& d : answer.deployments) {
    json.open();
    add_numbers(json, d);
    json.close();
  }
  json.close_list();
  if (answer.nearest) {
    add_limits(json, "nearest_limits", *answer.nearest_limits);
    json.open("nearest");
    add_numbers(json, *answer.nearest);
    json.close();
  }
  add_front(json, answer);
  if (result.confirmed) add_confirmed(json, *result.confirmed);
  if (result.course) add_course(json, *result.course);
  if (!result.sensitivities.empty()) add_sensitivities(json, result.sensitivities);
  json.open_list("impossible");
  for (const Impossible& each : answer.impossible) json.open().add("what", each.what).add("why", each.why).close();
  json.close_list();
  if (!answer.deployments.empty()) {
    const Deployment& best = answer.deployments.front();
    const Architecture model = load_architecture(plan.model, plan.file.string());
    const auto gpus = static_cast<int>(facts_of(plan, best).gpus_per_node);
    json.open("commands");
    add_commands(json, "sglang", sglang_commands(best, plan, model, gpus));
    add_commands(json, "vllm", vllm_commands(best, plan, model, gpus));
    add_commands(json, "trtllm", trtllm_commands(best, plan, model, gpus));
    json.close();
  }
  return json.close().text();
}

std::string plan_csv(const PlanResult& result) {
  std::string text =
      "gpus,colocated,hardware,prefill_gpus,prefill_ep,prefill_tokens,prefill_comm_sms,prefill_two_batch,"
      "decode_gpus,decode_ep,decode_batch_size,decode_two_batch,decode_mtp,"
      "tokens_per_s_per_gpu,tokens_per_s_per_user,tpot_ms,ttft_ms,cost_per_million_tokens,bound_by,prefill_schedule,"
      "decode_schedule,prefill_tp,prefill_moe_tp,decode_tp,decode_moe_tp\n";
  for (const Deployment& d : result.answer.deployments) {
    const PrefillChoice& p = d.prefill_choice;
    const DecodeChoice& c = d.decode_choice;
    text += fmt::format(
        "{},{:d},{},{},{},{},{},{:d},{},{},{},{:d},{},{:.6g},{:.6g},{:.6g},{:.6g},{},{},{},{},{},{},{},{}\n", d.gpus,
        d.colocated, c.hardware, d.prefill.gpus, p.unit.ep, p.tokens, p.comm_sms, is_two_batch(p.schedule),
        d.decode.gpus, c.unit.ep, c.batch_size, is_two_batch(c.schedule), c.mtp, d.tokens_per_s_per_gpu,
        d.tokens_per_s_per_user, d.tpot_ms, d.ttft_ms,
        d.usd_per_hour > 0 ? fmt::format("{:.6g}", d.cost_per_million_tokens) : "", d.bound_by, p.schedule, c.schedule,
        p.unit.tp, p.unit.moe_tp, c.unit.tp, c.unit.moe_tp);
  }
  return text;
}

}  // namespace moeline
