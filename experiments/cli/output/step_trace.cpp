// What a trace of a whole step shows besides its kernels.
#include "experiments/cli/output/step_output.hpp"
#include "moe/memory.hpp"

namespace moeline {

void add_step_tracks(const Run& run, std::uint32_t rank, TraceOptions& trace) {
  constexpr std::uint32_t kSlots = 1;
  TraceTrack track{.id = kSlots, .name = "slots", .slices = {}};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseTimes& row = run.phases[i];
    if (row.rank != rank) continue;
    track.slices.push_back(
        {row.start, row.end, title_of(run.step()->layout.slots[i].slot), row.micro_batch, row.layer});
  }
  trace.tracks.push_back(std::move(track));
  const RankStep& step = run.step()->ranks[rank];
  StepMemory memory = step.peak;
  TraceCounter counter{.name = "memory GiB", .values = {}};
  for (const MemoryChange& change : step.memory) {
    memory.activations = change.activations;
    memory.optimizer = change.optimizer;
    counter.values.emplace_back(change.at, gib(memory.total()));
  }
  trace.counters.push_back(std::move(counter));
}

}  // namespace moeline
