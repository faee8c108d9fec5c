#include "schedules/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostTokens = 1 << 24;

// One of the `modelled` values; one of the `real` ones stands for something that this version does not model.
std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                     const std::vector<std::string>& real) {
  std::string value = spec.text_or(key, values.front());
  if (std::find(real.begin(), real.end(), value) != real.end()) {
    throw spec.error(key, fmt::format("'{}' is not modelled; there is: {}", value, fmt::join(values, ", ")));
  }
  return spec.has(key) ? spec.choice(key, values) : value;
}

Parallelism read_parallelism(const Spec& spec, const Architecture& model, int gpus_per_node) {
  spec.expect({"tp", "pp", "ep", "dp"});
  Parallelism p;
  p.tp = spec.integer_or("tp", 1, kMostRanks, 1);
  if (p.tp > 1) throw spec.error("tp", "above 1 is not modelled");
  p.pp = spec.integer_or("pp", 1, kMostRanks, 1);
  p.ep = spec.integer("ep", 2, kMostRanks);  // one rank has no all-to-all, and another list of kernels
  p.dp = spec.integer_or("dp", 1, kMostRanks, p.ep);
  if (static_cast<long long>(p.pp) * p.dp > kMostRanks) {
    throw spec.error("pp", fmt::format("x dp is more than {} ranks", kMostRanks));
  }
  if (p.dp % p.ep != 0) throw spec.error("ep", fmt::format("must divide tp x dp: {} does not divide {}", p.ep, p.dp));
  if (model.n_routed_experts % p.ep != 0) {
    throw spec.error("ep", fmt::format("must divide the {} routed experts: {} does not", model.n_routed_experts, p.ep));
  }
  if (p.ep > gpus_per_node && p.ep % gpus_per_node != 0) {
    throw spec.error("ep", fmt::format("must fill whole nodes of {} GPUs, or fit into one", gpus_per_node));
  }
  return p;
}

Workload read_workload(const Spec& spec) {
  spec.expect({"phase", "micro_batch_size", "seq_len", "global_batch_size"});
  Workload w;
  (void)spec.text("phase");
  w.phase = modelled(spec, "phase", {"train"}, {"prefill", "decode"});
  w.micro_batch_size = spec.integer_or("micro_batch_size", 1, 1 << 16, 1);
  w.seq_len = spec.integer("seq_len", 1, kMostTokens);
  if (static_cast<long long>(w.micro_batch_size) * w.seq_len > kMostTokens) {
    throw spec.error("micro_batch_size", fmt::format("x seq_len is more than {} tokens per GPU", kMostTokens));
  }
  w.global_batch_size = spec.integer_or("global_batch_size", 1, 1 << 30, 0);
  return w;
}

Comm read_comm(const Spec& spec, const MachineFacts& machine) {
  spec.expect({"mode", "num_sms", "dispatch_dtype", "combine_dtype"});
  Comm c;
  c.mode = modelled(spec, "mode", {"normal"}, {"low_latency"});
  const int most = static_cast<int>(machine.sms) - 1;  // at least one is left to compute
  if (most < 1) throw spec.error("num_sms", "cannot be met: the machine has one SM");
  c.num_sms = spec.integer_or("num_sms", 1, most, std::min(c.num_sms, most));
  c.dispatch_dtype = modelled(spec, "dispatch_dtype", {"fp8"}, {"bf16"});
  c.combine_dtype = modelled(spec, "combine_dtype", {"bf16"}, {"fp8"});
  return c;
}

// Padded rows that one rank can get at most: every token of the group chooses as many of its experts as it may.
int most_rows(const Scenario& scenario, const Architecture& model) {
  constexpr double kMost = 1 << 30;
  const int experts = model.n_routed_experts / scenario.parallelism.ep;
  const double tokens = static_cast<double>(scenario.workload.micro_batch_size) * scenario.workload.seq_len;
  const double rows = tokens * scenario.parallelism.ep * std::min(model.num_experts_per_tok, experts);
  return static_cast<int>(std::min(kMost, rows + experts * kRowPadding));
}

Routing read_routing(const Spec& spec, const Scenario& scenario, const Architecture& model) {
  const int layers = scenario.layers;
  spec.expect({"distribution", "rows"});
  Routing r;
  r.distribution = modelled(spec, "distribution", {"balanced", "given"}, {"power_law", "file"});
  if (r.distribution == "given") {
    const Spec rows = spec.map("rows");
    rows.expect({"forward", "backward"});
    const auto read = [&](const char* key) {
      std::vector<int> values = rows.integers(key, 1, most_rows(scenario, model));
      if (values.size() != static_cast<std::size_t>(layers)) {
        throw rows.error(
            key, fmt::format("must list one value per layer: {}, not {} (or set routing={{distribution: balanced}})",
                             layers, values.size()));
      }
      return values;
    };
    r.forward_rows = read("forward");
    r.backward_rows = read("backward");
  } else if (spec.has("rows")) {
    throw spec.error("rows", "belongs to the distribution given, not " + r.distribution);
  }
  return r;
}

int read_layers(const Spec& spec, const Architecture& model) {
  if (!spec.has("layers") || spec.text("layers") == "all") return model.moe_layers();
  return spec.integer("layers", 1, 5000);
}

// Splits off "hardware.KEY=value": the machine's own file is overridden, not the scenario.
std::vector<std::string> apply(const std::vector<std::string>& assignments, Spec& spec) {
  constexpr std::string_view kHardware = "hardware.";
  std::vector<std::string> overrides;
  for (const std::string& assignment : assignments) {
    if (assignment.starts_with(kHardware)) {
      overrides.push_back(assignment.substr(kHardware.size()));
    } else {
      spec.set(assignment);
    }
  }
  return overrides;
}

// Runs `load`; a name it does not know gets the line that it was written on.
template <class Load>
auto at_key(const Spec& spec, const std::string& key, Load load) {
  try {
    return load();
  } catch (const UnknownName& error) {
    throw spec.error(key, std::string("names an ") + error.what());
  }
}

// What the scenario names, loaded.
void read_names(const Spec& spec, Setup& setup) {
  Scenario& s = setup.scenario;
  s.model = spec.text("model");
  s.hardware = spec.text("hardware");
  s.kernels = spec.text_or("kernels", "");
  s.schedule = spec.text("schedule");
  setup.model = at_key(spec, "model", [&] { return load_architecture(s.model, s.file); });
  setup.machine = at_key(spec, "hardware", [&] { return load_profile(s.hardware, s.hardware_overrides, s.file); });
  if (setup.machine.kernel_sets.empty()) {
    throw spec.error("hardware", fmt::format("'{}' has no kernel set; see `moeline calibrate`", s.hardware));
  }
  setup.kernels = at_key(spec, "kernels", [&] { return setup.machine.kernels(s.kernels); });
  s.kernels = setup.kernels.name;
  const std::vector<std::string>& schedules = schedule_names();
  if (std::find(schedules.begin(), schedules.end(), s.schedule) == schedules.end()) {
    throw spec.error("schedule", "names an " + unknown_name("schedule", s.schedule, schedules));
  }
}

std::string read_overlap(const Spec& spec, const Scenario& scenario) {
  const std::string overlap = spec.text_or("overlap", "default");
  if (overlap == "default") return overlap;
  if (scenario.schedule == "sequential") throw spec.error("overlap", "does not apply to the schedule sequential");
  std::filesystem::path plan = beside(scenario.file, overlap);
  std::error_code failed;
  if (!std::filesystem::exists(plan, failed)) throw spec.error("overlap", fmt::format("'{}': no such file", overlap));
  return plan.string();
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = {"sequential", "dualpipe-chunk"};
  return kNames;
}

Setup load_setup(const std::filesystem::path& path, const std::vector<std::string>& assignments) {
  Spec spec = Spec::load(path);
  Setup setup;
  Scenario& s = setup.scenario;
  s.file = path.string();
  s.hardware_overrides = apply(assignments, spec);
  spec.expect({"schema", "model", "hardware", "kernels", "schedule", "parallelism", "workload", "comm", "routing",
               "layers", "overlap", "launch", "seed", "samples"});
  (void)spec.integer("schema", 1, 1);
  read_names(spec, setup);
  const MachineFacts& machine = setup.machine.facts;
  s.parallelism = read_parallelism(spec.map("parallelism"), setup.model, static_cast<int>(machine.gpus_per_node));
  s.workload = read_workload(spec.map("workload"));
  s.comm = read_comm(spec.map_or_empty("comm"), machine);
  s.layers = read_layers(spec, setup.model);
  s.routing = read_routing(spec.map_or_empty("routing"), s, setup.model);
  s.overlap = read_overlap(spec, s);
  if (spec.has("launch")) s.launch = spec.choice("launch", {"graph", "stream"});
  s.seed = spec.integer_or("seed", 0, 1 << 30, s.seed);
  (void)spec.integer_or("samples", 1, 1, 1);  // more than one needs jitter, which is not modelled
  setup.spread = expected_spread(setup.model, s.parallelism.ep, static_cast<int>(machine.gpus_per_node),
                                 static_cast<unsigned>(s.seed));
  return setup;
}

LayerWork Setup::layer_work(bool forward, int layer) const {
  LayerWork work;
  work.model = model;
  work.micro_batch_size = scenario.workload.micro_batch_size;
  work.seq_len = scenario.workload.seq_len;
  work.ep = scenario.parallelism.ep;
  work.gpus_per_node = static_cast<int>(machine.facts.gpus_per_node);
  work.spread = spread;
  const std::vector<int>& given = forward ? scenario.routing.forward_rows : scenario.routing.backward_rows;
  work.load = given.empty() ? balanced_load(model, static_cast<int>(work.tokens()), work.ep, spread)
                            : given_load(model, given[static_cast<std::size_t>(layer)], work.ep, spread);
  return work;
}

}  // namespace moeline
