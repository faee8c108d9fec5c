// A profiler trace as it stands in the file: GPU events, the host's calls behind them, and the annotations around them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"

namespace moeline {

enum class GpuEventKind : std::uint8_t { kernel, memcpy, memset };

/// One record of a GPU stream. Times in ns since Trace::time_zero_ns.
struct GpuEvent {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = 0;     ///< of copies, sets and NCCL's messages; 0: the trace does not say
  std::int64_t work_ns = -1;  ///< until its own work was done, where its end waited for another's; -1: it did not
  double flops = 0;           ///< of matrix products whose operator has "Input Dims"; 0: not known
  std::uint32_t name = 0;     ///< index into Trace::names
  std::uint32_t stream = 0;
  std::uint32_t blocks = 0;      ///< of the grid; 0: the trace does not say
  std::int32_t annotation = -1;  ///< index into Trace::annotations of the phase it belongs to; -1: none
  std::int32_t step = -1;        ///< index into Trace::steps; -1: it belongs to none
  std::int32_t call = -1;        ///< index into Trace::calls of its launch; -1: not in the trace
  std::uint16_t gpu = 0;         ///< index into Trace::gpus
  GpuEventKind kind = GpuEventKind::kernel;
  std::int32_t collective = -1;  ///< index into Trace::collectives; -1: the trace does not say what it does with others
};

enum class HostCallKind : std::uint8_t {
  launch,      ///< of a GPU event
  wait_event,  ///< cudaStreamWaitEvent: a stream waits for what was recorded on another
  record_event,
  synchronize,         ///< the host waits for a stream or an event
  synchronize_device,  ///< for all that its process has launched
};

/// HostCall::record of a part of a trace: what was recorded lies before it.
inline constexpr std::int32_t kOutside = -2;

/// A call of the CUDA runtime or driver.
struct HostCall {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t process = 0;  ///< of the host; numbered by first appearance
  std::uint32_t thread = 0;   ///< of all processes; calls of one thread have one number
  HostCallKind kind = HostCallKind::launch;
  /// A launch that returned only when what it launched had ended: a copy from or to memory that is not pinned, or
  /// cudaMemcpy.
  bool blocks = false;
  /// Of wait_event and synchronize, where the profiler wrote synchronisation events: who waits (a stream, or the host),
  /// for whom, and for which record_event (an index into Trace::calls). -1: the trace does not say.
  std::int64_t stream = -1;
  std::int64_t source_stream = -1;
  std::int32_t record = -1;
};

/// Which layer and micro-batch a phase belongs to.
struct PhasePlace {
  std::uint32_t layer = 0;
  std::uint32_t micro_batch = 0;
};

/// A named range: on the CPU thread that launched the kernels, or on the GPU stream that ran them.
struct Annotation {
  std::string name;
  bool on_gpu = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::optional<PhasePlace> place;  ///< args.layer and args.micro_batch, which our own traces have
};

/// A step of a server or a training loop, as an annotation names it.
struct TraceStep {
  std::string name;
  std::string kind;          ///< what steps of the same work share: "DECODE bs=32"
  std::uint32_t number = 0;  ///< N of ProfilerStep#N; of other steps their position on their GPU, by their first events
};

/// args.class of a slice that stands for all kernels of a phase, as our own traces of phases have them: it computes
/// most of its time, and what else it holds is not told.
inline constexpr std::string_view kWholePhase = "phase";

struct KernelName {
  std::string name;
  std::string stated_class;  ///< args.class, which our own traces have

  [[nodiscard]] bool is_whole_phase() const { return stated_class == kWholePhase; }
};

/// Ranks that have a communicator, as NCCL's metadata of a kernel name them.
struct TraceGroup {
  std::string name;         ///< "Process Group Name"; empty: not stated
  std::string description;  ///< "Process Group Description"
  std::string ranks;        ///< "Process Group Ranks" as in the file, which may abbreviate it; empty: not stated
  std::uint32_t size = 0;   ///< "Group size"; 0: not stated
};

/// What a kernel of communication does, and with whom.
struct TraceCollective {
  std::string name;         ///< "Collective name"; empty: not stated
  std::int32_t group = -1;  ///< index into Trace::groups; -1: not stated
};

/// A process of the trace that has GPU events.
struct TraceGpu {
  std::string pid;
  std::uint32_t rank = 0;
};

/// What a flow between GPU events says of their order. Ours say it; of others `to` starts after `from`, or, where they
/// overlap, a while into it.
enum class FlowKind : std::uint8_t { any, end_to_start, start_to_start, end_to_end };

/// A flow from one GPU event to another: `to` follows `from`. Indices into Trace::gpu_events.
struct GpuFlow {
  std::uint32_t from = 0, to = 0;
  FlowKind kind = FlowKind::any;
};

/// Categories of the flows by which our traces say what their kernels waited for.
inline constexpr std::string_view kStartAfterEnd = "start after end";
inline constexpr std::string_view kStartAfterStart = "start after start";
inline constexpr std::string_view kEndAfterEnd = "end after end";

/// Flows without their other end.
struct LoneFlows {
  std::size_t starts = 0, ends = 0;
};

struct Trace {
  std::vector<TraceGpu> gpus;           ///< by first appearance
  std::string device;                   ///< name of the first of deviceProperties; empty: not in the trace
  std::uint32_t sms = 0;                ///< its numSms; 0: not in the trace
  double memory_bytes = 0;              ///< its totalGlobalMem; 0: not in the trace
  std::uint32_t world_size = 0;         ///< distributedInfo's; 0: not in the trace
  std::string scenario;                 ///< that our own traces state, as text; empty: none
  std::int64_t time_zero_ns = 0;        ///< absolute time of the earliest record that has a duration
  std::int64_t first_ns = 0;            ///< start of the file's first GPU event, also where this is a part of the file
  std::vector<KernelName> names;        ///< of GPU events, each once
  std::vector<GpuEvent> gpu_events;     ///< by start, then stream
  std::vector<HostCall> calls;          ///< by start
  std::vector<Annotation> annotations;  ///< by start, then longer ones first; ProfilerStep among them
  std::vector<TraceStep> steps;         ///< by the start of their first GPU event
  std::vector<GpuFlow> flows;
  LoneFlows lone_flows;
  std::vector<std::string> notes;  ///< what was tolerated, in words
  bool states_order = false;       ///< ours: its flows say all that its kernels waited for
  bool is_part = false;            ///< a window of what is in the file: window.hpp

  std::vector<TraceGroup> groups;            ///< of ranks
  std::vector<TraceCollective> collectives;  ///< of GPU events, each once
  bool counts_from_zero = false;             ///< the file says that its times count from 0, not from a base of its own

  [[nodiscard]] const std::string& name(const GpuEvent& event) const { return names[event.name].name; }
  [[nodiscard]] bool is_whole_phase(const GpuEvent& event) const { return names[event.name].is_whole_phase(); }
  [[nodiscard]] std::uint32_t rank(const GpuEvent& event) const { return gpus[event.gpu].rank; }
  /// Start of the call that launched it; where the trace has none, its own start.
  [[nodiscard]] std::int64_t launched_ns(const GpuEvent& event) const {
    return event.call < 0 ? event.start_ns : calls[static_cast<std::size_t>(event.call)].start_ns;
  }
};

/// Reads Kineto's dialect of the Chrome trace, plain or gzipped, in one pass of RapidJSON's SAX reader, or Nsight
/// Systems' SQLite export, table by table: the file's first bytes tell which it is.
/// `ts` and `dur` may be integers, decimals or strings, in us; they are read to the nanosecond without passing
/// through a double. A GPU event belongs to the innermost annotation that contains it on its own stream, else to the
/// innermost one that contains its launch (matched by `correlation`); annotations that frameworks make themselves
/// (nccl:..., Optimizer...., compiled regions) never count; those of modules and layers are alike for all layers
/// (assemble_trace.hpp). Those around steps (steps.hpp; or, whatever their
/// names, around many repetitions of one sequence of kernels) are no phases: they are Trace::steps, and where there are
/// none, ProfilerStep#N is.
/// Of an export, ranges of NVTX on the host are annotations, but those of libraries (NCCL, cuBLAS, ...); a CUDA graph
/// that was recorded as a whole is one kernel; its GPUs are pairs of a process and a device, by their places in the
/// machine.
/// The rank is distributedInfo's, else the file name's ("rank3"), else 0; of a file with several GPU processes each has
/// the one in its name ("rank 3"), else its position, and where two would be the same all have their positions.
/// Throws SpecError (with the file) for a file that is missing, empty, truncated, damaged, not a trace, without GPU
/// events, or longer than 11 days; it says where, by the byte offset in JSON's unpacked text, or by table and row. No
/// view or trigger of a database runs. Of JSON it tells how far it has read.
[[nodiscard]] Trace read_trace(const std::filesystem::path& path, const Progress& progress = {});

}  // namespace moeline
