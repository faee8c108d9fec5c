#include "experiments/learn/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "architecture/architecture.hpp"
#include "base/file.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "experiments/learn/annotated_load.hpp"
#include "hardware/device_name.hpp"
#include "hardware/profile.hpp"
#include "trace/kernel_names.hpp"
#include "trace/name_regex.hpp"
#include "trace/step_windows.hpp"

namespace moeline {
namespace {

// In the order in which a scenario is written; others stand behind these.
constexpr std::array kOrder = {"model",       "hardware", "hardware_overrides", "kernels", "schedule",
                               "parallelism", "workload", "precision",          "comm",    "moe_backend",
                               "routing",     "launch"};

std::size_t place_of(const std::string& key) {
  const std::string top = key.substr(0, key.find('.'));
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), top) - kOrder.begin());
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 70;
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

// What the step's kernels say, by their names and by whom they met.
class StepEvidence {
 public:
  StepEvidence(const Measured& measured, const ObservedStep& step) : measured_(measured), step_(step) {}

  [[nodiscard]] const Trace& trace() const { return measured_.trace; }
  [[nodiscard]] const ObservedStep& step() const { return step_; }

  /// The first kernel of one of these kinds whose name has the pattern in it; empty: none.
  [[nodiscard]] std::string kernel_named(const char* pattern, std::initializer_list<KernelKind> kinds = {}) const {
    const NameRegex regex(pattern);
    for (const ObservedKernel& kernel : step_.kernels) {
      const bool is_of = kinds.size() == 0 || std::any_of(kinds.begin(), kinds.end(),
                                                          [&](KernelKind kind) { return kernel.kinds.has(kind); });
      const std::string& name = trace().name(trace().gpu_events[kernel.event]);
      if (is_of && regex.found_in(name)) return name;
    }
    return "";
  }
  [[nodiscard]] bool has(KernelKind kind) const {
    return std::any_of(step_.kernels.begin(), step_.kernels.end(),
                       [&](const ObservedKernel& kernel) { return kernel.kinds.has(kind); });
  }
  /// Ranks of the group that most of the kernels of a kind meet in; 0: the trace does not say.
  [[nodiscard]] std::uint32_t group_of(KernelKind kind) const {
    std::map<std::uint32_t, int> sizes;
    for (const ObservedKernel& kernel : step_.kernels) {
      const std::int32_t collective = trace().gpu_events[kernel.event].collective;
      if (!kernel.kinds.has(kind) || collective < 0) continue;
      const std::int32_t group = trace().collectives[static_cast<std::size_t>(collective)].group;
      if (group >= 0) ++sizes[trace().groups[static_cast<std::size_t>(group)].size];
    }
    const auto most =
        std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == sizes.end() ? 0 : most->first;
  }
  /// How often the step's layers repeat; 0: they do not.
  [[nodiscard]] std::size_t layers() const {
    std::size_t most = 0;
    for (const StepWindow& window : step_windows(trace(), measured_.meaning))
      most = std::max(most, window.layers.size());
    return most;
  }

 private:
  const Measured& measured_;
  const ObservedStep& step_;
};

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
  if (has(stack.value)) {
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

// A word that is text without quotes as well.
bool is_plain(const std::string& word) {
  static const NameRegex kPlain("^[a-z_/][a-z0-9_/.+-]*$"), kOther("^(true|false|null|yes|no|on|off)$");
  return kPlain.found_in(word) && !kOther.found_in(word);
}

// As YAML on one line.
std::string on_one_line(const YamlNode& node) {
  std::vector<std::string> items;
  for (const YamlNode& item : node.items) {
    items.push_back(node.is_map() ? fmt::format("{}: {}", item.key, on_one_line(item)) : on_one_line(item));
  }
  if (node.is_map()) return fmt::format("{{{}}}", fmt::join(items, ", "));
  if (node.is_list()) return fmt::format("[{}]", fmt::join(items, ", "));
  return node.quoted && !is_plain(node.word) ? fmt::format("\"{}\"", node.word) : node.word;
}

// Every key of a scenario, each in the way that it is known.
void take_scenario(const std::string& file, const std::string& text, HowKnown how, const char* why,
                   Settings& settings) {
  const YamlNode scenario = parse_yaml(file, text);
  for (const YamlNode& entry : scenario.items) {
    if (entry.key == "schema" || entry.key == "schema_version") continue;
    if (!entry.is_map() || entry.items.empty()) {
      settings.put({entry.key, on_one_line(entry), how, why});
      continue;
    }
    for (const YamlNode& item : entry.items) {
      const std::string key = entry.key + "." + item.key;
      // Resolved, it is the graph of this batch alone: whoever asks for another batch means the stack's own list.
      if (key != "workload.graph_batch" || !item.is_word() || !as_number<int>(item.word)) {
        settings.put({key, on_one_line(item), how, why});
      }
    }
  }
}

// A mapping and one of its keys cannot both be given.
void check_other_level(const std::string& key, const Settings& settings) {
  for (const Setting& other : settings.all()) {
    const bool clashes = other.key.starts_with(key + ".") || key.starts_with(other.key + ".");
    if (!clashes || other.how != HowKnown::given || other.why != "--set") continue;
    throw SpecError(fmt::format("--set {}: --set {} says it already", key, other.key));
  }
}

// A path in a scenario is meant from its folder.
void resolve_paths(const std::string& file, Settings& settings) {
  for (Setting& setting : settings.all()) {
    if (setting.key != "model" && setting.key != "hardware") continue;
    std::error_code failed;
    const std::filesystem::path path = beside(file, setting.value);
    if (std::filesystem::exists(path, failed))
      setting.value = std::filesystem::absolute(path).lexically_normal().string();
  }
}

void take_given(const GivenSettings& given, Settings& settings) {
  if (!given.scenario.empty()) {
    take_scenario(given.scenario_file, given.scenario, HowKnown::given, "--scenario", settings);
    resolve_paths(given.scenario_file, settings);
  }
  if (!given.model.empty()) settings.put({"model", given.model, HowKnown::given, "--model"});
  if (!given.hardware.empty()) settings.put({"hardware", given.hardware, HowKnown::given, "--hardware"});
  constexpr std::string_view kFacts = "hardware.";
  std::vector<std::string> facts;
  for (const std::string& assignment : given.assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) throw SpecError(fmt::format("--set '{}': write key=value", assignment));
    const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
    check_other_level(key, settings);
    if (key.starts_with(kFacts)) {
      facts.push_back(key.substr(kFacts.size()) + "=" + value);
    } else {
      settings.put({key, value, HowKnown::given, "--set"});
    }
  }
  if (facts.empty()) return;
  if (const Setting* before = settings.find("hardware_overrides")) {  // those come first
    facts.insert(facts.begin(), before->value.substr(1, before->value.size() - 2));
    if (facts.front().empty()) facts.erase(facts.begin());
  }
  settings.put({"hardware_overrides", fmt::format("[{}]", fmt::join(facts, ", ")), HowKnown::given, "--set"});
}

}  // namespace

const std::string& name_of(HowKnown how) {
  static const std::array<std::string, 6> names = {"annotation", "metadata", "name", "period", "given", "guessed"};
  return names[static_cast<std::size_t>(how)];
}

const Setting* Settings::find(const std::string& key) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.key == key; });
  return found == settings_.end() ? nullptr : &*found;
}

void Settings::offer(Setting setting) {
  const std::size_t dot = setting.key.find('.');
  const bool is_given = has(setting.key) || (dot != std::string::npos && has(setting.key.substr(0, dot)));
  if (!is_given) put(std::move(setting));
}

void Settings::put(Setting setting) {
  std::erase_if(settings_, [&](const Setting& other) { return other.key == setting.key; });
  const auto behind = [&](const Setting& other) { return place_of(other.key) > place_of(setting.key); };
  settings_.insert(std::find_if(settings_.begin(), settings_.end(), behind), std::move(setting));
}

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

std::string yaml_text(const std::string& text) {
  if (is_plain(text)) return text;
  std::string escaped;
  for (const char c : one_line(text, text.size())) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}\"", escaped);
}

namespace {

std::string written(const Setting& setting, const std::string& key) {
  constexpr std::size_t kLongest = 200;
  const bool is_name = setting.key == "model" || setting.key == "hardware";  // of paths, perhaps
  const std::string line = fmt::format("{}: {}", key, is_name ? yaml_text(setting.value) : setting.value);
  constexpr std::size_t kColumn = 36;
  return fmt::format("{:<{}}  # {}: {}\n", line, kColumn, name_of(setting.how), one_line(setting.why, kLongest));
}

}  // namespace

std::string scenario_yaml(const Settings& settings, const std::string& title) {
  std::string text = title + "schema: 1\n";
  std::string open;  // the mapping whose keys are being written
  for (const Setting& setting : settings.all()) {
    const std::size_t dot = setting.key.find('.');
    const std::string top = dot == std::string::npos ? "" : setting.key.substr(0, dot);
    if (!top.empty() && top != open) text += top + ":\n";
    open = top;
    const char* begin = setting.is_remark ? "  # " : top.empty() ? "" : "  ";
    text += written(setting, begin + setting.key.substr(top.empty() ? 0 : dot + 1));
  }
  return text;
}

}  // namespace moeline
