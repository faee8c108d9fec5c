// What every command pays before it begins: hardware profiles, each with those that it carries over.
#include <benchmark/benchmark.h>

#include "base/file.hpp"
#include "base/yaml.hpp"
#include "hardware/profile.hpp"

namespace {

using namespace moeline;

std::filesystem::path file_of(const char* name) {
  return std::filesystem::path(MOELINE_SOURCE_DIR) / "hwprofiles" / (std::string(name) + ".yaml");
}

void load_from_disk(benchmark::State& state, const char* name) {
  for (auto _ : state) benchmark::DoNotOptimize(read_profile(file_of(name)));
}

// The nodes of one file alone, of which the profile is made.
void parse_text(benchmark::State& state, const char* name) {
  const std::string file = file_of(name).string(), text = read_text(file);
  for (auto _ : state) benchmark::DoNotOptimize(parse_yaml(file, text));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

BENCHMARK_CAPTURE(load_from_disk, b200, "b200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_from_disk, gb200, "gb200-nvl72")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_from_disk, h100, "h100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_from_disk, h800, "h800")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_from_disk, a100, "a100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(parse_text, b200, "b200")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
