#include "trace/nsight_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace moeline {
namespace {

constexpr std::size_t kMostGpus = 4096;

struct DeviceOfProcess {
  std::int64_t physical = 0;  // number of the GPU in the machine
  NsightProcess process = 0;
  std::int64_t device = 0;

  auto operator<=>(const DeviceOfProcess&) const = default;
};

const char* name_of_copy(std::int64_t kind) {
  constexpr const char* kNames[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                    "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                    "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind >= 0 && kind < static_cast<std::int64_t>(std::size(kNames)) ? kNames[kind] : kNames[0];
}

class GpuReader {
 public:
  GpuReader(const SqliteFile& file, const NsightNames& names, TraceRecords& records)
      : file_(file), names_(names), records_(records) {}

  NsightGpuWork read() {
    find_gpus();
    add_kernels();
    add_copies();
    add_sets();
    add_whole_graphs();
    if (untimed_ > 0) work_.notes.push_back(fmt::format("{} GPU events without times are left out", untimed_));
    return std::move(work_);
  }

 private:
  // Of a GPU event: its times, then these.
  enum GpuColumn : std::uint8_t { kDevice = 2, kStream, kCorrelation, kProcess, kOwn };
  static std::vector<NsightColumn> gpu_columns(const std::vector<NsightColumn>& own) {
    std::vector<NsightColumn> columns = {
        {{"start"}},           {{"end"}}, {{"deviceId"}, false}, {{"streamId"}}, {{"correlationId"}, false},
        {{"globalPid"}, false}};
    columns.insert(columns.end(), own.begin(), own.end());
    return columns;
  }

  [[nodiscard]] const std::string& name(std::optional<std::int64_t> id) const {
    const auto found = names_.find(id.value_or(0));
    if (id && found != names_.end()) return found->second;
    throw SpecError(fmt::format("its name {} is not in {}", id ? std::to_string(*id) : "NULL", nsight::kNames));
  }

  // In the order of the GPUs in the machine, which is that of ranks, whichever ran first.
  void find_gpus() {
    std::map<std::pair<NsightProcess, std::int64_t>, std::int64_t> physical;
    for_each_row(file_, nsight::kDevices, {{{"pid"}}, {{"cudaId"}}, {{"gpuId"}}}, [&](const SqliteRows& row) {
      physical[{static_cast<NsightProcess>(row.integer(0).value_or(0)), row.integer(1).value_or(0)}] =
          row.integer(2).value_or(0);
    });
    constexpr NsightProcess kPidBits = 0xffffff;
    std::set<DeviceOfProcess> found;
    bool processes_known = true;
    for (const std::string& table : nsight::kGpuTables) {
      for_each_row(
          file_, table, {{{"globalPid"}, false}, {{"deviceId"}, false}},
          [&](const SqliteRows& row) {
            const NsightProcess process = process_of(row.integer(0));
            const std::int64_t device = row.integer(1).value_or(0);
            const auto known = physical.find({process & kPidBits, device});
            found.insert({known == physical.end() ? device : known->second, process, device});
            processes_known = processes_known && !row.is_null(0);
            if (found.size() > kMostGpus) throw SpecError(fmt::format("is of GPU number {}", kMostGpus + 1));
          },
          "DISTINCT");
    }
    for (const auto& [number, process, device] : found) {
      if (gpus_.empty()) work_.first_gpu = number;
      const std::string pid = fmt::format("{} GPU {}", process, device);
      gpus_[{process, device}] = records_.gpu_number(pid);
      if (processes_known) records_.host_of_gpu.push_back(records_.host_number(std::to_string(process)));
    }
  }

  // Completes and keeps an event whose own columns the caller has read. False: it has no times.
  bool add_gpu(const SqliteRows& row, GpuEvent event) {
    const std::optional<NsightSpan> span = span_of(row);
    if (!span) ++untimed_;
    if (!span) return false;
    event.start_ns = span->start_ns;
    event.end_ns = span->end_ns;
    event.gpu = gpus_.at({process_of(row.integer(kProcess)), row.integer(kDevice).value_or(0)});
    const std::int64_t stream = row.integer(kStream).value_or(0);
    event.stream = static_cast<std::uint32_t>(stream);
    if (stream != event.stream) throw SpecError(fmt::format("streamId {} is not a stream", stream));
    const auto [known, is_new] = streams_.try_emplace({event.gpu, event.stream}, 0);
    if (is_new) known->second = records_.track(records_.gpus[event.gpu], std::to_string(event.stream));
    records_.count_start(event.start_ns);
    records_.gpu.push_back({event, known->second, row.integer(kCorrelation), 0});
    return true;
  }

  void add_kernels() {
    const std::vector<NsightColumn> columns = gpu_columns(
        {{{"demangledName", "shortName", "mangledName"}}, {{"gridX"}, false}, {{"gridY"}, false}, {{"gridZ"}, false}});
    for_each_row(file_, nsight::kKernels, columns, [&](const SqliteRows& row) {
      const auto extent = [&](int column) { return static_cast<double>(row.integer(column).value_or(0)); };
      GpuEvent event;
      event.name = records_.name_number(name(row.integer(kOwn)));
      event.blocks = blocks_of(extent(kOwn + 1), extent(kOwn + 2), extent(kOwn + 3));
      add_gpu(row, event);
    });
  }

  void add_copies() {
    const std::vector<NsightColumn> columns = gpu_columns({{{"copyKind"}, false}, {{"bytes"}, false}});
    for_each_row(file_, nsight::kCopies, columns, [&](const SqliteRows& row) {
      GpuEvent event;
      event.kind = GpuEventKind::memcpy;
      event.name = records_.name_number(name_of_copy(row.integer(kOwn).value_or(0)));
      event.bytes = std::max<std::int64_t>(0, row.integer(kOwn + 1).value_or(0));
      add_gpu(row, event);
    });
  }

  void add_sets() {
    for_each_row(file_, nsight::kSets, gpu_columns({{{"bytes"}, false}}), [&](const SqliteRows& row) {
      GpuEvent event;
      event.kind = GpuEventKind::memset;
      event.name = records_.name_number("Memset (Device)");
      event.bytes = std::max<std::int64_t>(0, row.integer(kOwn).value_or(0));
      add_gpu(row, event);
    });
  }

  void add_whole_graphs() {
    std::size_t graphs = 0;
    for_each_row(file_, nsight::kWholeGraphs, gpu_columns({{{"graphId"}, false}}), [&](const SqliteRows& row) {
      GpuEvent event;
      event.name = records_.name_number(fmt::format("CUDA graph {}", row.integer(kOwn).value_or(0)));
      if (add_gpu(row, event)) ++graphs;
    });
    if (graphs == 0) return;
    work_.notes.push_back(fmt::format(
        "{} launches of CUDA graphs are recorded as a whole and count as one kernel each: what runs in them, "
        "also what communicates, is not in the export; `nsys profile --cuda-graph-trace=node` records it",
        graphs));
  }

  const SqliteFile& file_;
  const NsightNames& names_;
  TraceRecords& records_;
  NsightGpuWork work_;
  std::map<std::pair<NsightProcess, std::int64_t>, std::uint16_t> gpus_;  // by process and its number of the device
  std::map<std::pair<std::uint16_t, std::uint32_t>, Track> streams_;      // by GPU
  std::size_t untimed_ = 0;
};

}  // namespace

NsightGpuWork add_gpu_work(const SqliteFile& file, const NsightNames& names, TraceRecords& records) {
  return GpuReader(file, names, records).read();
}

}  // namespace moeline
