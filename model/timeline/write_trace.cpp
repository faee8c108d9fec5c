// What the clients demand, and why each line here is as it is:
//  - HTA finds the rank by the text `"rank": N`, so distributedInfo stands first, with a space after the colon.
//  - Perfetto drops slices of one track that overlap without nesting: times are rounded by one monotone function, and
//    a phase has exactly the bounds of its kernels and stands before them.
//  - HTA takes an annotation with args.stream for a kernel: the stream is left out there.
//  - Times are relative, since absolute ones lose their decimals in a double. Launches that nobody modelled stand a
//    fixed lead before the end of the kernel before, as if the host always ran ahead: later ones HTA takes for a wait
//    for the host. So the whole trace starts that much after zero.
//  - The kernels of a CUDA graph share the correlation of its one launch, as CUPTI reports them. One flow leads to the
//    first of them: the Chrome viewer knows no flow with several ends.
//  - Data on the wire is no kernel, but readers know nothing else on a GPU: it has the correlation of the kernel that
//    sends it, and no launch of its own.
//  - Of one phase, each run of kernels on a stream has its own annotation: that of a low-latency transfer would else
//    lie across whatever runs between issue and receive.
//  - A flow starts and ends 1 ns inside its slices: at the very bound the Chrome viewer binds it to the slice before.
//  - What a kernel waited for on another stream of its rank is a flow of its own category (trace.hpp), so that replays
//    need not guess; a kernel that ended later than its work was done says when that was (args."work us").
//  - Launches that nobody modelled say so (args.assumed), or a reader would take them for the host's pace. Before host
//    work that waits for a kernel stands the call that waits.
// A kernel starts when it holds all its SMs. A profiler records a start as soon as one block runs, so where two
// persistent kernels wait for each other, measured ones overlap and ours follow each other.
#include "timeline/write_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "timeline/trace_tasks.hpp"
#include "trace/trace.hpp"

namespace moeline {
namespace {

constexpr std::int64_t kLaunchLeadNs = 5000;
constexpr std::int64_t kLaunchNs = 2000;
constexpr std::uint32_t kHostPid = 1000000;  // plus the rank; the GPU of rank N is process N
constexpr std::uint32_t kGraphThread = 1;
constexpr std::uint32_t kFirstHostThread = 1000;

struct SliceNs {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class TraceWriter {
 public:
  TraceWriter(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank, const TraceOptions& options)
      : graph_(graph),
        timeline_(timeline),
        rank_(rank),
        options_(options),
        tasks_(trace_tasks(graph, timeline, rank, options.graph_launch)),
        last_flow_(tasks_.kernels.size()) {}

  std::string write() {
    print("{{\n\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n", rank_,
          options_.world_size);
    print("{}", kTraceMark);
    if (!options_.scenario.empty()) print("\"scenario\": {},\n", json_text(options_.scenario));
    print("\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": {}, \"name\": {}}}],\n", rank_,
          json_text(options_.device_name));
    print("\"baseTimeNanoseconds\": 0,\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n");
    name_tracks();
    tracks();
    phases();
    if (!options_.phases_only) {
      kernels();
      launches();
      host_work();
      counters();
    }
    stated_edges();
    given_counters();
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
  [[nodiscard]] Role role_of(TaskId task) const { return graph_.task_class(task).role; }

  [[nodiscard]] bool is_kernel(TaskId task) const {
    return stream_of(task).rank == rank_ && role_of(task) != Role::host;
  }
  [[nodiscard]] bool on_the_wire(TaskId task) const { return tasks_.wires.contains(task); }
  [[nodiscard]] bool first_on_stream(std::size_t i) const {
    return i == 0 || stream_of(tasks_.kernels[i - 1]).id != stream_of(tasks_.kernels[i]).id;
  }

  // Monotone, so what abuts or nests before rounding does so after it.
  [[nodiscard]] std::int64_t ns(Time time) const {
    const std::int64_t unit_ps = options_.whole_us ? 1000000 : 1000;
    const std::int64_t rounded = (time.count() + unit_ps / 2) / unit_ps * unit_ps / 1000;
    return rounded + kLaunchLeadNs;
  }
  [[nodiscard]] std::int64_t start_ns(TaskId task) const { return ns(timeline_.spans[task].start); }
  [[nodiscard]] std::int64_t end_ns(TaskId task) const { return ns(timeline_.spans[task].end); }
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
    for (std::size_t i = 0; i < tasks_.kernels.size(); ++i) {
      const Stream& stream = stream_of(tasks_.kernels[i]);
      if (first_on_stream(i)) thread(rank_, stream.id, fmt::format("stream {} {}", stream.id, stream.name), stream.id);
    }
    process(kHostPid + rank_, fmt::format("host of rank {}", rank_), 1);
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

  void tracks() {
    for (const TraceTrack& track : options_.tracks) {
      thread(rank_, track.id, track.name, track.id);
      std::int64_t free = 0;
      for (const TraceTrack::Slice& slice : track.slices) {
        const std::int64_t start = std::max(ns(slice.start), free);
        free = std::max(start, ns(slice.end));
        annotation(slice.name, track.id, {start, free}, slice.chunk, slice.micro_batch);
      }
    }
  }

  void annotation(const std::string& name, std::uint32_t thread, SliceNs slice, std::uint32_t layer,
                  std::uint32_t micro_batch) {
    event(
        R"({{"ph": "X", "cat": "gpu_user_annotation", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"layer": {}, "micro_batch": {}}}}})",
        json_text(name), rank_, thread, us(slice.start), us(slice.end - slice.start), layer, micro_batch);
  }

  // What computes and holds no SMs is no kernel, but the time of a slot in a step that is simulated slot by slot.
  [[nodiscard]] std::string class_of(TaskId task) const {
    const bool is_slot = role_of(task) == Role::compute && graph_.task(task).hold == Hold::nothing;
    return is_slot ? std::string(kWholePhase) : graph_.task_class(task).name;
  }

  // Of the kernels [first, next) that a slice stands for, the class that takes most of its time; all that computes is
  // one class, which says no more: a reader would take attn(F), with its projections, for attention.
  [[nodiscard]] std::string class_of_phase(std::size_t first, std::size_t next) const {
    std::map<std::string, Time> times;
    for (std::size_t i = first; i < next; ++i) {
      const TaskId task = tasks_.kernels[i];
      const bool computes = role_of(task) == Role::compute;
      const Span& span = timeline_.spans[task];
      times[computes ? std::string(kWholePhase) : graph_.task_class(task).name] += span.end - span.start;
    }
    const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::max_element(times.begin(), times.end(), by_time)->first;
  }

  // A phase in place of its kernels is a kernel to its reader, and has a launch as others do whose host runs ahead.
  void phase_slice(const Phase& phase, const std::string& phase_class, std::uint32_t stream, SliceNs slice,
                   const std::string& meeting) {
    ++phases_;
    event(
        R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"device": {}, "context": 1, "stream": {}, "correlation": {}, "class": {}, "layer": {}, "micro_batch": {}{}}}}})",
        json_text(phase.name), rank_, stream, us(slice.start), us(slice.end - slice.start), rank_, stream, phases_,
        json_text(phase_class), phase.layer, phase.micro_batch, meeting);
    event(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}, "assumed": true}}}})",
        kHostPid + rank_, stream, us(slice.start - kLaunchLeadNs), us(std::min(kLaunchNs, slice.end - slice.start)),
        phases_);
  }

  // One annotation per run of kernels of the same phase on a stream.
  void phases() {
    for (std::size_t first = 0, next = 0; first < tasks_.kernels.size(); first = next) {
      const TaskId task = tasks_.kernels[first];
      const std::uint32_t id = graph_.label(task).phase;
      const auto belongs = [&](TaskId other) {
        return stream_of(other).id == stream_of(task).id && graph_.label(other).phase == id;
      };
      while (next < tasks_.kernels.size() && belongs(tasks_.kernels[next])) ++next;
      const std::int64_t start = start_ns(task);
      const std::int64_t end = end_ns(tasks_.kernels[next - 1]);
      const Phase& phase = graph_.phases()[id];
      if (options_.phases_only) {
        first_of_slice_.insert(task);
        phase_slice(phase, class_of_phase(first, next), stream_of(task).id, {start, end},
                    meeting_of_phase(first, next));
      } else {
        annotation(phase.name, stream_of(task).id, {start, end}, phase.layer, phase.micro_batch);
      }
    }
  }

  void kernels() {
    for (std::size_t i = 0; i < tasks_.kernels.size(); ++i) {
      const TaskId task = tasks_.kernels[i];
      const bool overlaps = !first_on_stream(i) && start_ns(task) < end_ns(tasks_.kernels[i - 1]);
      MOELINE_CHECK(!overlaps, graph_.task_name(task) + " overlaps its predecessor on the stream");
      event(R"({{"ph": "X", "cat": "kernel", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
            kernel_name(task), rank_, stream_of(task).id, us(start_ns(task)), us(end_ns(task) - start_ns(task)),
            kernel_arguments(task, i + 1));
    }
  }

  // As further arguments of a kernel.
  [[nodiscard]] std::string meeting_of(TaskId id) const {
    const std::optional<TraceMeeting> meeting = options_.meeting ? options_.meeting(id) : std::nullopt;
    if (!meeting) return "";
    const std::string ranks =
        meeting->ranks.empty() ? "" : fmt::format(R"(, "Process Group Ranks": {})", json_text(meeting->ranks));
    return fmt::format(R"(, "Collective name": {}, "Process Group Name": {}{}, "Group size": {})",
                       json_text(meeting->collective), json_text(meeting->group), ranks, meeting->size);
  }

  // A phase ends with its transfer: what is before it are the barriers.
  [[nodiscard]] std::string meeting_of_phase(std::size_t first, std::size_t next) const {
    std::string last;
    for (std::size_t i = first; i < next; ++i) {
      std::string own = meeting_of(tasks_.kernels[i]);
      if (!own.empty()) last = std::move(own);
    }
    return last;
  }

  [[nodiscard]] std::string detail_of(TaskId id) const {
    return options_.detail ? options_.detail(id) : std::string(graph_.task_detail(id));
  }

  [[nodiscard]] std::string kernel_arguments(TaskId id, std::size_t node) const {
    const Span& span = timeline_.spans[id];
    std::string text = fmt::format(
        R"("device": {}, "context": 1, "stream": {}, "correlation": {}, "External id": {}, "class": {}, "detail": {}, "solo us": {:.3f}, "slowed by": {:.3f})",
        rank_, stream_of(id).id, tasks_.correlation.at(id), tasks_.correlation.at(id), json_text(class_of(id)),
        json_text(detail_of(id)), to_us(graph_.task(id).solo), slowdown(id));
    text += meeting_of(id);
    if (const auto work = options_.edges.work.find(id); work != options_.edges.work.end()) {
      text += fmt::format(R"(, "work us": {:.3f})", to_us(work->second));
    }
    if (on_the_wire(id)) {
      for (const Usage& usage : graph_.usages(id)) {
        text += fmt::format(R"(, {}: {:.1f})", json_text(graph_.resources()[usage.link].name), usage.rate);
      }
      return text;
    }
    text += fmt::format(R"(, "SMs wanted": {}, "waited for SMs us": {:.3f})", graph_.task(id).sms,
                        to_us(span.start - span.ready));
    return options_.graph_launch ? text + fmt::format(R"(, "graph node id": {})", node) : text;
  }

  // Those that no host task is.
  void launches() {
    if (options_.graph_launch && !tasks_.kernels.empty()) {
      thread(kHostPid + rank_, kGraphThread, "graph launches", kGraphThread);
      const TaskId first = *std::min_element(tasks_.kernels.begin(), tasks_.kernels.end(), [&](TaskId a, TaskId b) {
        return timeline_.spans[a].start < timeline_.spans[b].start;
      });
      return launch("cudaGraphLaunch", first, kGraphThread, start_ns(first) - kLaunchLeadNs, kLaunchNs, true);
    }
    std::uint32_t named = 0;       // the stream whose launches have a thread
    std::int64_t stream_free = 0;  // end of the kernel before on the same stream
    for (std::size_t i = 0; i < tasks_.kernels.size(); ++i) {
      const TaskId task = tasks_.kernels[i];
      const std::uint32_t stream = stream_of(task).id;
      if (first_on_stream(i)) stream_free = start_ns(task);
      const bool last = i + 1 == tasks_.kernels.size() || first_on_stream(i + 1);
      const std::int64_t duration = last ? kLaunchNs : std::min(kLaunchNs, end_ns(task) - stream_free);
      const std::int64_t start = std::exchange(stream_free, end_ns(task)) - kLaunchLeadNs;
      if (on_the_wire(task) || tasks_.launcher.contains(task)) continue;
      if (std::exchange(named, stream) != stream) {
        thread(kHostPid + rank_, stream, fmt::format("launches of stream {}", stream), stream);
      }
      launch("cudaLaunchKernel", task, stream, start, duration, true);
    }
  }

  void launch(const char* call, TaskId kernel, std::uint32_t thread, std::int64_t start, std::int64_t duration,
              bool assumed) {
    const std::size_t correlation = tasks_.correlation.at(kernel);
    event(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}, "External id": {}{}}}}})",
        call, kHostPid + rank_, thread, us(start), us(duration), correlation, correlation,
        assumed ? R"(, "assumed": true)" : "");
    flow("ac2g", correlation, thread, {start, start + duration}, kernel, start_of(kernel));
  }

  // From host work to the kernel whose start or end it allows.
  void flow(const char* kind, std::size_t id, std::uint32_t thread, SliceNs host, TaskId kernel, EventId event_id) {
    const std::int64_t from = host.start + std::min<std::int64_t>(1, host.end - host.start);
    const std::int64_t inside = std::min<std::int64_t>(1, end_ns(kernel) - start_ns(kernel));
    const std::int64_t to = is_start(event_id) ? start_ns(kernel) + inside : end_ns(kernel) - inside;
    event(R"({{"ph": "s", "cat": "{}", "name": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}}})", kind, kind, id,
          kHostPid + rank_, thread, us(from));
    event(R"({{"ph": "f", "cat": "{}", "name": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}, "bp": "e"}})", kind,
          kind, id, rank_, stream_of(kernel).id, us(to));
  }

  // What kernels of other streams let kernels start and end; of whole phases, what let them start. A flow ends behind
  // where it starts, also where both are at one instant.
  void stated_edges() {
    for (const TraceEdge& edge : options_.edges.edges) {
      const bool from_start = is_start(edge.from), to_start = is_start(edge.to);
      if (options_.phases_only && !(to_start && first_of_slice_.contains(task_of(edge.to)))) continue;
      const std::string_view kind = !to_start ? kEndAfterEnd : from_start ? kStartAfterStart : kStartAfterEnd;
      const std::size_t id = ++last_flow_;
      edge_end("s", kind, id, edge.from, from_start ? 1 : 2);
      edge_end("f", kind, id, edge.to, from_start ? 2 : 1);
    }
  }
  void edge_end(const char* ph, std::string_view kind, std::size_t id, EventId event_id, std::int64_t inside_ns) {
    const TaskId task = task_of(event_id);
    const std::int64_t inside = std::min(inside_ns, end_ns(task) - start_ns(task));
    const std::int64_t at = is_start(event_id) ? start_ns(task) + inside : end_ns(task) - inside;
    event(R"({{"ph": "{}", "cat": "{}", "name": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}, "bp": "e"}})", ph, kind,
          kind, id, rank_, stream_of(task).id, us(at));
  }

  // Each kind of host work on threads of its own, a second one where two of a kind overlap.
  void host_work() {
    struct Thread {
      std::uint32_t id = 0;
      std::int64_t free = 0;
    };
    std::map<NameId, std::vector<Thread>> threads;
    std::uint32_t next_thread = kFirstHostThread;
    for (const TaskId task : tasks_.host) {
      if (timeline_.spans[task].end == timeline_.spans[task].start) continue;  // joins
      const NameId name = graph_.label(task).name;
      std::vector<Thread>& own = threads[name];
      auto found = std::find_if(own.begin(), own.end(), [&](const Thread& t) { return t.free <= start_ns(task); });
      if (found == own.end()) {
        found = own.insert(own.end(), {next_thread++, 0});
        thread(kHostPid + rank_, found->id, graph_.name(name), found->id);
      }
      if (const auto kernel = tasks_.waited_for.find(task); kernel != tasks_.waited_for.end()) {
        wait(std::max(found->free, start_ns(kernel->second) + 1), start_ns(task), found->id);
      }
      found->free = end_ns(task);
      host_task(task, found->id);
    }
  }

  void wait(std::int64_t start, std::int64_t end, std::uint32_t thread) {
    if (start >= end) return;
    event(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}}}}})",
        kHostPid + rank_, thread, us(start), us(end - start), tasks_.kernels.size() + ++waits_);
  }

  void host_task(TaskId task, std::uint32_t thread) {
    const Phase& phase = graph_.phases()[graph_.label(task).phase];
    const std::int64_t start = start_ns(task);
    const std::int64_t end = end_ns(task);
    const NameId module = graph_.label(task).detail;
    const std::string of = module == kNoName ? "" : fmt::format(R"("module": {}, )", json_text(graph_.name(module)));
    event(
        R"({{"ph": "X", "cat": "cpu_op", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}"phase": {}, "layer": {}, "micro_batch": {}}}}})",
        json_text(graph_.task_name(task)), kHostPid + rank_, thread, us(start), us(end - start), of,
        json_text(phase.name), phase.layer, phase.micro_batch);
    for (const EventId waiting : graph_.successors(end_of(task))) {
      const TaskId kernel = task_of(waiting);
      if (!is_kernel(kernel)) continue;
      if (const auto launcher = tasks_.launcher.find(kernel);
          launcher != tasks_.launcher.end() && launcher->second == task) {
        const std::int64_t call = std::max(start, end - kLaunchNs);  // what is before it is the framework's time
        launch("cudaLaunchKernel", kernel, thread, call, end - call, false);
      } else {
        flow("wait", ++last_flow_, thread, {start, end}, kernel, waiting);
      }
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

  void given_counters() {
    for (const TraceCounter& counter : options_.counters) {
      for (const auto& [at, value] : counter.values) {
        event(R"({{"ph": "C", "name": {}, "pid": {}, "tid": 0, "ts": {}, "args": {{"taken": {:.3f}}}}})",
              json_text(counter.name), rank_, us(ns(at)), value);
      }
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::uint32_t rank_;
  TraceOptions options_;
  TraceTasks tasks_;
  std::size_t last_flow_;
  std::size_t waits_ = 0;   // calls written
  std::size_t phases_ = 0;  // slices written
  std::set<TaskId> first_of_slice_;
  fmt::memory_buffer out_;
  bool first_ = true;
};

}  // namespace

std::string trace_of_rank(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                          const TraceOptions& options) {
  return TraceWriter(graph, timeline, rank, options).write();
}

}  // namespace moeline
