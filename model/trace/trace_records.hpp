// What the events of a trace file say, before anyone asks what belongs to what.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/trace.hpp"

namespace moeline {

/// The fields of one trace event as text, whatever their JSON type. Empty: absent.
struct EventText {
  std::string ph;
  std::string cat;
  std::string name;
  std::string pid;
  std::string tid;
  std::string ts;
  std::string dur;
  std::string id;  ///< of a flow
  // args:
  std::string stream;
  std::string correlation;
  std::string layer;
  std::string micro_batch;
  std::string bytes;
  std::string in_elements;  ///< args."In msg nelems", of NCCL
  std::string out_elements;
  std::string dtype;
  std::string external_id;
  std::string kernel_class;
  std::string assumed;      ///< of a launch: nobody modelled it
  std::string work_us;      ///< of our own kernels: until their work was done
  std::string label;        ///< args.name of metadata
  std::string wait_stream;  ///< args.wait_on_stream
  std::string wait_record;  ///< args.wait_on_cuda_event_record_corr_id
  std::string grid;         ///< its numbers, each with a blank behind it
  std::string dims;         ///< args."Input Dims": numbers as in grid, ';' behind every array

  // What NCCL's metadata say of the group: args."Process Group Name", "... Description", "... Ranks", "Group size".
  std::string group_name, group_description, group_ranks, group_size;
  std::string collective;  ///< args."Collective name"
};

/// A pair of pid and tid: a CPU thread, or a stream of a device. Numbered from 0.
using Track = std::uint32_t;

struct GpuRecord {
  GpuEvent event;
  Track track = 0;
  std::optional<std::int64_t> correlation;
  std::int64_t external_id = 0;
};

/// A call of the CUDA runtime or driver; one that launches something shares its correlation with it.
struct CallRecord {
  std::int64_t correlation = 0;
  HostCall call;
  Track track = 0;
  bool may_block = false;  ///< cudaMemcpy and its kind: a copy that is not asynchronous
};

/// What Kineto's synchronisation events add to the call with the same correlation: of a stream that waits
/// (cudaStreamWaitEvent), or of the host.
struct WaitRecord {
  std::int64_t correlation = 0;
  std::int64_t stream = -1;
  std::int64_t source_stream = -1;
  std::int64_t record_correlation = -1;
  std::int64_t process = -1;  ///< of the host; -1: the first that has this correlation
};

struct AnnotationRecord {
  Annotation annotation;
  Track track = 0;
};

/// One end of a flow; ids are hashed, with their category.
struct FlowRecord {
  std::uint64_t id = 0;
  std::int64_t at_ns = 0;
  Track track = 0;
  bool is_start = false;
  FlowKind kind = FlowKind::any;
};

/// What a call of this name of CUDA's or HIP's runtime or driver does; a version behind it ("_v3020") says nothing.
[[nodiscard]] HostCallKind kind_of_call(std::string_view name);

/// A copy that CUDA or HIP may return from only when it is done: cudaMemcpy, hipMemcpyWithStream, not cudaMemcpyAsync.
[[nodiscard]] bool is_synchronous_copy(std::string_view name);

/// Blocks of a grid of these extents; 0 where they make no sense.
[[nodiscard]] std::uint32_t blocks_of(double x, double y, double z);

/// Collects events in the order of the file, with times as they stand there.
class TraceRecords {
 public:
  std::vector<GpuRecord> gpu;
  std::vector<CallRecord> calls;
  std::vector<WaitRecord> waits;
  std::vector<AnnotationRecord> annotations;
  std::vector<TraceStep> steps;  ///< found when all records are there
  std::vector<FlowRecord> flows;
  std::vector<KernelName> names;                            ///< of GPU events
  std::vector<std::string> gpus;                            ///< pids that have GPU events
  std::vector<std::string> hosts;                           ///< pids that have calls
  std::vector<std::uint32_t> host_of_gpu;                   ///< by GPU, a position in hosts; empty: the file has none
  std::unordered_map<std::string, std::string> processes;   ///< names by pid
  std::unordered_map<std::int64_t, double> operator_flops;  ///< of matrix products, by External id

  bool states_order = false;  ///< a flow of ours says what a kernel waited for
  std::vector<TraceGroup> groups;
  std::vector<TraceCollective> collectives;
  std::size_t senseless_groups = 0;  ///< whose list of ranks is none

  /// Keeps what the event tells of GPU work, the host's calls, annotations and flows; all other events only count for
  /// earliest_ns(). What it is its category says, in the words of Kineto for any maker's devices
  /// (read_trace.hpp). Throws SpecError, without file and event, for a field that is missing or makes no sense.
  void add(const EventText& event);

  /// For readers that make records themselves: numbers of names, new ones at their first use. Few pids are allowed:
  /// more than 4096 throw SpecError.
  [[nodiscard]] std::uint32_t name_number(const std::string& name, const std::string& stated_class = "");
  [[nodiscard]] std::uint16_t gpu_number(const std::string& pid);
  [[nodiscard]] std::uint16_t host_number(const std::string& pid);
  [[nodiscard]] Track track(const std::string& pid, const std::string& tid);
  /// Something began then.
  void count_start(std::int64_t start_ns) { earliest_ns_ = std::min(earliest_ns_.value_or(start_ns), start_ns); }

  /// Of complete events before the first one of a GPU, in words: "cpu_op 812, python_function 40". Empty: none.
  [[nodiscard]] std::string categories() const;

  [[nodiscard]] std::size_t tracks() const { return tracks_.size(); }
  [[nodiscard]] std::int64_t earliest_ns() const { return earliest_ns_.value_or(0); }

 private:
  void add_gpu(const EventText& event, GpuEventKind kind);
  void add_call(const EventText& event);
  void add_wait(const EventText& event);
  void add_annotation(const EventText& event, bool on_gpu);
  void add_flow(const EventText& event);
  void add_operator(const EventText& event);
  [[nodiscard]] std::string_view category_of(const EventText& event) const;
  [[nodiscard]] std::int32_t collective_of(const EventText& event);
  [[nodiscard]] std::int32_t group_of(const EventText& event);
  void count_category(std::string_view category);

  std::unordered_map<std::string, Track> tracks_;
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  std::unordered_map<std::string, std::int32_t> group_ids_, collective_ids_;
  std::unordered_map<std::string, std::uint16_t> gpu_numbers_, host_numbers_;
  std::string key_;  // scratch
  std::vector<std::pair<std::string, std::size_t>> categories_;
  std::optional<std::int64_t> earliest_ns_;
};

// The numbers of a trace, from their text.

/// 95 years: a start plus a duration minus another start always fits an int64.
inline constexpr std::int64_t kLargestTraceTimeNs = 3'000'000'000'000'000'000;

/// Nanoseconds in a decimal number of microseconds ("17", "-0.25", "1.5e3"), without passing through a double, which
/// holds no more than a quarter of a microsecond of today's epoch. Digits beyond the nanosecond round to the nearest.
/// Nothing when the text is not such a number, or beyond kLargestTraceTimeNs either way.
[[nodiscard]] std::optional<std::int64_t> ns_from_us(std::string_view text);

/// Nothing when the text is not a whole number, or out of the type's range.
template <class Integer>
[[nodiscard]] std::optional<Integer> whole_number(std::string_view text) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && parsed == end ? std::optional(value) : std::nullopt;
}

}  // namespace moeline
