// Six pipelines that others measured beside each other on one machine: AMD Primus, Llama-2-7B on eight GPUs, PP8, from
// the project's notes. The machine is none of ours, and the number of micro-batches is not known (64 here), so it is
// the order that is compared, on eight H200. Not fitted: the figures were known.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/measured_pipelines") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Measured {
  const char* schedule;
  double tokens_per_s, gb;
};
constexpr Measured kMeasured[] = {{"1f1b", 10057, 16.3}, {"interleaved-1f1b", 10974, 21.4}, {"zb1p", 11411, 16.6},
                                  {"zbv", 11347, 18.1},  {"v-half", 10894, 14.1},           {"v-min", 8897, 11.9}};

constexpr const char* kLlama2 =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000,
        "rms_norm_eps": 1e-05, "max_position_embeddings": 4096, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16", "hidden_act": "silu"})";

Run predicted(const std::string& config, const std::string& schedule) {
  const std::string chunks = schedule == "interleaved-1f1b" ? ", virtual_pp: 2" : "";
  return run_scenario(read_setup(Spec::parse(
      "scenario.yaml", "schema: 1\nmodel: " + config + "\nhardware: h200\nschedule: " + schedule +
                           "\nparallelism: {pp: 8, dp: 1" + chunks +
                           "}\nworkload: {phase: train, seq_len: 4096, global_batch_size: 64}\nlaunch: graph\n"
                           "level: phase\nspeed_spread: 0\ntraining: {operators: megatron}\n")));
}

// Kendall's tau: pairs in one order less those in the other, over all.
double kendalls_tau(const std::vector<double>& a, const std::vector<double>& b) {
  int agree = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      ++all;
      agree += (a[i] < a[j]) == (b[i] < b[j]) ? 1 : -1;
    }
  }
  return static_cast<double>(agree) / all;
}

}  // namespace

TEST_CASE("six measured pipelines: 14 of 15 pairs in their order by speed (ZB and ZBV are not), all by memory") {
  const TemporaryFolder folder;
  const std::string config = folder.write("config.json", kLlama2);
  std::vector<double> speed, measured_speed, memory, measured_memory;
  for (const Measured& each : kMeasured) {
    const Run run = predicted(config, each.schedule);
    speed.push_back(tokens_per_s(run));
    memory.push_back(memory_bytes(run));
    measured_speed.push_back(each.tokens_per_s);
    measured_memory.push_back(each.gb);
  }
  CHECK(kendalls_tau(speed, measured_speed) == doctest::Approx(13.0 / 15));
  CHECK(kendalls_tau(memory, measured_memory) == 1);
}

}  // TEST_SUITE("schedules/measured_pipelines")
