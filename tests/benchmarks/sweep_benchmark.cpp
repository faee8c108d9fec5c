// What the table of a sweep costs: 100 000 rows of 8 metrics stored, each a transaction of its own, and read. Limits:
// 2 s for both, small against the milliseconds that a point takes to simulate.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "experiments/sweep/store.hpp"

namespace {

using namespace moeline;
namespace fs = std::filesystem;

Study study_of(std::size_t points) {
  Study study;
  study.keys = {"parallelism.ep", "workload.batch_size"};
  for (std::size_t i = 0; i < points; ++i) study.points.push_back({std::to_string(i % 7), std::to_string(i)});
  for (int i = 0; i < 8; ++i) study.metrics.push_back("metric" + std::to_string(i));
  study.text = "benchmark";
  return study;
}

// A folder on the disk that the program is built on: /tmp may be memory.
struct Folder {
  fs::path path = fs::absolute("sweep_benchmark.folder");
  Folder() { clear(); }
  ~Folder() { fs::remove_all(path); }
  void clear() const {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  [[nodiscard]] fs::path table() const { return path / "table.sqlite"; }
};

void store_all(const fs::path& file, const Study& study) {
  Store store(file, study, Store::Mode::create);
  for (std::size_t id = 0; id < study.points.size(); ++id) {
    store.add({.id = id, .metrics = std::vector<double>(study.metrics.size(), 1.0 / static_cast<double>(id + 1))});
  }
}

void count_rows(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * state.range(0)); }

void StoreRows(benchmark::State& state) {
  const Study study = study_of(static_cast<std::size_t>(state.range(0)));
  const Folder folder;
  for (auto _ : state) {
    store_all(folder.table(), study);
    state.PauseTiming();
    folder.clear();
    state.ResumeTiming();
  }
  count_rows(state);
}
BENCHMARK(StoreRows)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadRows(benchmark::State& state) {
  const Study study = study_of(static_cast<std::size_t>(state.range(0)));
  const Folder folder;
  store_all(folder.table(), study);
  const Store store(folder.table(), study, Store::Mode::read);
  for (auto _ : state) benchmark::DoNotOptimize(store.results().size());
  count_rows(state);
}
BENCHMARK(ReadRows)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadStored(benchmark::State& state) {
  const Study study = study_of(static_cast<std::size_t>(state.range(0)));
  const Folder folder;
  store_all(folder.table(), study);
  const Store store(folder.table(), study, Store::Mode::read);
  for (auto _ : state) benchmark::DoNotOptimize(store.stored().size());
  count_rows(state);
}
BENCHMARK(ReadStored)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
