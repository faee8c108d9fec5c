#include "experiments/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "architecture/architecture.hpp"
#include "experiments/plan/choices.hpp"
#include "experiments/plan/plan_keys.hpp"
#include "experiments/plan/points.hpp"

namespace moeline {

std::vector<TradeOff> pareto_front(std::vector<TradeOff> all) {
  std::stable_sort(all.begin(), all.end(), [](const TradeOff& a, const TradeOff& b) {
    return a.tokens_per_s_per_user != b.tokens_per_s_per_user ? a.tokens_per_s_per_user > b.tokens_per_s_per_user
                                                              : a.tokens_per_s_per_gpu > b.tokens_per_s_per_gpu;
  });
  std::vector<TradeOff> front;
  for (const TradeOff& point : all) {
    if (front.empty() || point.tokens_per_s_per_gpu > front.back().tokens_per_s_per_gpu) front.push_back(point);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

namespace {

constexpr int kMostGpus = 4096;  // of a unit
constexpr double kMostPerSecond = 1e12;
constexpr double kMostTokensPerSecond = 1e9;  // a million GPUs and more
constexpr double kMostSpread = 10;            // as of a scenario's kv_len_spread
const std::vector<std::string> kServing = {"disaggregated", "colocated"};

std::vector<bool> flags_or(const Spec& spec, const char* key, const std::vector<bool>& fallback) {
  if (!spec.has(key)) return fallback;
  std::vector<bool> values;
  for (const std::string& text : spec.texts(key)) {
    if (text != "true" && text != "false") throw spec.error(key, "must be a list of true and false");
    values.push_back(text == "true");
  }
  return each_once(spec, key, std::move(values));
}

std::vector<double> read_course(const Spec& spec) {
  constexpr double kLeast = 1e-3, kMost = 1e3;
  constexpr std::size_t kMostParts = 1440;
  if (!spec.has("course")) return {};
  std::vector<double> course = spec.numbers("course", kLeast, kMost);
  if (course.size() < 2 || course.size() > kMostParts) {
    throw spec.error("course",
                     fmt::format("has 2 to {} numbers, the load over the rate in equal parts of a day", kMostParts));
  }
  return course;
}

Demand read_traffic(const Spec& spec) {
  spec.expect(
      {"requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "input", "output", "cache_hit_share", "course"});
  Demand traffic{0, read_lengths(spec.map("input")), read_lengths(spec.map("output")), 0, read_course(spec)};
  int rates = 0;
  const auto rate = [&](const char* key, double tokens) {
    if (!spec.has(key)) return;
    if (++rates > 1) throw spec.error(key, "is a second rate: one of requests and tokens per second is enough");
    traffic.requests_per_s = spec.number(key, 1e-6, kMostPerSecond) / tokens;
  };
  rate("requests_per_s", 1);
  rate("input_tokens_per_s", traffic.input.mean());
  rate("output_tokens_per_s", traffic.output.mean());
  if (rates == 0) throw spec.error("requests_per_s", "or input_tokens_per_s or output_tokens_per_s is needed");
  if (traffic.requests_per_s * std::max(traffic.input.mean(), traffic.output.mean()) > kMostTokensPerSecond) {
    throw spec.error("requests_per_s", fmt::format("is more than {:g} tokens/s", kMostTokensPerSecond));
  }
  const CachedTokens cached = cached_tokens(traffic.input, traffic.output);
  if (cached.deviation > kMostSpread * cached.mean) {
    throw spec.error(
        "input",
        fmt::format("and output have lengths too far apart: {:.0f} +- {:.0f} tokens in the caches of requests that "
                    "decode; the deviation must be {:g} times the mean or less",
                    cached.mean, cached.deviation, kMostSpread));
  }
  if (spec.has("cache_hit_share")) traffic.cache_hit_share = spec.number("cache_hit_share", 0, 0.99);
  return traffic;
}

Limits read_limits(const Spec& spec) {
  spec.expect({"ttft_ms", "tpot_ms", "percentile", "tokens_per_s_per_user"});
  Limits limits;
  limits.ttft_ms = spec.number("ttft_ms", 1, 1e7);
  if (spec.has("tpot_ms") == spec.has("tokens_per_s_per_user")) {
    throw spec.error("tpot_ms", "or tokens_per_s_per_user is needed, and not both: they say the same");
  }
  limits.tpot_ms =
      spec.has("tpot_ms") ? spec.number("tpot_ms", 0.01, 1e6) : 1e3 / spec.number("tokens_per_s_per_user", 1e-3, 1e5);
  if (spec.has("percentile")) limits.percentile = spec.number("percentile", 50, 99.9);
  return limits;
}

PrefillSpace read_prefill(const Spec& spec) {
  spec.expect({"ep", "tp", "redundant_experts", "tokens", "comm_sms", "two_batch", "spare_units", "set"});
  PrefillSpace space;
  space.ep = integers_or_none(spec, "ep", 1, kMostGpus);
  space.tp = integers_or_none(spec, "tp", 1, kMostGpus);
  space.redundant_experts = integers_or_none(spec, "redundant_experts", 0, kMostGpus);
  space.tokens = integers_or_none(spec, "tokens", 2, 1 << 20);
  space.comm_sms = integers_or_none(spec, "comm_sms", 2, 1024);
  space.two_batch = flags_or(spec, "two_batch", space.two_batch);
  if (spec.has("spare_units")) space.spare_units = spec.integer("spare_units", 0, 100);
  space.set = texts_or_none(spec, "set");
  return space;
}

DecodeSpace read_decode(const Spec& spec, const Architecture& model) {
  spec.expect({"ep", "tp", "redundant_experts", "batch_size", "two_batch", "single_batch", "mtp", "mtp_acceptance",
               "spare_units", "set"});
  DecodeSpace space;
  space.ep = integers_or_none(spec, "ep", 1, kMostGpus);
  space.tp = integers_or_none(spec, "tp", 1, kMostGpus);
  space.redundant_experts = integers_or_none(spec, "redundant_experts", 0, kMostGpus);
  space.batch_size = integers_or_none(spec, "batch_size", 1, 1 << 16);
  space.two_batch = flags_or(spec, "two_batch", space.two_batch);
  space.single_batch = flags_or(spec, "single_batch", space.single_batch);
  if (spec.has("mtp")) space.mtp = integers_or_none(spec, "mtp", 0, 15);
  if (model.num_nextn_predict_layers == 0 && *std::max_element(space.mtp.begin(), space.mtp.end()) > 0) {
    throw spec.error("mtp", fmt::format("'{}' has no MTP module", model.name));
  }
  if (spec.has("mtp_acceptance")) space.mtp_acceptance = spec.number("mtp_acceptance", 0, 1);
  if (spec.has("spare_units")) space.spare_units = spec.integer("spare_units", 0, 100);
  space.set = texts_or_none(spec, "set");
  return space;
}

void check_sizes(const Spec& spec, const PrefillSpace& prefill, const DecodeSpace& decode) {
  check_combinations(spec, "prefill",
                     {prefill.ep.size(), prefill.tp.size(), prefill.redundant_experts.size(), prefill.tokens.size(),
                      prefill.comm_sms.size(), prefill.two_batch.size()});
  check_combinations(spec, "decode",
                     {decode.ep.size(), decode.tp.size(), decode.redundant_experts.size(), decode.batch_size.size(),
                      decode.two_batch.size(), decode.single_batch.size(), decode.mtp.size()});
}

void read_serving(const Spec& spec, Plan& plan) {
  if (!spec.has("serving")) return;
  plan.disaggregated = plan.colocated = false;
  for (const std::string& way : spec.texts("serving")) {
    const std::string known = at_key(spec, "serving", [&] { return expect_name("way of serving", way, kServing); });
    (known == "colocated" ? plan.colocated : plan.disaggregated) = true;
  }
  if (!plan.disaggregated && !plan.colocated) throw spec.error("serving", "has no values");
}

// What the plan itself writes into a scenario.
void check_keys(const Spec& side, const std::vector<std::string>& changes) {
  static const std::vector<std::string> decided = {"schema",
                                                   "model",
                                                   "hardware",
                                                   "kernels",
                                                   "schedule",
                                                   "ranks",
                                                   "parallelism",
                                                   "parallelism.ep",
                                                   "parallelism.dp",
                                                   "parallelism.tp",
                                                   "parallelism.moe_tp",
                                                   "workload",
                                                   "comm",
                                                   "comm.num_sms",
                                                   "workload.phase",
                                                   "workload.tokens",
                                                   "workload.prompt_len",
                                                   "workload.cached_len",
                                                   "workload.batch_size",
                                                   "workload.kv_len",
                                                   "workload.kv_len_spread",
                                                   "workload.query_len",
                                                   "workload.mtp_acceptance",
                                                   "routing.redundant_experts"};
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find('='));
    if (key.starts_with("hardware.") || std::find(decided.begin(), decided.end(), key) != decided.end()) {
      throw side.error("set", fmt::format("has '{}', which the plan itself decides", key));
    }
  }
}

// Of both sides, by the first of their choices that is a scenario without them, of so many.
void check_changes(const Spec& spec, const Plan& plan, const Architecture& model) {
  constexpr std::size_t kTried = 1000;  // of up to a million, each takes a millisecond
  check_keys(spec.map_or_empty("prefill"), plan.prefill.set);
  check_keys(spec.map_or_empty("decode"), plan.decode.set);
  KnownSteps known;
  for (const PlanHardware& machine : plan.hardware) {
    const HardwareProfile profile = load_profile(machine.name, machine.set, plan.file.string());
    const Points points(plan, machine, known);
    const auto check = [&](const char* side, const auto& choices) {
      for (std::size_t i = 0; i < std::min(choices.size(), kTried); ++i) {
        const std::optional<std::string> refusal = points.refused_changes(choices[i]);
        if (!refusal) continue;
        if (!refusal->empty()) throw spec.map(side).error("set", "is refused: " + *refusal);
        return;
      }
    };
    check("prefill", prefill_choices(plan, model, profile));
    check("decode", decode_choices(plan, model, profile));
  }
}

}  // namespace

const PlanHardware& machine_named(const Plan& plan, const std::string& name) {
  return *std::ranges::find(plan.hardware, name, &PlanHardware::name);
}

MachineFacts facts_of(const Plan& plan, const PlanHardware& machine) {
  return known_profile(machine.name, machine.set, plan.file.string())->facts;
}

Plan load_plan(const std::filesystem::path& file) {
  const Spec spec = Spec::load(file);
  spec.expect({"schema", "model", "hardware", "traffic", "limits", "memory", "serving", "prefill", "decode"});
  (void)spec.integer("schema", 1, 1);
  Plan plan{.file = file,
            .model = spec.text("model"),
            .hardware = {},
            .traffic = read_traffic(spec.map("traffic")),
            .limits = read_limits(spec.map("limits")),
            .prefill = {},
            .decode = {}};
  const Architecture model = at_key(spec, "model", [&] { return load_architecture(plan.model, file.string()); });
  plan.model = spelt_as(model.name, plan.model);
  plan.hardware = read_plan_hardware(spec, file);
  const Spec memory = spec.map_or_empty("memory");
  memory.expect({"fraction"});
  if (memory.has("fraction")) plan.memory_fraction = memory.number("fraction", 0.1, 1);
  read_serving(spec, plan);
  plan.prefill = read_prefill(spec.map_or_empty("prefill"));
  plan.decode = read_decode(spec.map_or_empty("decode"), model);
  check_sizes(spec, plan.prefill, plan.decode);
  check_changes(spec, plan, model);
  return plan;
}

}  // namespace moeline
