// What explaining a run costs, against running it: prices, program, engine and metrics.
#include <benchmark/benchmark.h>

#include "experiments/explain/explanation.hpp"
#include "experiments/run/run.hpp"

namespace {

using namespace moeline;

Setup setup_of(const char* scenario) {
  return load_setup(std::string(MOELINE_SOURCE_DIR) + "/experiments/studies/" + scenario + "/scenario.yaml", {"samples=1"});
}

void simulate_scenario(benchmark::State& state, const char* scenario) {
  const Setup setup = setup_of(scenario);
  for (auto _ : state) benchmark::DoNotOptimize(run_scenario(setup));
}

// With the run, which has to be recorded for it.
void explain_scenario(benchmark::State& state, const char* scenario) {
  const Setup setup = setup_of(scenario);
  for (auto _ : state) benchmark::DoNotOptimize(explain(run_scenario(setup, {.record_changes = true})));
}

BENCHMARK_CAPTURE(simulate_scenario, decode, "decode_deepseek_v3_h800_ep128")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(explain_scenario, decode, "decode_deepseek_v3_h800_ep128")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_scenario, prefill, "prefill_deepseek_v3_h800_ep32")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(explain_scenario, prefill, "prefill_deepseek_v3_h800_ep32")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_scenario, training_chunk, "train_chunk_deepseek_v3_h800")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(explain_scenario, training_chunk, "train_chunk_deepseek_v3_h800")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_scenario, training_step, "train_deepseek_v3_2048_h800")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(explain_scenario, training_step, "train_deepseek_v3_2048_h800")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
