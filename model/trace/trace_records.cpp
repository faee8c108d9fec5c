#include "trace/trace_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trace/read_trace.hpp"
#include "trace/stated_ranks.hpp"

namespace moeline {
namespace {

std::int64_t time_ns(std::string_view field, std::string_view text) {
  if (text.empty()) throw SpecError(fmt::format("has no {}", field));
  const std::optional<std::int64_t> ns = ns_from_us(text);
  if (!ns) {
    throw SpecError(fmt::format("{} '{}' is not a number of us within 95 years of 0", field, one_line(text)));
  }
  return *ns;
}

std::int64_t duration_ns(const EventText& event) {
  const std::int64_t ns = time_ns("dur", event.dur);
  if (ns < 0) throw SpecError(fmt::format("dur '{}' is negative", one_line(event.dur)));
  return ns;
}

template <class Integer>
Integer integer(std::string_view field, std::string_view text) {
  const std::optional<Integer> value = whole_number<Integer>(text);
  if (!value) throw SpecError(fmt::format("{} '{}' is not a whole number in range", field, one_line(text)));
  return *value;
}

// Where args.stream is absent, Kineto's tid of a GPU event is its stream.
std::uint32_t stream_of(const EventText& event) {
  if (!event.stream.empty()) return integer<std::uint32_t>("args.stream", event.stream);
  if (event.tid.empty()) throw SpecError("has neither args.stream nor tid");
  return integer<std::uint32_t>("without args.stream, tid", event.tid);
}

// Others may mean something else by these names: what is no number says nothing.
std::optional<PhasePlace> place_of(const EventText& event) {
  const auto layer = whole_number<std::uint32_t>(event.layer);
  const auto micro_batch = whole_number<std::uint32_t>(event.micro_batch);
  if (!layer || !micro_batch) return std::nullopt;
  return PhasePlace{*layer, *micro_batch};
}

std::int64_t number_or(std::string_view text, std::int64_t otherwise) {
  return whole_number<std::int64_t>(text).value_or(otherwise);
}

// Of one element, by PyTorch's names of types; 0: not known.
std::int64_t element_bytes(std::string_view dtype) {
  if (dtype.starts_with("Float8") || dtype == "Byte" || dtype == "Char" || dtype == "Bool") return 1;
  if (dtype == "BFloat16" || dtype == "Half" || dtype == "Short" || dtype == "UInt16") return 2;
  if (dtype == "Float" || dtype == "Int" || dtype == "UInt32") return 4;
  if (dtype == "Double" || dtype == "Long" || dtype == "UInt64" || dtype == "ComplexFloat") return 8;
  return 0;
}

// Of an NCCL kernel: its input or its output, whichever is larger, as NCCL's own tests count. 0: not stated.
std::int64_t message_bytes(const EventText& event) {
  const std::int64_t elements = std::max(number_or(event.in_elements, 0), number_or(event.out_elements, 0));
  const std::int64_t size = element_bytes(event.dtype);
  constexpr std::int64_t kMost = std::int64_t{1} << 50U;
  return elements > 0 && elements <= kMost ? elements * size : 0;
}

// The position of `pid` in a list of few, which gets it if it is new.
std::uint16_t number_of(const std::string& pid, std::vector<std::string>& list,
                        std::unordered_map<std::string, std::uint16_t>& numbers) {
  constexpr std::size_t kMost = 4096;
  const auto [known, added] = numbers.try_emplace(pid, static_cast<std::uint16_t>(list.size()));
  if (added && list.size() == kMost) throw SpecError(fmt::format("is of process number {}", kMost + 1));
  if (added) list.push_back(pid);
  return known->second;
}

// The next number of an array, with the separator behind it; 0 and an unchanged text where there is none.
double take_number(std::string_view& text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.find(';') < blank) return 0;
  const double value = static_cast<double>(number_or(text.substr(0, blank), 0));
  text.remove_prefix(blank + 1);
  return value;
}

std::vector<std::vector<double>> arrays(std::string_view text) {
  std::vector<std::vector<double>> lists;
  while (!text.empty()) {
    std::string_view array = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), array.size() + 1));
    lists.emplace_back();
    while (array.find(' ') != std::string_view::npos) lists.back().push_back(take_number(array));
  }
  return lists;
}

// 2 m n k of [.., m, k] x [.., k, n]; 0 where the shapes say nothing.
double product_flops(std::string_view name, const std::vector<std::vector<double>>& dims) {
  const bool has_bias = name == "aten::addmm" || name == "aten::baddbmm";
  const std::size_t first = has_bias ? 1 : 0;
  if (dims.size() < first + 2 || dims[first].size() < 2 || dims[first + 1].size() != dims[first].size()) return 0;
  double flops = 2 * dims[first + 1].back();
  for (const double extent : dims[first]) flops *= extent;
  return flops;
}

bool is_product(std::string_view name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm" ||
         name == "aten::_scaled_mm";
}

// "cudaLaunchKernel_ptsz_v7000" is cudaLaunchKernel, with the default stream of its thread.
std::string_view without_version(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits + 1 < name.size() && name.substr(0, digits + 1).ends_with("_v")) {
    name = name.substr(0, digits - 1);
  }
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name;
}

FlowKind flow_kind(std::string_view category) {
  if (category == kStartAfterEnd) return FlowKind::end_to_start;
  if (category == kStartAfterStart) return FlowKind::start_to_start;
  return category == kEndAfterEnd ? FlowKind::end_to_end : FlowKind::any;
}

}  // namespace

std::uint32_t blocks_of(double x, double y, double z) {
  constexpr double kMostBlocks = 4e9;
  const double blocks = x * y * z;
  return blocks > 0 && blocks < kMostBlocks ? static_cast<std::uint32_t>(blocks) : 0;
}

HostCallKind kind_of_call(std::string_view name) {
  name = without_version(name);
  if (name.ends_with("StreamWaitEvent")) return HostCallKind::wait_event;
  if (name.ends_with("EventRecord") || name.ends_with("EventRecordWithFlags")) return HostCallKind::record_event;
  if (name.ends_with("DeviceSynchronize") || name.ends_with("CtxSynchronize")) return HostCallKind::synchronize_device;
  return name.ends_with("Synchronize") ? HostCallKind::synchronize : HostCallKind::launch;
}

bool is_synchronous_copy(std::string_view name) {
  return name.find("Memcpy") != std::string_view::npos && name.find("Async") == std::string_view::npos;
}

std::uint32_t TraceRecords::name_number(const std::string& name, const std::string& stated_class) {
  const auto next = static_cast<std::uint32_t>(names.size());
  key_.assign(name).append(1, '\n').append(stated_class);
  const auto [known, added] = name_ids_.try_emplace(key_, next);
  if (added) names.push_back({name, stated_class});
  return known->second;
}

std::uint16_t TraceRecords::gpu_number(const std::string& pid) { return number_of(pid, gpus, gpu_numbers_); }
std::uint16_t TraceRecords::host_number(const std::string& pid) { return number_of(pid, hosts, host_numbers_); }

Track TraceRecords::track(const std::string& pid, const std::string& tid) {
  key_.assign(pid).append(1, '\n').append(tid);
  const auto next = static_cast<Track>(tracks_.size());
  return tracks_.try_emplace(key_, next).first->second;
}

void TraceRecords::add(const EventText& event) {
  if (event.ph == "s" || event.ph == "f") return add_flow(event);
  if (event.ph == "M" && event.name == "process_name") processes[event.pid] = event.label;
  if (event.ph != "X") return;  // metadata, instants, counters
  if (!event.ts.empty()) count_start(time_ns("ts", event.ts));
  const std::string_view cat = category_of(event);
  if (gpu.empty()) count_category(cat);
  switch (trace_category(cat)) {
    case TraceCategory::kernel:
      return add_gpu(event, GpuEventKind::kernel);
    case TraceCategory::memcpy:
      return add_gpu(event, GpuEventKind::memcpy);
    case TraceCategory::memset:
      return add_gpu(event, GpuEventKind::memset);
    case TraceCategory::call:
      return add_call(event);
    case TraceCategory::synchronisation:
      return add_wait(event);
    case TraceCategory::annotation:
      return add_annotation(event, false);
    case TraceCategory::gpu_annotation:
      return add_annotation(event, true);
    case TraceCategory::cpu_operator:
      return add_operator(event);
    case TraceCategory::other:
      return;
  }
}

std::string_view TraceRecords::category_of(const EventText& event) const {
  if (!event.cat.empty()) return event.cat;
  const auto process = processes.find(event.pid);
  return process != processes.end() && is_gpu_of_rocprof(process->second) ? "kernel" : "";
}

void TraceRecords::count_category(std::string_view category) {
  constexpr std::size_t kMost = 30;  // a file may give each event one of its own
  if (category.empty()) category = "without category";
  auto known = std::find_if(categories_.begin(), categories_.end(),
                            [&](const auto& counted) { return counted.first == category; });
  if (known == categories_.end() && categories_.size() < kMost) {
    known = categories_.insert(known, {std::string(category), 0});
  }
  if (known != categories_.end()) ++known->second;
}

std::string TraceRecords::categories() const {
  constexpr std::size_t kShown = 8;
  std::vector<std::pair<std::string, std::size_t>> sorted = categories_;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one_line(sorted[i].first, 40), sorted[i].second);
  }
  return sorted.size() > kShown ? text + ", ..." : text;
}

void TraceRecords::add_gpu(const EventText& event, GpuEventKind kind) {
  GpuRecord record;
  record.event.name = name_number(event.name, event.kernel_class);
  record.event.kind = kind;
  record.event.gpu = gpu_number(event.pid);
  record.event.stream = stream_of(event);
  record.event.start_ns = time_ns("ts", event.ts);
  record.event.end_ns = record.event.start_ns + duration_ns(event);
  record.event.bytes =
      event.bytes.empty() ? message_bytes(event) : std::max<std::int64_t>(0, number_or(event.bytes, 0));
  record.event.work_ns = event.work_us.empty() ? -1 : ns_from_us(event.work_us).value_or(-1);
  std::string_view grid = event.grid;
  double extents[3];
  for (double& extent : extents) extent = take_number(grid);
  record.event.blocks = blocks_of(extents[0], extents[1], extents[2]);
  record.track = track(event.pid, event.tid);
  if (!event.correlation.empty()) record.correlation = integer<std::int64_t>("args.correlation", event.correlation);
  record.external_id = number_or(event.external_id, 0);
  record.event.collective = collective_of(event);
  gpu.push_back(record);
}

// A few hundred of them are stated by a hundred thousand kernels.
std::int32_t TraceRecords::collective_of(const EventText& event) {
  const std::int32_t group = group_of(event);
  if (group < 0 && event.collective.empty()) return -1;
  key_.assign(event.collective).append(1, '\n').append(std::to_string(group));
  const auto [known, added] = collective_ids_.try_emplace(key_, static_cast<std::int32_t>(collectives.size()));
  if (added) collectives.push_back({event.collective, group});
  return known->second;
}

// A list of ranks that is none says as little as a missing one.
std::int32_t TraceRecords::group_of(const EventText& event) {
  if (event.group_name.empty() && event.group_ranks.empty()) return -1;
  key_.assign(event.group_name).append(1, '\n').append(event.group_ranks).append(1, '\n').append(event.group_size);
  const auto [known, added] = group_ids_.try_emplace(key_, static_cast<std::int32_t>(groups.size()));
  if (!added) return known->second;
  TraceGroup group{event.group_name, event.group_description, event.group_ranks,
                   whole_number<std::uint32_t>(event.group_size).value_or(0)};
  if (!group.ranks.empty() && !stated_ranks(group.ranks)) {
    ++senseless_groups;
    group.ranks.clear();
  }
  groups.push_back(std::move(group));
  return known->second;
}

void TraceRecords::add_call(const EventText& event) {
  const HostCallKind kind = kind_of_call(event.name);
  if (event.correlation.empty() && kind == HostCallKind::launch) return;  // launches nothing
  if (event.assumed == "true") return;                                    // of our own traces
  CallRecord record;
  record.correlation = event.correlation.empty() ? -1 : integer<std::int64_t>("args.correlation", event.correlation);
  record.call.kind = kind;
  record.call.start_ns = time_ns("ts", event.ts);
  record.call.end_ns = record.call.start_ns + (event.dur.empty() ? 0 : duration_ns(event));
  record.call.process = host_number(event.pid);
  record.call.thread = record.track = track(event.pid, event.tid);
  record.may_block = is_synchronous_copy(event.name);
  if (kind == HostCallKind::synchronize) record.call.source_stream = number_or(event.stream, -1);
  calls.push_back(record);
}

void TraceRecords::add_wait(const EventText& event) {
  const std::int64_t stream = number_or(event.stream, -1);
  const std::int64_t source = number_or(event.wait_stream, -1);
  const std::int64_t correlation = number_or(event.correlation, -1);
  if (event.name == "Stream Wait Event")
    waits.push_back({correlation, stream, source, number_or(event.wait_record, -1)});
  if (event.name == "Stream Sync") waits.push_back({correlation, -1, stream, -1});
  if (event.name == "Event Sync") waits.push_back({correlation, -1, source, number_or(event.wait_record, -1)});
}

void TraceRecords::add_annotation(const EventText& event, bool on_gpu) {
  const std::int64_t start = time_ns("ts", event.ts);
  annotations.push_back(
      {{event.name, on_gpu, start, start + duration_ns(event), place_of(event)}, track(event.pid, event.tid)});
}

void TraceRecords::add_flow(const EventText& event) {
  const std::optional<std::int64_t> at = ns_from_us(event.ts);
  if (!at) return;  // somewhere, between something: says nothing
  const std::size_t id = std::hash<std::string_view>()(event.id) * 31 + std::hash<std::string_view>()(event.cat);
  const FlowKind kind = flow_kind(event.cat);
  states_order = states_order || kind != FlowKind::any;
  flows.push_back({id, *at, track(event.pid, event.tid), event.ph == "s", kind});
}

void TraceRecords::add_operator(const EventText& event) {
  if (event.dims.empty() || !is_product(event.name)) return;
  const std::optional<std::int64_t> id = whole_number<std::int64_t>(event.external_id);
  if (id) operator_flops[*id] = product_flops(event.name, arrays(event.dims));
}

namespace {

bool take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

// The "e-3" of a number, and nothing behind it. No exponent at all is 0.
std::optional<int> exponent_of(std::string_view text) {
  if (text.empty()) return 0;
  if (!take(text, "eE")) return std::nullopt;
  if (take(text, "+") && text.starts_with('-')) return std::nullopt;
  return whole_number<int>(text);
}

// The number whose digits are `digits`, with its point behind the first `whole` of them (which may be any number).
std::optional<std::int64_t> rounded(std::string_view digits, std::int64_t whole) {
  const std::size_t zeros = digits.find_first_not_of('0');
  if (zeros == std::string_view::npos) return 0;
  digits.remove_prefix(zeros);
  whole -= static_cast<std::int64_t>(zeros);
  const auto digit = [&](std::int64_t i) {
    return i >= 0 && i < static_cast<std::int64_t>(digits.size()) ? digits[static_cast<std::size_t>(i)] - '0' : 0;
  };
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < whole; ++i) {
    if (value > kLargestTraceTimeNs / 10) return std::nullopt;  // soon, as the first digit is not 0
    value = value * 10 + digit(i);
  }
  if (digit(whole) >= 5) ++value;
  return value <= kLargestTraceTimeNs ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> ns_from_us(std::string_view text) {
  const bool negative = take(text, "-");
  const std::string_view whole = take_digits(text);
  const bool point = take(text, ".");
  const std::string_view fraction = point ? take_digits(text) : std::string_view();
  const std::optional<int> exponent = exponent_of(text);
  if (whole.empty() || (point && fraction.empty()) || !exponent) return std::nullopt;

  constexpr std::int64_t kDigitsOfNs = 3;
  const std::int64_t digits_before_point = static_cast<std::int64_t>(whole.size()) + *exponent + kDigitsOfNs;
  const std::optional<std::int64_t> ns = rounded(std::string(whole).append(fraction), digits_before_point);
  if (!ns) return std::nullopt;
  return negative ? -*ns : *ns;
}

}  // namespace moeline
