#include "timeline/trace_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "timeline/trace_numbers.hpp"

namespace moeline {

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 80));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return line;
}

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

}  // namespace

Track TraceRecords::track_of(const EventText& event) {
  const auto next = static_cast<Track>(tracks_.size());
  return tracks_.try_emplace(event.pid + '\n' + event.tid, next).first->second;
}

void TraceRecords::add(const EventText& event) {
  if (event.ph != "X") return;  // flows, metadata, instants, counters
  if (!event.ts.empty()) {
    const std::int64_t start = time_ns("ts", event.ts);
    earliest_ns_ = std::min(earliest_ns_.value_or(start), start);
  }
  const std::string_view cat = event.cat;
  if (cat == "kernel") {
    add_gpu(event, GpuEventKind::kernel);
  } else if (cat == "gpu_memcpy") {
    add_gpu(event, GpuEventKind::memcpy);
  } else if (cat == "gpu_memset") {
    add_gpu(event, GpuEventKind::memset);
  } else if (cat == "cuda_runtime" || cat == "cuda_driver") {
    add_launch(event);
  } else if (cat == "user_annotation" || cat == "gpu_user_annotation") {
    add_annotation(event, cat == "gpu_user_annotation");
  }
}

void TraceRecords::add_gpu(const EventText& event, GpuEventKind kind) {
  GpuRecord record;
  record.event.name = event.name;
  record.event.kind = kind;
  record.event.stream = stream_of(event);
  record.event.start_ns = time_ns("ts", event.ts);
  record.event.end_ns = record.event.start_ns + duration_ns(event);
  record.track = track_of(event);
  if (!event.correlation.empty()) record.correlation = integer<std::int64_t>("args.correlation", event.correlation);
  gpu.push_back(std::move(record));
}

void TraceRecords::add_launch(const EventText& event) {
  if (event.correlation.empty()) return;  // launches nothing
  launches.push_back(
      {integer<std::int64_t>("args.correlation", event.correlation), time_ns("ts", event.ts), track_of(event)});
}

void TraceRecords::add_annotation(const EventText& event, bool on_gpu) {
  const std::int64_t start = time_ns("ts", event.ts);
  annotations.push_back({{event.name, on_gpu, start, start + duration_ns(event), place_of(event)}, track_of(event)});
}

}  // namespace moeline
