// What the clients demand, and why each line here is as it is:
//  - HTA finds the rank by the text `"rank": N`, so distributedInfo stands first, with a space after the colon.
//  - Perfetto drops slices of one track that overlap without nesting: times are rounded by one monotone function, and
//    a phase has exactly the bounds of its kernels and stands before them.
//  - HTA takes an annotation with args.stream for a kernel: the stream is left out there.
//  - Times are relative, since absolute ones lose their decimals in a double; launches precede their kernels by a
//    fixed lead, so the whole trace starts that much after zero.
#include "timeline/write_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "timeline/json_text.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kLaunchLeadNs = 5000;
constexpr std::int64_t kLaunchNs = 1000;
constexpr std::uint32_t kHostPid = 1000000;  // plus the rank; the GPU of rank N is process N

class Writer {
 public:
  Writer(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank, const TraceOptions& options)
      : graph_(graph), timeline_(timeline), rank_(rank), options_(options) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (stream_of(task).rank != rank) continue;
      (role_of(task) == Role::host ? host_ : kernels_).push_back(task);
    }
    const auto by_start = [&](TaskId a, TaskId b) {
      const auto key = [&](TaskId t) {
        return std::tuple(stream_of(t).id, timeline_.spans[t].start, timeline_.spans[t].end, t);
      };
      return key(a) < key(b);
    };
    std::sort(kernels_.begin(), kernels_.end(), by_start);
    std::sort(host_.begin(), host_.end(), by_start);
  }

  std::string write() {
    print("{{\n\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n", rank_,
          options_.world_size);
    print("\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": {}, \"name\": {}}}],\n", rank_,
          json_text(options_.device_name));
    print("\"baseTimeNanoseconds\": 0,\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n");
    name_tracks();
    phase_annotations();
    kernels();
    host_work();
    counters();
    print("\n]\n}}\n");
    return fmt::to_string(out_);
  }

 private:
  template <class... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    print("{}", first_ ? "" : ",\n");
    first_ = false;
    print(format, std::forward<Arguments>(arguments)...);
  }

  [[nodiscard]] const Stream& stream_of(TaskId task) const { return graph_.streams()[graph_.label(task).stream]; }
  [[nodiscard]] Role role_of(TaskId task) const { return graph_.classes()[graph_.label(task).task_class].role; }

  // Monotone, so what abuts or nests before rounding does so after it.
  [[nodiscard]] std::int64_t ns(Time time) const {
    const std::int64_t unit_ps = options_.whole_us ? 1000000 : 1000;
    const std::int64_t rounded = (time.count() + unit_ps / 2) / unit_ps * unit_ps / 1000;
    return rounded + kLaunchLeadNs;
  }
  static std::string us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  [[nodiscard]] std::string kernel_name(TaskId task) const {
    const bool prefix = options_.hta_names && role_of(task) == Role::communication;
    return json_text((prefix ? "ncclKernel_" : "") + graph_.task_name(task));
  }

  void name_tracks() {
    process(rank_, fmt::format("rank {}", rank_), 0);
    for (const Stream& stream : graph_.streams()) {
      if (stream.rank != rank_ || stream.role == Role::host) continue;
      thread(rank_, stream.id, fmt::format("stream {} {}", stream.id, stream.name), stream.id);
    }
    process(kHostPid + rank_, fmt::format("host of rank {}", rank_), 1);
    for (const Stream& stream : graph_.streams()) {
      if (stream.rank != rank_ || stream.role == Role::host) continue;
      thread(kHostPid + rank_, stream.id, fmt::format("launches of stream {}", stream.id), stream.id);
    }
  }
  void process(std::uint32_t pid, const std::string& name, int sort_index) {
    event(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", pid,
          json_text(name));
    event(R"({{"ph": "M", "name": "process_sort_index", "pid": {}, "tid": 0, "args": {{"sort_index": {}}}}})", pid,
          sort_index);
  }
  void thread(std::uint32_t pid, std::uint32_t tid, const std::string& name, std::uint32_t sort_index) {
    event(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", pid, tid,
          json_text(name));
    event(R"({{"ph": "M", "name": "thread_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}}}})", pid, tid,
          sort_index);
  }

  // One annotation per phase and stream.
  void phase_annotations() {
    struct Bounds {
      std::int64_t start = 0, end = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bounds> bounds;  // by stream and phase
    for (const TaskId task : kernels_) {
      const Span& span = timeline_.spans[task];
      const auto [it, added] = bounds.try_emplace({stream_of(task).id, graph_.label(task).phase},
                                                  Bounds{ns(span.start), ns(span.end)});
      if (added) continue;
      it->second.start = std::min(it->second.start, ns(span.start));
      it->second.end = std::max(it->second.end, ns(span.end));
    }
    for (const auto& [key, bound] : bounds) {
      const Phase& phase = graph_.phases()[key.second];
      event(
          R"({{"ph": "X", "cat": "gpu_user_annotation", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"layer": {}, "micro_batch": {}}}}})",
          json_text(phase.name), rank_, key.first, us(bound.start), us(bound.end - bound.start), phase.layer,
          phase.micro_batch);
    }
  }

  void kernels() {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const TaskId task = kernels_[i];
      const std::int64_t start = ns(timeline_.spans[task].start);
      const std::int64_t end = ns(timeline_.spans[task].end);
      std::int64_t launch_room = kLaunchNs;
      if (i + 1 < kernels_.size() && stream_of(kernels_[i + 1]).id == stream_of(task).id) {
        const std::int64_t next = ns(timeline_.spans[kernels_[i + 1]].start);
        MOELINE_CHECK(next >= end, graph_.task_name(task) + " overlaps its successor on the stream");
        launch_room = std::min(kLaunchNs, next - start);
      }
      kernel(task, start, end, i + 1);
      launch(task, start, launch_room, i + 1);
    }
  }

  void kernel(TaskId task, std::int64_t start, std::int64_t end, std::size_t correlation) {
    const Span& span = timeline_.spans[task];
    const Label& label = graph_.label(task);
    event(
        R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"device": {}, "context": 1, "stream": {}, "correlation": {}, "External id": {}, "class": {}, "detail": {}, "sms": {}, "solo us": {:.3f}, "waited for SMs us": {:.3f}}}}})",
        kernel_name(task), rank_, stream_of(task).id, us(start), us(end - start), rank_, stream_of(task).id,
        correlation, correlation, json_text(graph_.classes()[label.task_class].name), json_text(graph_.name(label.detail)),
        graph_.task(task).sms, to_us(graph_.task(task).solo), to_us(span.start - span.ready));
  }

  void launch(TaskId task, std::int64_t kernel_start, std::int64_t duration, std::size_t correlation) {
    const std::uint32_t pid = kHostPid + rank_;
    const std::uint32_t tid = stream_of(task).id;
    const std::int64_t start = kernel_start - kLaunchLeadNs;
    event(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}, "External id": {}}}}})",
        pid, tid, us(start), us(duration), correlation, correlation);
    event(R"({{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, "tid": {}, "ts": {}}})", correlation, pid,
          tid, us(start));
    event(R"({{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, "tid": {}, "ts": {}, "bp": "e"}})",
          correlation, rank_, tid, us(kernel_start));
  }

  // Each kind of host work on a thread of its own: two kinds may overlap.
  void host_work() {
    std::map<NameId, std::uint32_t> threads;
    for (const TaskId task : host_) {
      const Span& span = timeline_.spans[task];
      if (span.end == span.start) continue;  // joins
      const NameId name = graph_.label(task).name;
      const auto [it, added] = threads.try_emplace(name, static_cast<std::uint32_t>(1000 + threads.size()));
      if (added) thread(kHostPid + rank_, it->second, graph_.name(name), it->second);
      event(R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{}}}})",
            json_text(graph_.name(name)), kHostPid + rank_, it->second, us(ns(span.start)),
            us(ns(span.end) - ns(span.start)));
    }
  }

  // What is taken of every SM pool and link that this rank's tasks use.
  void counters() {
    struct Taken {
      double sms = 0;
      double speed = 0;
    };
    std::map<TaskId, Taken> running;
    std::map<ResourceId, std::string> last;
    const std::vector<Change>& changes = timeline_.changes;
    for (auto change = changes.begin(); change != changes.end();) {
      const Time at = change->at;
      for (; change != changes.end() && change->at == at; ++change) {
        if (stream_of(change->task).rank == rank_) running[change->task] = {change->sms, change->speed};
      }
      std::map<ResourceId, double> taken;
      for (const auto& [resource, value] : last) taken[resource] = 0;
      for (auto it = running.begin(); it != running.end();) {
        if (graph_.task(it->first).pool != kNoPool) taken[graph_.task(it->first).pool] += it->second.sms;
        for (const Usage& usage : graph_.usages(it->first)) taken[usage.link] += usage.rate * it->second.speed;
        it = it->second.speed == 0 && it->second.sms == 0 ? running.erase(it) : std::next(it);
      }
      for (const auto& [resource, value] : taken) counter(resource, at, value, last);
    }
  }

  void counter(ResourceId resource, Time at, double value, std::map<ResourceId, std::string>& last) {
    std::string text = fmt::format("{:.1f}", value);
    if (last[resource] == text) return;
    const std::string& name = graph_.resources()[resource].name;
    event(R"({{"ph": "C", "name": {}, "pid": {}, "tid": 0, "ts": {}, "args": {{"taken": {}}}}})", json_text(name),
          rank_, us(ns(at)), text);
    last[resource] = std::move(text);
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::uint32_t rank_;
  TraceOptions options_;
  std::vector<TaskId> kernels_, host_;
  fmt::memory_buffer out_;
  bool first_ = true;
};

}  // namespace

std::string trace_of_rank(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                          const TraceOptions& options) {
  return Writer(graph, timeline, rank, options).write();
}

}  // namespace moeline
