#include "experiments/cli/output/plan_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/cli/output/training_plan_output.hpp"
#include "schedules/scenario/choices.hpp"

namespace moeline {
namespace {

template <class Choice>
Fields<Choice> unit_fields() {
  return Fields<Choice>()
      .add("hardware", "machine", &Choice::hardware)
      .add("tp", "GPUs of an attention group", [](auto& c) { return c.unit.tp; })
      .add("dp", "attention groups of a unit", [](auto& c) { return c.unit.dp; })
      .add("ep", "ranks that experts are spread over", [](auto& c) { return c.unit.ep; })
      .add("moe_tp", "ranks that split each expert", [](auto& c) { return only_if(c.unit.moe_tp > 1, c.unit.moe_tp); })
      .add("comm", "how tokens reach experts", [](auto& c) { return word_of(c.mode); },
           {.words = words_of<CommMode>()});
}

template <class Choice>
Fields<Choice> copies_fields() {
  return Fields<Choice>().add("redundant_experts", "copies of experts", &Choice::redundant_experts);
}

template <class Choice>
Fields<Choice> order_fields() {
  return Fields<Choice>()
      .add("schedule", "what runs when", &Choice::schedule, {.words = schedule_names()})
      .add("two_batch", "the schedule has two micro-batches", [](auto& c) { return is_two_batch(c.schedule); });
}

Fields<DecodeChoice> decode_step_fields() {
  return Fields<DecodeChoice>()
      .add("batch_size", "requests of an attention group", &DecodeChoice::batch_size)
      .all(std::identity(), order_fields<DecodeChoice>())
      .add("mtp", "tokens drafted per step", &DecodeChoice::mtp);
}

Fields<Memory> memory_fields() {
  return Fields<Memory>()
      .add("weights", "weights", [](auto& m) { return gib(m.weights); })
      .add("kv_cache", "KV caches", [](auto& m) { return gib(m.kv_cache); })
      .add("activations", "activations", [](auto& m) { return gib(m.activations); })
      .add("communication", "communication buffers", [](auto& m) { return gib(m.communication); })
      .add("total", "all of them", [](auto& m) { return gib(m.total()); });
}

template <class T>
Fields<T> hindered_fields() {
  return Fields<T>().add("bound_by", "what hinders it from being cheaper; memory: no more requests fit", &T::bound_by,
                         {.words = {"memory", "tpot", "ttft", "network", "compute"}});
}

Fields<Side> side_fields() {
  return Fields<Side>()
      .add("units", "units that the load takes", &Side::units)
      .add("spare_units", "more of them, for when one fails", &Side::spares)
      .add("gpus", "GPUs of all units", &Side::gpus)
      .add("step_ms", "ms of a step", &Side::step_ms, {.decimals = 4})
      .add("exposed_ms", "ms of it in which communication is exposed", &Side::exposed_ms, {.decimals = 4})
      .add("tokens_per_s_per_gpu", "of prefill new tokens, of decode tokens of answers", &Side::tokens_per_s_per_gpu,
           {.decimals = 2})
      .add("utilization", "share of time that units are busy, or of slots that are taken", &Side::utilization,
           {.decimals = 4})
      .all(std::identity(), hindered_fields<Side>())
      .all(&Side::known, known_fields())
      .object(
          "memory_gib", "GiB of the fullest GPU", [](auto& side) { return &side.memory.held; }, memory_fields());
}

Fields<Deployment> prefill_fields() {
  const auto step =
      Fields<PrefillChoice>()
          .add("tokens", "new tokens of a step", &PrefillChoice::tokens)
          .add("comm_sms", "SMs of the normal all-to-all", [](auto& c) { return only_if(c.comm_sms > 0, c.comm_sms); });
  return Fields<Deployment>()
      .all(&Deployment::prefill_choice, unit_fields<PrefillChoice>())
      .all(&Deployment::prefill_choice, copies_fields<PrefillChoice>())
      .all(&Deployment::prefill_choice, step)
      .all(&Deployment::prefill_choice, order_fields<PrefillChoice>())
      .all(&Deployment::prefill, side_fields());
}

Fields<Deployment> decode_fields() {
  return Fields<Deployment>()
      .all(&Deployment::decode_choice, unit_fields<DecodeChoice>())
      .all(&Deployment::decode_choice, copies_fields<DecodeChoice>())
      .all(&Deployment::decode_choice, decode_step_fields())
      .add("fits_requests", "requests of an attention group that memory holds",
           [](auto& d) { return d.decode.fits_requests; })
      .all(&Deployment::decode, side_fields());
}

std::optional<double> cost_of(const Deployment& d) { return only_if(d.usd_per_hour > 0, d.cost_per_million_tokens); }

std::string meaning_of_metric(const char* name) { return meaning_of(*metric_named(name)); }

Fields<NumberFormats> format_fields() {
  return Fields<NumberFormats>()
      .add("weights", "of all but routed experts", [](auto& f) { return name_of(f.weights); })
      .add("experts", "of routed experts", [](auto& f) { return only_if(f.has_experts, name_of(f.experts)); })
      .add("kv_cache", "of caches", [](auto& f) { return name_of(f.kv_cache); });
}

Fields<Deployment> deployment_fields() {
  return Fields<Deployment>()
      .add("gpus", "GPUs", &Deployment::gpus)
      .add("nodes", "whole nodes, which are rented", &Deployment::nodes)
      .object("formats", "what decode keeps numbers as", &Deployment::formats, format_fields())
      .add("colocated", "the same GPUs prefill and decode", &Deployment::colocated)
      .add("mixed_steps", "of a colocated one: prompts are computed in steps in which requests decode",
           [](auto& d) { return only_if(d.colocated, d.mixed); })
      .object("prefill", "units that prefill", std::identity(), prefill_fields())
      .object("decode", "units that decode", std::identity(), decode_fields())
      .add("tokens_per_s_per_gpu", "tokens of answers", &Deployment::tokens_per_s_per_gpu)
      .add("tokens_per_s_per_user", meaning_of_metric("tokens_per_s_per_user"), &Deployment::tokens_per_s_per_user)
      .add("tpot_ms", "time per output token, ms", &Deployment::tpot_ms, {.decimals = 4})
      .add("ttft_ms", "time to first token, ms, at the percentile", &Deployment::ttft_ms)
      .add("usd_per_hour", "US dollars of all GPUs of the nodes",
           [](auto& d) { return only_if(d.usd_per_hour > 0, d.usd_per_hour); }, {.decimals = 2})
      .add("cost_per_million_tokens", meaning_of_metric("cost_per_million_tokens"), cost_of, {.decimals = 4})
      .all(std::identity(), hindered_fields<Deployment>())
      .add("loses", "why it is behind the best", [](auto& d) { return if_any(d.loses); });
}

Fields<Limits> limit_fields() {
  return Fields<Limits>()
      .add("ttft_ms", "time to first token, ms", &Limits::ttft_ms)
      .add("tpot_ms", "time per output token, ms", &Limits::tpot_ms)
      .add("percentile", "of requests that both hold for", &Limits::percentile);
}

Fields<Demand> arriving_fields() {
  const auto cached =
      Fields<CachedTokens>()
          .add("cached_tokens_mean", "tokens in the cache of a request that decodes", &CachedTokens::mean)
          .add("cached_tokens_deviation", "their standard deviation", &CachedTokens::deviation);
  return Fields<Demand>()
      .add("requests_per_s", "requests per second", &Demand::requests_per_s)
      .add("input_tokens", "mean tokens of a prompt", [](auto& t) { return t.input.mean(); })
      .add("output_tokens", "mean tokens of an answer", [](auto& t) { return t.output.mean(); })
      .add("cache_hit_share", "share of prompts that is cached", &Demand::cache_hit_share, {.decimals = 4, .most = 1})
      .all([](auto& t) { return cached_tokens(t.input, t.output); }, cached);
}

Fields<TradeOff> trade_off_fields() {
  return Fields<TradeOff>()
      .add("tokens_per_s_per_user", meaning_of_metric("tokens_per_s_per_user"), &TradeOff::tokens_per_s_per_user)
      .add("tokens_per_s_per_gpu", "tokens of answers", &TradeOff::tokens_per_s_per_gpu)
      .all(&TradeOff::choice, unit_fields<DecodeChoice>())
      .all(&TradeOff::choice, decode_step_fields());
}

Fields<Confirmation> confirmed_fields() {
  return Fields<Confirmation>()
      .add("requests", "requests", &Confirmation::requests)
      .add("ttft_ms", "at the percentile", &Confirmation::ttft_ms)
      .add("tpot_ms", "at the percentile", &Confirmation::tpot_ms)
      .add("mean_ttft_ms", "mean", [](auto& c) { return c.measures.steady.ttft_ms.mean; })
      .add("mean_tpot_ms", "mean", [](auto& c) { return c.measures.steady.tpot_ms.mean; })
      .add("queue_ms", "in the queue, on average", [](auto& c) { return c.measures.where.queue; })
      .add("slot_ms", "until a replica that decodes has room for it, on average",
           [](auto& c) { return c.measures.where.slot; })
      .add("kv_transfer_ms", "from there on until its cache has moved, on average",
           [](auto& c) { return c.measures.where.transfer; })
      .add("mean_running", "requests that run", [](auto& c) { return c.measures.mean_running; })
      .add("mean_waiting", "requests that wait", [](auto& c) { return c.measures.mean_waiting; });
}

Fields<Promises> promises_fields() {
  return Fields<Promises>()
      .add("keeps_limits", "TTFT and TPOT are within the limits; if not, so was no deployment that was tried",
           &Promises::kept)
      .add("tried", "deployments that were served, this one too", [](auto& p) { return p.tried.size(); })
      .add("estimated_ttft_ms", "that the search found, at the percentile",
           [](auto& p) { return p.last().deployment.ttft_ms; })
      .add("estimated_tpot_ms", "the same of TPOT", [](auto& p) { return p.last().deployment.tpot_ms; })
      .all(
          [](auto& p) -> auto& { return p.last().confirmation; }, confirmed_fields());
}

Fields<Course> course_fields() {
  const auto part = Fields<CoursePart>()
                        .add("load", "over the rate of the plan", &CoursePart::load, {.decimals = 6})
                        .add("prefill_units", "units", &CoursePart::prefill_units)
                        .add("decode_units", "units", &CoursePart::decode_units)
                        .add("gpus", "GPUs", &CoursePart::gpus);
  return Fields<Course>()
      .add("mean_gpus", "GPUs on average", &Course::mean_gpus)
      .add("most_gpus", "GPUs at most", &Course::most_gpus)
      .list("parts", "parts of the day", &Course::parts, part);
}

// The best under another assumption.
struct Changed {
  const std::string& how;
  const Deployment& best;
};

Fields<Changed> changed_fields() {
  return Fields<Changed>()
      .add("change", "how it is changed", [](auto& c) { return c.how; })
      .add("gpus", "GPUs; absent where nothing is within the limits",
           [](auto& c) { return only_if(c.best.gpus > 0, c.best.gpus); })
      .add("cost_per_million_tokens", meaning_of_metric("cost_per_million_tokens"),
           [](auto& c) { return cost_of(c.best); }, {.decimals = 4});
}

Fields<Sensitivity> assumption_fields() {
  return Fields<Sensitivity>()
      .add("assumption", "which one", &Sensitivity::assumption)
      .object(
          "less", "the best with less",
          [](auto& s) {
            return Changed{s.less, s.with_less};
          },
          changed_fields())
      .object(
          "more", "the best with more",
          [](auto& s) {
            return Changed{s.more, s.with_more};
          },
          changed_fields());
}

Fields<LaunchCommand> command_fields() {
  return Fields<LaunchCommand>()
      .add("role", "what the units do", &LaunchCommand::role)
      .add("units", "units", &LaunchCommand::units)
      .add("nodes", "nodes of a unit", &LaunchCommand::nodes)
      .add("command", "command", &LaunchCommand::command)
      .add("notes", "what it does not say", &LaunchCommand::notes);
}

Fields<LaunchCommands> launch_fields() {
  return Fields<LaunchCommands>()
      .list("sglang", "SGLang", &LaunchCommands::sglang, command_fields())
      .list("vllm", "vLLM", &LaunchCommands::vllm, command_fields())
      .list("trtllm", "TensorRT-LLM", &LaunchCommands::trtllm, command_fields());
}

std::optional<LaunchCommands> commands_of_best(const PlanResult& r) {
  if (r.answer.deployments.empty()) return std::nullopt;
  return launch_commands(r.plan, r.answer.deployments.front());
}

Fields<PlanResult> plan_fields() {
  const auto impossible =
      Fields<Impossible>().add("what", "what", &Impossible::what).add("why", "why", &Impossible::why);
  return output_fields<PlanResult>()
      .add("plan", "file", [](auto& r) { return r.plan.file.string(); })
      .add("model", "model", [](auto& r) { return r.plan.model; })
      .object(
          "traffic", "what arrives", [](auto& r) { return r.plan.traffic; }, arriving_fields())
      .object(
          "limits", "what must hold", [](auto& r) { return r.plan.limits; }, limit_fields())
      .list(
          "deployments", "the cheapest first, then the best of each other way of running a side",
          [](auto& r) -> auto& { return r.answer.deployments; }, deployment_fields())
      .object(
          "nearest_limits", "where nothing is within the limits: the nearest that can be met",
          [](auto& r) { return r.answer.nearest ? r.answer.nearest_limits : std::nullopt; }, limit_fields())
      .object(
          "nearest", "the deployment that meets these", [](auto& r) -> auto& { return r.answer.nearest; },
          deployment_fields())
      .list(
          "pareto", "of decode: the best tokens/s of a user and of a GPU",
          [](auto& r) { return pareto_front(r.answer.trade_offs); }, trade_off_fields())
      .object(
          "confirmed", "the first deployment, served request by request (--confirm)",
          [](auto& r) { return r.promises ? &*r.promises : nullptr; }, promises_fields())
      .object(
          "course", "along the day", [](auto& r) -> auto& { return r.course; }, course_fields())
      .list(
          "sensitivity", "if an assumption is wrong",
          [](auto& r) { return r.sensitivities.empty() ? nullptr : &r.sensitivities; }, assumption_fields())
      .list(
          "impossible", "what was not possible", [](auto& r) -> auto& { return r.answer.impossible; }, impossible)
      .object("commands", "of the best, by stack", commands_of_best, launch_fields());
}

}  // namespace

std::string plan_json(const PlanResult& result) { return plan_fields().json(result); }

std::string plan_schema() {
  return output_schema(
      "plan", "`moeline plan PLAN --format json`: of a plan for serving, or for training",
      {{"A plan for serving", plan_fields().described()}, {"A plan for training", training_plan_described()}});
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
