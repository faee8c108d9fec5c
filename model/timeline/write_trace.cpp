// What the clients demand, and why each line here is as it is:
//  - HTA finds the rank by the text `"rank": N`, so distributedInfo stands first, with a space after the colon.
//  - Perfetto drops slices of one track that overlap without nesting: times are rounded by one monotone function, and
//    a phase has exactly the bounds of its kernels and stands before them.
//  - HTA takes an annotation with args.stream for a kernel: the stream is left out there.
//  - Times are relative, since absolute ones lose their decimals in a double. Launches stand a fixed lead before the
//    end of the kernel before, as if the host always ran ahead: later ones HTA takes for a wait for the host. So the
//    whole trace starts that much after zero.
//  - A flow ends 1 ns inside its kernel: at the very start the Chrome viewer binds it to the slice that ends there.
// A kernel starts when it holds all its SMs. A profiler records a start as soon as one block runs, so where two
// persistent kernels wait for each other, measured ones overlap and ours follow each other.
#include "timeline/write_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "timeline/json_text.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kLaunchLeadNs = 5000;
constexpr std::int64_t kLaunchNs = 2000;
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

  [[nodiscard]] double slowdown(TaskId task) const {
    const Span& span = timeline_.spans[task];
    const double solo = to_us(graph_.task(task).solo);
    return solo > 0 ? to_us(span.end - span.start) / solo : 1;
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

  // One annotation per run of kernels of the same phase on a stream.
  void phase_annotations() {
    for (std::size_t first = 0, next = 0; first < kernels_.size(); first = next) {
      const TaskId task = kernels_[first];
      const std::uint32_t id = graph_.label(task).phase;
      const auto belongs = [&](TaskId other) {
        return stream_of(other).id == stream_of(task).id && graph_.label(other).phase == id;
      };
      while (next < kernels_.size() && belongs(kernels_[next])) ++next;
      const std::int64_t start = ns(timeline_.spans[task].start);
      const std::int64_t end = ns(timeline_.spans[kernels_[next - 1]].end);
      const Phase& phase = graph_.phases()[id];
      event(
          R"({{"ph": "X", "cat": "gpu_user_annotation", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"layer": {}, "micro_batch": {}}}}})",
          json_text(phase.name), rank_, stream_of(task).id, us(start), us(end - start), phase.layer, phase.micro_batch);
    }
  }

  void kernels() {
    std::int64_t stream_free = 0;  // end of the kernel before on the same stream
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const TaskId task = kernels_[i];
      const std::int64_t start = ns(timeline_.spans[task].start);
      const std::int64_t end = ns(timeline_.spans[task].end);
      const bool first = i == 0 || stream_of(kernels_[i - 1]).id != stream_of(task).id;
      if (first) stream_free = start;
      MOELINE_CHECK(start >= stream_free, graph_.task_name(task) + " overlaps its predecessor on the stream");
      const bool last = i + 1 == kernels_.size() || stream_of(kernels_[i + 1]).id != stream_of(task).id;
      kernel(task, start, end, i + 1);
      launch(task, stream_free - kLaunchLeadNs, last ? kLaunchNs : std::min(kLaunchNs, end - stream_free), i + 1);
      flow(task, stream_free - kLaunchLeadNs, start + std::min<std::int64_t>(1, end - start), i + 1);
      stream_free = end;
    }
  }

  void kernel(TaskId task, std::int64_t start, std::int64_t end, std::size_t correlation) {
    const Span& span = timeline_.spans[task];
    const Label& label = graph_.label(task);
    event(
        R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"device": {}, "context": 1, "stream": {}, "correlation": {}, "External id": {}, "class": {}, "detail": {}, "SMs wanted": {}, "solo us": {:.3f}, "slowed by": {:.3f}, "waited for SMs us": {:.3f}}}}})",
        kernel_name(task), rank_, stream_of(task).id, us(start), us(end - start), rank_, stream_of(task).id,
        correlation, correlation, json_text(graph_.classes()[label.task_class].name),
        json_text(graph_.name(label.detail)), graph_.task(task).sms, to_us(graph_.task(task).solo), slowdown(task),
        to_us(span.start - span.ready));
  }

  void launch(TaskId task, std::int64_t start, std::int64_t duration, std::size_t correlation) {
    event(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}, "External id": {}}}}})",
        kHostPid + rank_, stream_of(task).id, us(start), us(duration), correlation, correlation);
  }

  void flow(TaskId task, std::int64_t from, std::int64_t to, std::size_t id) {
    const std::uint32_t tid = stream_of(task).id;
    event(R"({{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, "tid": {}, "ts": {}}})", id,
          kHostPid + rank_, tid, us(from));
    event(R"({{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": {}, "pid": {}, "tid": {}, "ts": {}, "bp": "e"}})", id,
          rank_, tid, us(to));
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
