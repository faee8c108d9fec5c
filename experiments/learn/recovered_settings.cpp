#include "experiments/learn/recovered_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "architecture/architecture.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "experiments/learn/annotated_load.hpp"
#include "experiments/learn/step_evidence.hpp"
#include "hardware/device_name.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 70;
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

// Profiles of GPUs with as many SMs and as much memory, which drivers that name no device still tell.
std::vector<std::string> machines_like(const Trace& trace) {
  constexpr double kRounding = 0.06;
  std::vector<std::string> like;
  for (const std::string& name : names_in("hwprofiles")) {
    const MachineFacts facts = load_profile(name).facts;
    const double gib = trace.memory_bytes / (1U << 30U);
    const bool same_memory = gib == 0 || std::abs(gib / facts.memory_gib - 1) < kRounding;
    if (trace.sms > 0 && facts.sms == trace.sms && same_memory) like.push_back(name);
  }
  return like;
}

void offer_hardware(const StepEvidence& evidence, const std::string& file, Settings& settings) {
  const Trace& trace = evidence.trace();
  if (settings.has("hardware")) return;
  if (const auto named = profile_named_by(trace.device)) {
    settings.offer({"hardware", *named, HowKnown::metadata, "its device is " + trace.device});
    return;
  }
  const std::vector<std::string> like = machines_like(trace);
  if (like.size() == 1) {
    settings.offer({"hardware", like.front(), HowKnown::metadata, fmt::format("its device has {} SMs", trace.sms)});
    return;
  }
  const std::string device = trace.device.empty()
                                 ? "names no device"
                                 : fmt::format("was taken on '{}', of which there is no profile", trace.device);
  throw SpecError(file, 0,
                  fmt::format("{}{}; --hardware names the machine", device,
                              like.empty() ? "" : fmt::format(" ({} have as many SMs)", fmt::join(like, ", "))));
}

bool has_as_many_layers(const std::string& name, std::size_t layers, bool mixture) {
  const Architecture model = load_architecture(name);
  return static_cast<std::size_t>(model.num_hidden_layers) == layers && (model.n_routed_experts > 0) == mixture;
}

void offer_model(const StepEvidence& evidence, const std::string& file, Settings& settings) {
  if (settings.has("model")) return;
  const std::size_t layers = evidence.layers();
  const bool mixture = evidence.has(KernelKind::experts);
  std::vector<std::string> like;
  for (const std::string& name : names_in("model/zoo")) {
    if (layers > 0 && has_as_many_layers(name, layers, mixture)) like.push_back(name);
  }
  const std::string seen = fmt::format("{} {} layers", layers, mixture ? "MoE" : "dense");
  if (like.size() == 1) {
    settings.offer({"model", like.front(), HowKnown::period, "the only one of ours with " + seen});
    return;
  }
  throw SpecError(
      file, 0,
      fmt::format("--model: nothing in it names the model, a name of `moeline list models` or the path of a "
                  "config.json{}",
                  layers == 0    ? ""
                  : like.empty() ? "; " + seen + " repeat in it"
                                 : fmt::format("; {} repeat in it: {}", seen, fmt::join(like, ", "))));
}

// Whose kernels and habits the step has; "" where nothing says so.
Setting stack_of(const StepEvidence& evidence, const std::optional<AnnotatedLoad>& load) {
  if (load && !load->server.empty()) return {"", load->server, HowKnown::annotation, shortened(load->annotation)};
  for (const auto& [word, stack] : {std::pair("sglang|sgl_kernel|sgl_hip", "sglang"), std::pair("vllm", "vllm"),
                                    std::pair("tensorrt_llm::.*allreduce|trtllm_", "trtllm")}) {
    const std::string kernel = evidence.kernel_named(word);
    if (!kernel.empty()) return {"", stack, HowKnown::name, shortened(kernel)};
  }
  return {};
}

// The stack's own kernels where the machine has them, else the nearest that serve.
void offer_kernels(const StepEvidence& evidence, const std::optional<AnnotatedLoad>& load, Settings& settings) {
  if (settings.has("kernels")) return;
  const HardwareProfile profile = load_profile(settings.find("hardware")->value);
  const bool was_learnt = std::any_of(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                                      [](const KernelSet& set) { return !set.learnt.empty(); });
  if (was_learnt) return;  // such a set is its machine's default
  const std::vector<std::string> names = profile.set_names();
  const auto has = [&](const std::string& stack) {
    return std::find(names.begin(), names.end(), profile.set_named(stack)) != names.end();
  };
  const Setting stack = stack_of(evidence, load);
  if (stack.value.empty()) return;
  if (has(stack.value) || stack.value == name_of(Stack::vllm)) {  // whose habits go over others' tables
    settings.offer({"kernels", stack.value, stack.how, stack.why});
  } else if (has("sglang")) {
    settings.offer({"kernels", "sglang", stack.how,
                    fmt::format("{}; of {} there are no kernels of {}", stack.why, profile.name, stack.value)});
  }
}

// Tokens of a step, from the FLOPs of its products: the number of rows that most of their time agrees on.
std::optional<int> rows_by_flops(const StepEvidence& evidence, const Architecture& model) {
  const double hidden = model.hidden_size;
  std::map<int, double> votes;
  const GpuEvent* seen = nullptr;
  for (const ObservedKernel& kernel : evidence.step().kernels) {
    const GpuEvent& event = evidence.trace().gpu_events[kernel.event];
    if (!kernel.kinds.has(KernelKind::product) || event.flops <= 0) continue;
    seen = &event;
    for (const double width :
         {hidden, 1.0 * model.intermediate_size, 2.0 * model.intermediate_size, 1.0 * model.vocab_size}) {
      if (width <= 0) continue;
      const double rows = event.flops / (2 * hidden * width);
      const double whole = std::round(rows);
      if (whole >= 1 && whole < 1e7 && std::abs(rows - whole) < 1e-6 * whole)
        votes[static_cast<int>(whole)] += to_us(kernel.added);
    }
  }
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (seen == nullptr || most == votes.end()) return std::nullopt;
  return most->first;
}

void offer_decode(const AnnotatedLoad& load, Settings& settings) {
  const std::string said = shortened(load.annotation);
  settings.offer({"workload.batch_size", std::to_string(*load.decoding), HowKnown::annotation, said});
  const int per_request = load.decode_tokens.value_or(*load.decoding) / *load.decoding;
  if (per_request > 1) {
    settings.offer({"workload.query_len", std::to_string(per_request), HowKnown::annotation, said});
  }
  if (load.decode_keys) {
    const int keys = std::max(1, static_cast<int>(std::lround(*load.decode_keys / *load.decoding)));
    settings.offer({"workload.kv_len", std::to_string(keys), HowKnown::annotation,
                    fmt::format("{:.0f} keys of {} requests", *load.decode_keys, *load.decoding)});
  } else {
    settings.offer(
        {"workload.kv_len", "1024", HowKnown::guessed, "tokens of a request in the cache: nothing says how many"});
  }
}

void offer_prompts(const AnnotatedLoad& load, Settings& settings) {
  const std::string said = shortened(load.annotation);
  const int tokens = load.prompt_tokens.value_or(2048), prompts = std::max(1, load.prompts.value_or(1));
  const HowKnown how = load.prompt_tokens ? HowKnown::annotation : HowKnown::guessed;
  settings.offer({"workload.tokens", std::to_string(tokens), how, said});
  const double keys = load.prompt_keys.value_or(tokens);
  const bool told = load.prompt_keys || prompts == 1;
  settings.offer({"workload.prompt_len", std::to_string(std::max(1, static_cast<int>(std::lround(keys / prompts)))),
                  told ? HowKnown::annotation : HowKnown::guessed,
                  told ? said : fmt::format("{} prompts, taken as equally long", prompts)});
}

void offer_load(const AnnotatedLoad& load, Settings& settings) {
  const bool decodes = load.decoding.value_or(0) > 0, prefills = load.prompts.value_or(0) > 0;
  const char* phase = decodes && prefills ? "mixed" : prefills ? "prefill" : "decode";
  settings.offer({"workload.phase", phase, HowKnown::annotation, shortened(load.annotation)});
  const Setting* known = settings.find("workload.phase");
  if (known != nullptr && known->value != phase) return;  // as given: these numbers are of another one
  if (decodes) offer_decode(load, settings);
  if (prefills) offer_prompts(load, settings);
}

// Without annotations: many rows are prompts, few are requests.
void offer_load_by_rows(const StepEvidence& evidence, const Architecture& model, Settings& settings) {
  constexpr int kMostDecoding = 512;
  const std::optional<int> rows = rows_by_flops(evidence, model);
  const HowKnown how = rows ? HowKnown::metadata : HowKnown::guessed;
  const std::string why = rows ? fmt::format("\"Input Dims\" of its products: {} rows", *rows) : "nothing says it";
  const bool prefill = rows.value_or(1) > kMostDecoding;
  settings.offer({"workload.phase", prefill ? "prefill" : "decode", HowKnown::guessed, why});
  if (settings.find("workload.phase")->value == "prefill") {
    const int tokens = rows.value_or(2048);
    settings.offer({"workload.tokens", std::to_string(tokens), how, why});
    settings.offer(
        {"workload.prompt_len", std::to_string(tokens), HowKnown::guessed, "one prompt: nothing says how many"});
  } else {
    settings.offer({"workload.batch_size", std::to_string(rows.value_or(16)), how, why});
    settings.offer(
        {"workload.kv_len", "1024", HowKnown::guessed, "tokens of a request in the cache: nothing says how many"});
  }
}

void offer_parallelism(const StepEvidence& evidence, const Architecture& model, Settings& settings) {
  const auto offer = [&](const char* key, std::uint32_t value, HowKnown how, const std::string& why) {
    settings.offer({key, std::to_string(value), how, why});
  };
  const std::uint32_t world = evidence.trace().world_size;
  if (evidence.has(KernelKind::dispatch)) {
    const std::uint32_t group = std::max(evidence.group_of(KernelKind::dispatch), world);
    offer("parallelism.ep", std::max(group, 1U), group > 0 ? HowKnown::metadata : HowKnown::guessed,
          "ranks of its all-to-all");
    return;
  }
  if (!evidence.has(KernelKind::collective)) {
    offer("parallelism.tp", 1, HowKnown::name, "no kernel of it meets another rank");
    if (model.n_routed_experts > 0) offer("parallelism.ep", 1, HowKnown::name, "no kernel of it meets another rank");
    return;
  }
  const std::uint32_t group = evidence.group_of(KernelKind::collective);
  const std::uint32_t ranks = group > 0 ? group : world;
  offer("parallelism.tp", std::max(ranks, 1U), ranks > 0 ? HowKnown::metadata : HowKnown::guessed,
        group > 0   ? "ranks of the group of its all-reduces"
        : world > 0 ? "ranks of the run"
                    : "it has all-reduces, and does not say of how many ranks");
  if (model.n_routed_experts > 0) {
    offer("parallelism.ep", 1, HowKnown::guessed, "experts cut as all else is; the other way is as many as tp");
  }
}

// Where names say another format than the checkpoint has.
void offer_precision(const StepEvidence& evidence, const Architecture& model, Settings& settings) {
  const std::initializer_list<KernelKind> caches = {KernelKind::attention, KernelKind::rotary};
  const std::string fp8 = evidence.kernel_named("QkvE4m3|KvE4m3|Fp8KVCacheDataType\\)[12]|fp8_kv|kv_fp8", caches);
  const std::string bf16 = evidence.kernel_named("QkvBfloat16|Fp8KVCacheDataType\\)0", caches);
  if (!fp8.empty() && model.kv_cache != Precision::fp8) {
    settings.offer({"precision.kv_cache", "fp8", HowKnown::name, shortened(fp8)});
  } else if (fp8.empty() && !bf16.empty() && model.kv_cache != Precision::bf16) {
    settings.offer({"precision.kv_cache", "bf16", HowKnown::name, shortened(bf16)});
  }
}

void offer_launch(const StepEvidence& evidence, Settings& settings) {
  const ObservedStep& step = evidence.step();
  const char* how = step.in_graphs ? "graph" : "stream";
  if (!step.knows_launches) return;  // the default of the phase
  settings.offer({"launch", how, HowKnown::metadata,
                  step.in_graphs ? "one call launches many of its kernels" : "each kernel has a launch of its own"});
}

}  // namespace

Settings recovered_settings(const Measured& measured, const ObservedStep& step, const GivenSettings& given,
                            const std::string& file) {
  const StepEvidence evidence(measured, step);
  Settings settings;
  const std::string& own = measured.trace.scenario;
  if (given.scenario.empty() && !own.empty()) {
    take_scenario(file, own, HowKnown::metadata, "the trace states its scenario", settings);
  }
  take_given(given, settings);
  if (!given.scenario.empty() || !own.empty()) return settings;
  offer_hardware(evidence, file, settings);
  offer_model(evidence, file, settings);
  const Architecture model = load_architecture(settings.find("model")->value);
  const std::optional<AnnotatedLoad> load = load_of_step(step.annotations);
  offer_kernels(evidence, load, settings);
  settings.offer({"schedule", "sequential", HowKnown::guessed, "one micro-batch"});
  offer_parallelism(evidence, model, settings);
  if (load) {
    offer_load(*load, settings);
  } else {
    offer_load_by_rows(evidence, model, settings);
  }
  offer_precision(evidence, model, settings);
  offer_launch(evidence, settings);
  return settings;
}

}  // namespace moeline
