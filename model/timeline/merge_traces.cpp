#include "timeline/merge_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "timeline/write_trace.hpp"

namespace moeline {
namespace {

constexpr std::uint32_t kLaneStep = 100000;  // added to a stream's number for each further lane

struct Placed {
  const KernelSpan* kernel = nullptr;
  std::int64_t start = 0, end = 0;  // ns
};

using Lanes = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Placed>>;  // by stream and lane

// Monotone, so what is in order before rounding is so after it.
std::int64_t ns(Time time) { return (time.count() + 500) / 1000; }

const char* category(const KernelSpan& kernel) {
  if (kernel.kernel_class != KernelClass::copy) return "kernel";
  return kernel.name.starts_with("Memset") ? "gpu_memset" : "gpu_memcpy";
}

Lanes place(const NamedTimeline& timeline) {
  Lanes lanes;
  if (timeline.kernels.empty()) return lanes;
  const Time zero = timeline.kernels.front().start;
  for (const KernelSpan& kernel : timeline.kernels) {
    const Placed placed{&kernel, ns(kernel.start - zero), ns(kernel.end - zero)};
    std::uint32_t lane = 0;
    while (!lanes[{kernel.stream, lane}].empty() && lanes[{kernel.stream, lane}].back().end > placed.start) ++lane;
    lanes[{kernel.stream, lane}].push_back(placed);
  }
  return lanes;
}

class MergedWriter {
 public:
  std::string write(const std::vector<NamedTimeline>& timelines) {
    out_ = "{\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 1},\n" +
           std::string(kTraceMark) +
           "\"schemaVersion\": 1,\n\"baseTimeNanoseconds\": 0,\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n";
    for (std::uint32_t pid = 0; pid < timelines.size(); ++pid) process(pid, timelines[pid]);
    return std::move(out_) + "\n]\n}\n";
  }

 private:
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out_ += std::exchange(first_, false) ? "" : ",\n";
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  static std::string us(std::int64_t time) { return fmt::format("{}.{:03}", time / 1000, time % 1000); }

  void process(std::uint32_t pid, const NamedTimeline& timeline) {
    event(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", pid,
          json_text(timeline.name));
    event(R"({{"ph": "M", "name": "process_sort_index", "pid": {}, "tid": 0, "args": {{"sort_index": {}}}}})", pid,
          pid);
    for (const auto& [key, kernels] : place(timeline)) {
      const auto& [stream, lane] = key;
      thread(pid, stream, lane);
      phases(pid, stream + lane * kLaneStep, kernels);
      for (const Placed& placed : kernels) kernel(pid, stream + lane * kLaneStep, placed);
    }
  }

  void thread(std::uint32_t pid, std::uint32_t stream, std::uint32_t lane) {
    const std::uint32_t tid = stream + lane * kLaneStep;
    const std::string name =
        lane == 0 ? fmt::format("stream {}", stream) : fmt::format("stream {}, overlapping ({})", stream, lane + 1);
    event(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})", pid, tid, name);
    event(R"({{"ph": "M", "name": "thread_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}}}})", pid, tid,
          10 * stream + std::min(lane, 9U));
  }

  // Each run of kernels of one phase.
  void phases(std::uint32_t pid, std::uint32_t tid, const std::vector<Placed>& kernels) {
    const auto same = [](const KernelSpan& a, const KernelSpan& b) {
      return a.phase == b.phase && a.place.layer == b.place.layer && a.place.micro_batch == b.place.micro_batch;
    };
    for (std::size_t i = 0; i < kernels.size();) {
      std::size_t last = i;
      while (last + 1 < kernels.size() && same(*kernels[i].kernel, *kernels[last + 1].kernel)) ++last;
      const KernelSpan& kernel = *kernels[i].kernel;
      if (!kernel.phase.empty()) {
        event(
            R"({{"ph": "X", "cat": "gpu_user_annotation", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"layer": {}, "micro_batch": {}}}}})",
            json_text(kernel.phase), pid, tid, us(kernels[i].start), us(kernels[last].end - kernels[i].start),
            kernel.place.layer, kernel.place.micro_batch);
      }
      i = last + 1;
    }
  }

  void kernel(std::uint32_t pid, std::uint32_t tid, const Placed& placed) {
    event(
        R"({{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"device": {}, "context": 1, "stream": {}, "correlation": {}, "class": "{}", "contention us": {:.3f}}}}})",
        category(*placed.kernel), json_text(placed.kernel->name), pid, tid, us(placed.start),
        us(placed.end - placed.start), pid, placed.kernel->stream, ++correlation_, name_of(placed.kernel->kernel_class),
        to_us(placed.kernel->contention));
  }

  std::string out_;
  std::size_t correlation_ = 0;
  bool first_ = true;
};

}  // namespace

std::string merged_trace(const std::vector<NamedTimeline>& timelines) { return MergedWriter().write(timelines); }

}  // namespace moeline
