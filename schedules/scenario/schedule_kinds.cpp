#include "schedules/scenario/schedule_kinds.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "moe/dispatcher.hpp"

namespace moeline {
namespace {

using enum WorkloadPhase;

constexpr const char* kChunkPlan = "dualpipe-chunk";

ScheduleKind pipeline(std::string name, std::string about, const PipelineKind& kind) {
  return {.name = std::move(name),
          .about = std::move(about),
          .phases = {train},
          .plan = kind.overlaps_passes ? kChunkPlan : "",
          .modes = {},
          .pipeline = kind};
}

}  // namespace

bool ScheduleKind::is_for(WorkloadPhase phase) const {
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kKinds = {
      {.name = "sequential",
       .about = "no overlap, one phase after the other: the baseline of every comparison",
       .phases = {train, prefill, decode, mixed},
       .plan = "",
       .modes = modes_that([](const Dispatcher& by) { return by.serves; }),
       .pipeline = {}},
      {.name = "prefill-two-batch",
       .about = "two micro-batches, each of which hides the other's all-to-all",
       .phases = {prefill},
       .micro_batches = 2,
       .plan = "prefill-two-batch",
       .modes = modes_that([](const Dispatcher& by) { return by.serves && by.sends_tokens && !by.staged; }),
       .pipeline = {}},
      {.name = "decode-two-batch",
       .about = "two micro-batches, each of which hides the other's all-to-all",
       .phases = {decode},
       .micro_batches = 2,
       .plan = "decode-two-batch",
       .resident_plan = "decode-two-batch-resident",
       .modes = {CommMode::low_latency, CommMode::deepep_v2, CommMode::pplx},
       .pipeline = {}},
      {.name = "single-batch",
       .about = "one micro-batch: shared experts beside a transfer, combine beside the GEMM before it (SGLang's SBO)",
       .phases = {decode},
       .plan = "single-batch",
       .blackwell_plan = "single-batch-blackwell",
       .resident_plan = "single-batch-resident",
       .releases = true,
       .modes = {CommMode::low_latency, CommMode::deepep_v2},
       .pipeline = {}},
      {.name = "per-expert",
       .about = "one micro-batch, experts in groups: one group's tokens travel while another's compute (DeepEP's PEO)",
       .phases = {decode},
       .plan = "per-expert",
       .modes = {CommMode::low_latency},
       .pipeline = {}},
      {.name = "dualpipe-chunk",
       .about = "one forward chunk overlapped with one backward chunk, as in DualPipe",
       .phases = {train},
       .plan = kChunkPlan,
       .modes = {},
       .pipeline = {}},
      pipeline("gpipe", "all forward passes, then all backward passes", {.overlaps_sends = false}),
      pipeline("1f1b", "one forward, one backward: a rank keeps the activations of few micro-batches",
               {.may_combine = true, .overlaps_sends = false}),
      pipeline("interleaved-1f1b", "1f1b with several chunks of the model on each rank",
               {.may_combine = true, .stages_per_rank = 0, .whole_rounds = true}),
      pipeline("zb1p", "weight gradients apart, which fill the end of the pipeline",
               {.splits_backward = true, .least_rounds = 1}),
      pipeline("zb-h2", "more forward passes first, so that no rank idles, for twice the activations",
               {.splits_backward = true, .least_rounds = 2}),
      pipeline("zbv", "two chunks on each rank in a V, no rank idles, with 1f1b's activations",
               {.splits_backward = true, .stages_per_rank = 2}),
      pipeline("v-half", "the same with half of 1f1b's activations, for some idle time",
               {.splits_backward = true, .stages_per_rank = 2}),
      pipeline("v-min", "the same with a third of them, for more", {.splits_backward = true, .stages_per_rank = 2}),
      pipeline("dualpipe", "micro-batches from both ends, F of one direction overlapped with B of the other",
               {.splits_backward = true, .overlaps_passes = true, .least_rounds = 2, .two_directions = true}),
      pipeline("dualpipev", "one half of DualPipe's ranks with the work of both",
               {.splits_backward = true, .overlaps_passes = true, .stages_per_rank = 2, .least_rounds = 2}),
  };
  return kKinds;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedule_kinds()) names.push_back(kind.name);
    return names;
  }();
  return kNames;
}

const ScheduleKind& schedule_named(const std::string& name) {
  const std::string known = expect_name("schedule", name, schedule_names());
  return *std::find_if(schedule_kinds().begin(), schedule_kinds().end(),
                       [&](const ScheduleKind& kind) { return kind.name == known; });
}

}  // namespace moeline
