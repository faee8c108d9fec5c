// Bytes as a trace, through everything that reads one.
#include <limits>
#include <string>

#include "engine/simulate.hpp"
#include "measured/analysis.hpp"
#include "measured/replay.hpp"
#include "measured/replay_text.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"
#include "trace/window.hpp"

namespace moeline::fuzz {

namespace {

void expect(bool condition, const std::string& what) { MOELINE_CHECK(condition, what); }

// What holds of every trace that is read: its accounts add up, and it replays to its own times.
void check(const Measured& measured) {
  for (const RankAnalysis& rank : analyze(measured).ranks) {
    const Breakdown& t = rank.times;
    for (const StepUse& step : rank.steps) {
      expect(step.start <= step.end && step.times.idle >= Time::zero() && step.times.span <= t.span, "step");
    }
    expect(t.idle >= Time::zero() && t.exposed >= Time::zero() && t.non_compute() >= t.exposed, "breakdown");
    expect(t.communication <= t.span && t.exposed <= t.communication, "communication");
    const HtaBreakdown& hta = rank.hta;
    expect(hta.left_out() > 0 || (hta.times.span == t.span && hta.times.idle == t.idle), "hta");
    Time stood_still{};
    for (const Gap& gap : rank.gaps) stood_still += gap.length;
    expect(stood_still + rank.compute_streams_busy == t.span, "gaps");
  }
  const ReplayGraph replay = replay_graph(measured);
  const Timeline timeline = simulate(replay.graph);
  expect(timeline.spans.size() == replay.graph.size(), "spans");
  const ReplayGraph without_gaps = replay_graph(measured, {{{"gaps", 0}}, {}});
  expect(gpu_span(without_gaps, simulate(without_gaps.graph)) <= gpu_span(replay, timeline), "gaps lengthen");
  for (const Unexplained& wait : unexplained_waits(measured, release_times(measured))) {
    if (wait.for_sms) return;  // left out of replays
  }
  constexpr Time kRounding = std::chrono::microseconds(1);  // of delays of days, which pass through a double
  for (std::size_t i = 0; i < replay.of_event.size(); ++i) {
    const Time start = std::chrono::nanoseconds(measured.trace.gpu_events[i].start_ns);
    const Time off = timeline.spans[replay.of_event[i]].start - start;
    expect(off <= kRounding && off >= -kRounding,
           "event " + std::to_string(i) + " is off by " + std::to_string(to_us(Time(std::abs(off.count())))) + " us");
  }
}

}  // namespace

// Reads, understands, analyses and replays.
bool feed_trace(std::string_view bytes) {
  const FedFiles files(bytes, "trace.json");
  Trace trace;
  try {
    trace = read_trace(files.first());
  } catch (const SpecError&) {
    return false;
  }
  static const KernelMap by_name{{}, {{"gemm|attn|a", "compute"}, {"dispatch|combine|e", "transfer"}}, "nccl|dispatch"};
  check(understand(trace));
  const std::int64_t middle_ns = trace.gpu_events[trace.gpu_events.size() / 2].start_ns;
  check(understand(within(trace, {middle_ns, std::numeric_limits<std::int64_t>::max()})));
  const Measured mapped = understand(std::move(trace), by_name);
  check(mapped);
  (void)to_graph_json(mapped);
  (void)to_graphviz(mapped);
  return true;
}

}  // namespace moeline::fuzz
