#include "experiments/cli/output/memory_output.hpp"

#include <fmt/format.h>

#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

double capacity_gib(const Setup& setup) { return setup.machine.facts.memory_gib; }

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

// "KV cache size, memory.fraction 88 % (SGLang's --mem-fraction-static)"
std::string cache_head(const Setup& setup) {
  const std::string option = habits::fraction_option(setup.scenario.memory.stack);
  const std::string how = option.empty() ? "" : fmt::format(" ({})", option);
  return fmt::format("KV cache size, memory.fraction {}{}", percent(setup.scenario.memory.fraction), how);
}

CacheRoom room_of(const Run& run) { return cache_room(run.setup, run.inference()->memory); }

// Parts but for caches, their room and what is left are the GPU.
Fields<GpuMemory> gpu_fields() {
  const auto room = [](const GpuMemory& gpu) { return std::max(0.0, gib(gpu.room)); };
  return Fields<GpuMemory>()
      .add("capacity_gib", "GiB of the GPU", [](auto& gpu) { return gib(gpu.capacity); })
      .add("cache_room_gib", "GiB that caches may have beside the other parts", room)
      .add("left_gib", "GiB beside both, for CUDA, its graphs and what the stack leaves free",
           [=](auto& gpu) { return gib(gpu.capacity) - gib(gpu.rest()) - room(gpu); }, {.least = kAny});
}

constexpr const char* kFraction = "of it, that the stack fills as memory.fraction says";

Fields<CacheRoom> room_fields() {
  return Fields<CacheRoom>()
      .add("kv_tokens_per_gpu", "tokens that the cache of a GPU holds beside all else", &CacheRoom::tokens,
           {.decimals = 0})
      .add("requests_that_fit", "requests of an attention group, as long as the scenario's, that it holds",
           &CacheRoom::requests, {.decimals = 1})
      .add("keys_per_request", "tokens that each of these has in the cache", &CacheRoom::keys, {.decimals = 0});
}

}  // namespace

Fields<MemoryParts> parts_fields() {
  return Fields<MemoryParts>().list(
      "parts", "what is in it; they add up to memory_gib", [](auto& parts) -> auto& { return parts; },
      Fields<MemoryPart>()
          .add("part", "its name", [](auto& part) { return part.name; })
          .add("gib", "GiB", [](auto& part) { return gib(part.bytes); }));
}

Fields<Run> inference_memory_fields() {
  return Fields<Run>()
      .all(memory_parts, parts_fields())
      .all([](auto& run) { return gpu_memory(run.setup, run.inference()->memory); }, gpu_fields())
      .add("fraction", kFraction, [](auto& run) { return run.setup.scenario.memory.fraction; }, {.most = 1})
      .all(room_of, room_fields());
}

Fields<Run> training_memory_fields() {
  const auto fullest = [](auto& run) -> auto& { return run.step()->fullest().memory; };
  const auto phase = [](const MemoryPeak& peak) { return name_of(peak.phase); };
  return Fields<Run>()
      .all(memory_parts, parts_fields())
      .add("capacity_gib", "GiB of the GPU", [](auto& run) { return capacity_gib(run.setup); })
      .add("rank", "rank of the pipeline that is the fullest", [](auto& run) { return run.step()->fullest_rank(); })
      .add("peak_at", "what runs while it is at its fullest",
           [=](auto& run) { return phase(fullest(run).peaks.front()); }, {.words = words_to(MemoryPhase::optimizer)})
      .list(
          "peaks", "the most that there is while each of these runs, the highest first",
          [=](auto& run) -> auto& { return fullest(run).peaks; },
          Fields<MemoryPeak>()
              .add("at", "what runs", phase, {.words = words_to(MemoryPhase::optimizer)})
              .add("gib", "GiB", [](auto& peak) { return gib(peak.bytes); }));
}

Fields<ServePool> served_memory_fields() {
  return Fields<ServePool>()
      .all([](auto& pool) { return parts_of(pool.memory); }, parts_fields())
      .all([](auto& pool) { return gpu_memory(pool.setup, pool.memory); }, gpu_fields())
      .add("fraction", kFraction, [](auto& pool) { return pool.setup.scenario.memory.fraction; }, {.most = 1})
      .add("kv_tokens_per_gpu", "tokens that the cache of a GPU holds beside all else",
           [](auto& pool) { return pool.shape.kv_tokens; }, {.decimals = 0});
}

std::string memory_lines(const Run& run) {
  if (run.inference() == nullptr) return "";
  const CacheRoom room = room_of(run);
  return fmt::format(
      "memory of the whole model {:.1f} of {:.0f} GiB: {}\n{}: {:.0f} tokens, {:.1f} requests of {:.0f}\n",
      gib(memory_bytes(run)), capacity_gib(run.setup), breakdown(memory_parts(run)), cache_head(run.setup),
      room.tokens(), room.requests, room.keys);
}

std::string memory_line(const ServePool& pool) {
  return fmt::format("memory {:.1f} of {:.0f} GiB: {}\n{}: {:.0f} tokens\n", gib(pool.memory.total()),
                     capacity_gib(pool.setup), breakdown(parts_of(pool.memory)), cache_head(pool.setup),
                     pool.shape.kv_tokens);
}

std::string peak_phrase(const RankMemory& memory) {
  if (memory.peaks.empty()) return "";
  std::string text = fmt::format(", in {}", name_of(memory.peaks.front().phase));
  if (memory.peaks.size() > 1) {
    text += fmt::format(" (next {}, {:.1f})", name_of(memory.peaks[1].phase), gib(memory.peaks[1].bytes));
  }
  return text;
}

}  // namespace moeline
