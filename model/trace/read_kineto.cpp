#include "trace/read_trace.hpp"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/rapidjson.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trace/assemble_trace.hpp"
#include "trace/gzip_stream.hpp"
#include "trace/trace_records.hpp"

namespace moeline {
namespace {

struct Named {
  std::string_view name;
  TraceCategory category;
};

// The most frequent first.
constexpr Named kNames[] = {
    {"cpu_op", TraceCategory::cpu_operator},    {"kernel", TraceCategory::kernel},
    {"cuda_runtime", TraceCategory::call},      {"user_annotation", TraceCategory::annotation},
    {"mtia_ccp_events", TraceCategory::kernel}, {"Operator", TraceCategory::cpu_operator},
    {"Kernel", TraceCategory::kernel},          {"Memcpy", TraceCategory::memcpy},
    {"Memset", TraceCategory::memset},          {"Runtime", TraceCategory::call},
};

constexpr Named kEndings[] = {
    {"_runtime", TraceCategory::call},
    {"_driver", TraceCategory::call},
    {"_memcpy", TraceCategory::memcpy},
    {"_memset", TraceCategory::memset},
    {"_user_annotation", TraceCategory::gpu_annotation},
    {"_sync", TraceCategory::synchronisation},
};

}  // namespace

TraceCategory trace_category(std::string_view cat) {
  const auto* const name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Named& known) { return cat == known.name; });
  if (name != std::end(kNames)) return name->category;
  const auto* const ending = std::find_if(std::begin(kEndings), std::end(kEndings),
                                          [&](const Named& known) { return cat.ends_with(known.name); });
  return ending != std::end(kEndings) ? ending->category : TraceCategory::other;
}

bool is_gpu_of_rocprof(std::string_view process) {
  const std::size_t digits = process.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == process.size()) return false;
  const std::string_view word = process.substr(0, digits + 1);
  return word == "GPU" || word.ends_with(" GPU");
}

// The JSON of a trace: which of its values mean something, and where they go.

namespace {

/// RapidJSON's SAX handler (hence the capitals) for numbers as strings. Fields of an event come in any order, so they
/// are collected as text and looked at when the event is complete. Returning false stops the parser.
class TraceHandler {
 public:
  explicit TraceHandler(const GzipStream& stream) : stream_(stream) {}

  TraceRecords records;
  bool has_events = false;
  std::string rank;                    ///< as in the file; empty: absent
  std::string base_time;               ///< as in the file; empty: absent
  std::string device;                  ///< name of the first device; empty: absent
  std::string sms;                     ///< numSms of the first device; empty: absent
  std::string memory;                  ///< its totalGlobalMem; empty: absent
  std::string world_size;              ///< distributedInfo's; empty: absent
  std::string scenario;                ///< of our own traces; empty: absent
  std::string refusal;                 ///< why the parser was stopped
  std::vector<std::string> root_keys;  ///< the first of the outermost object

  bool StartObject() { return open(false); }
  bool StartArray() { return open(true); }
  bool EndObject(rapidjson::SizeType /*members*/) { return (scopes_.back() != Scope::event || add_event()) && close(); }
  bool EndArray(rapidjson::SizeType /*elements*/);
  bool Key(const char* text, rapidjson::SizeType length, bool copy);

  bool String(const char* text, rapidjson::SizeType length, bool /*copy*/) { return scalar({text, length}); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool /*copy*/) { return scalar({text, length}); }
  bool Bool(bool value) { return scalar(value ? "true" : "false"); }
  bool Null() { return scalar(""); }
  // Numbers come as text: RapidJSON compiles these and never calls them.
  static bool Int(int /*value*/) { return false; }
  static bool Uint(unsigned /*value*/) { return false; }
  static bool Int64(std::int64_t /*value*/) { return false; }
  static bool Uint64(std::uint64_t /*value*/) { return false; }
  static bool Double(double /*value*/) { return false; }

 private:
  /// What the object or array we are in is to us.
  enum class Scope : std::uint8_t { root, events, event, args, numbers, distributed_info, devices, device, other };

  [[nodiscard]] Scope scope_of_key(std::string_view key) const;
  [[nodiscard]] std::string* value_of_key(std::string_view key);
  [[nodiscard]] Scope scope_of_nested(bool is_array) const;
  bool refuse(std::string why);
  bool open(bool is_array);
  bool close();
  bool scalar(std::string_view text);
  bool add_event();

  const GzipStream& stream_;
  std::vector<Scope> scopes_;
  Scope nested_ = Scope::other;   // what the last key would open
  std::string* value_ = nullptr;  // where the last key's scalar goes; nullptr: nobody needs it
  std::string* list_ = nullptr;   // where the numbers of an array go
  bool past_first_device_ = false;
  EventText event_;
  std::size_t event_offset_ = 0;
  std::size_t events_ = 0;
};

constexpr std::size_t kLongestList = 1U << 20U;   // bytes of the numbers of a list that we want
constexpr std::size_t kMostEvents = 100'000'000;  // a few MB of gzip may unpack to any number

std::string* field_of(EventText& event, std::string_view key) {
  if (key == "ph") return &event.ph;
  if (key == "cat") return &event.cat;
  if (key == "name") return &event.name;
  if (key == "pid") return &event.pid;
  if (key == "tid") return &event.tid;
  if (key == "ts") return &event.ts;
  if (key == "dur") return &event.dur;
  if (key == "id") return &event.id;
  return nullptr;
}

std::string* argument_of(EventText& event, std::string_view key) {
  if (key == "stream") return &event.stream;
  if (key == "correlation") return &event.correlation;
  if (key == "External id") return &event.external_id;
  if (key == "layer") return &event.layer;
  if (key == "micro_batch") return &event.micro_batch;
  if (key == "bytes") return &event.bytes;
  if (key == "In msg nelems") return &event.in_elements;
  if (key == "Out msg nelems") return &event.out_elements;
  if (key == "dtype") return &event.dtype;
  if (key == "Process Group Name") return &event.group_name;
  if (key == "Process Group Description") return &event.group_description;
  if (key == "Process Group Ranks") return &event.group_ranks;
  if (key == "Group size") return &event.group_size;
  if (key == "Collective name") return &event.collective;
  if (key == "class") return &event.kernel_class;
  if (key == "assumed") return &event.assumed;
  if (key == "work us") return &event.work_us;
  if (key == "name") return &event.label;
  if (key == "wait_on_stream") return &event.wait_stream;
  if (key == "wait_on_cuda_event_record_corr_id") return &event.wait_record;
  return nullptr;
}

std::string* array_of(EventText& event, std::string_view key) {
  if (key == "grid") return &event.grid;
  if (key == "Input Dims") return &event.dims;
  if (key == "Process Group Ranks") return &event.group_ranks;  // a text, or a list
  return nullptr;
}

// Keeps the strings' memory for the next event.
void clear(EventText& event) {
  for (std::string* field :
       {&event.ph,      &event.cat,         &event.name,         &event.pid,         &event.tid,
        &event.ts,      &event.dur,         &event.id,           &event.stream,      &event.correlation,
        &event.layer,   &event.micro_batch, &event.bytes,        &event.external_id, &event.kernel_class,
        &event.assumed, &event.label,       &event.wait_stream,  &event.wait_record, &event.grid,
        &event.dims,    &event.in_elements, &event.out_elements, &event.dtype,       &event.work_us}) {
    field->clear();
  }
  for (std::string* field :
       {&event.group_name, &event.group_description, &event.group_ranks, &event.group_size, &event.collective}) {
    field->clear();
  }
}

bool TraceHandler::Key(const char* text, rapidjson::SizeType length, bool /*copy*/) {
  const std::string_view key(text, length);
  nested_ = scope_of_key(key);
  value_ = value_of_key(key);
  if (scopes_.back() == Scope::args) list_ = array_of(event_, key);
  constexpr std::size_t kEnough = 20;
  if (scopes_.back() == Scope::root && root_keys.size() < kEnough) root_keys.emplace_back(key);
  return true;
}

TraceHandler::Scope TraceHandler::scope_of_key(std::string_view key) const {
  const Scope here = scopes_.back();
  if (here == Scope::event && key == "args") return Scope::args;
  if (here == Scope::root && key == "traceEvents") return Scope::events;
  if (here == Scope::root && key == "distributedInfo") return Scope::distributed_info;
  if (here == Scope::root && key == "deviceProperties") return Scope::devices;
  return Scope::other;
}

std::string* TraceHandler::value_of_key(std::string_view key) {
  switch (scopes_.back()) {
    case Scope::event:
      return field_of(event_, key);
    case Scope::args:
      return argument_of(event_, key);
    case Scope::root:
      return key == "baseTimeNanoseconds" ? &base_time : key == "scenario" ? &scenario : nullptr;
    case Scope::distributed_info:
      return key == "rank" ? &rank : key == "world_size" ? &world_size : nullptr;
    case Scope::device:
      if (past_first_device_) return nullptr;
      return key == "name" ? &device : key == "numSms" ? &sms : key == "totalGlobalMem" ? &memory : nullptr;
    case Scope::events:
    case Scope::numbers:
    case Scope::devices:
    case Scope::other:
      break;
  }
  return nullptr;
}

TraceHandler::Scope TraceHandler::scope_of_nested(bool is_array) const {
  if (scopes_.empty()) return is_array ? Scope::events : Scope::root;  // a bare array of events is a trace too
  const Scope here = scopes_.back();
  if (here == Scope::events) return is_array ? Scope::other : Scope::event;
  if (here == Scope::devices) return is_array ? Scope::other : Scope::device;
  if (here == Scope::numbers || (here == Scope::args && list_ != nullptr)) {
    return is_array ? Scope::numbers : Scope::other;
  }
  const bool fits = is_array == (nested_ == Scope::events || nested_ == Scope::devices);
  return fits ? nested_ : Scope::other;
}

bool TraceHandler::refuse(std::string why) {
  refusal = std::move(why);
  return false;
}

bool TraceHandler::open(bool is_array) {
  scopes_.push_back(scope_of_nested(is_array));
  nested_ = Scope::other;
  value_ = nullptr;
  if (scopes_.back() == Scope::events) has_events = true;
  if (scopes_.back() == Scope::event) {
    clear(event_);
    event_offset_ = stream_.Tell();  // RapidJSON's iterative parser has not taken the brace yet
  }
  return true;
}

bool TraceHandler::close() {
  past_first_device_ = past_first_device_ || scopes_.back() == Scope::device;
  scopes_.pop_back();
  return true;
}

bool TraceHandler::EndArray(rapidjson::SizeType /*elements*/) {
  if (scopes_.back() == Scope::numbers) {
    list_->push_back(';');
    if (list_->size() > kLongestList) return refuse(fmt::format("has a list of more than {} bytes", kLongestList));
    if (scopes_[scopes_.size() - 2] != Scope::numbers) list_ = nullptr;
  }
  return close();
}

bool TraceHandler::scalar(std::string_view text) {
  if (value_ != nullptr) {
    value_->assign(text);
  } else if (list_ != nullptr && scopes_.back() == Scope::numbers) {
    list_->append(text).push_back(' ');
    if (list_->size() > kLongestList) return refuse(fmt::format("has a list of more than {} bytes", kLongestList));
  }
  return true;
}

bool TraceHandler::add_event() {
  try {
    records.add(event_);
    return ++events_ <= kMostEvents || refuse(fmt::format("has more than {} events", kMostEvents));
  } catch (const SpecError& error) {
    refusal = fmt::format("event '{}' at byte {}: {}", one_line(event_.name), event_offset_, error.what());
    return false;
  }
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it

bool begins_like_json(const GzipStream& stream) {
  const std::size_t mark = stream.beginning().starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t first = stream.beginning().find_first_not_of(" \t\r\n", mark);
  return first != std::string::npos && (stream.beginning()[first] == '{' || stream.beginning()[first] == '[');
}

std::string problem(const rapidjson::ParseResult& result, const TraceHandler& handler, const GzipStream& stream) {
  if (!handler.refusal.empty()) return handler.refusal;
  const bool blank = result.Code() == rapidjson::kParseErrorDocumentEmpty;
  if (blank && stream.at_end()) return "is empty";
  if (stream.at_end()) return fmt::format("truncated: its JSON breaks off at byte {}", stream.Tell());
  const std::string hint = begins_like_json(stream) ? "" : fmt::format("; {}", kWhatIsRead);
  if (blank || !result.IsError()) return fmt::format("not valid JSON at byte {}: a zero byte{}", stream.Tell(), hint);
  return fmt::format("not valid JSON at byte {}: {}{}", result.Offset(), rapidjson::GetParseError_En(result.Code()),
                     hint);
}

// Of RapidJSON's stack, which holds the string at hand and what is open: a few KB of gzip may unpack to gigabytes.
struct BoundedAllocator {
  static constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::string file{};

  // NOLINTBEGIN(readability-identifier-naming, readability-convert-member-functions-to-static): RapidJSON's concept
  void* Malloc(std::size_t size) const { return Realloc(nullptr, 0, size); }
  void* Realloc(void* old, std::size_t /*old_size*/, std::size_t size) const {
    if (size > kMost)
      throw SpecError(file, 0, "is no trace: it has a string, or brackets in each other, of more than 32 MiB");
    return size == 0 ? (std::free(old), nullptr) : std::realloc(old, size);
  }
  static void Free(void* block) { std::free(block); }
  // NOLINTEND
};

void parse(GzipStream& stream, TraceHandler& handler, const std::string& file) {
  // Iterative: deep nesting must not exhaust the stack. NaN: some writers put it in args, where it does no harm.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  for (std::size_t i = 0; stream.beginning().starts_with(kByteOrderMark) && i < kByteOrderMark.size(); ++i)
    stream.Take();
  BoundedAllocator memory{file};
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, BoundedAllocator> reader(&memory);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!result.IsError() && stream.at_end()) return;
  const std::optional<std::string_view> foreign = foreign_file(file, stream.beginning());
  if (foreign && !stream.beginning().empty() && !begins_like_json(stream))
    throw SpecError(file, 0, fmt::format("is {}; {}", *foreign, kWhatIsRead));
  const std::string message = problem(result, handler, stream);
  stream.drain();  // if the gzip data is damaged, that is what is wrong
  throw SpecError(file, 0, message);
}

std::optional<std::uint32_t> rank_of(const TraceHandler& handler, const std::string& file) {
  if (handler.rank.empty()) return std::nullopt;
  const auto rank = whole_number<std::uint32_t>(handler.rank);
  if (rank) return rank;
  throw SpecError(file, 0, fmt::format("distributedInfo.rank '{}' is not a rank", one_line(handler.rank)));
}

std::int64_t base_time_ns(const TraceHandler& handler, const std::string& file) {
  if (handler.base_time.empty()) return 0;
  const auto base = whole_number<std::int64_t>(handler.base_time);
  if (base && *base >= 0 && *base <= kLargestTraceTimeNs) return *base;
  throw SpecError(file, 0, fmt::format("baseTimeNanoseconds '{}' is not a time", one_line(handler.base_time)));
}

}  // namespace

Trace read_kineto(GzipStream& stream, const std::filesystem::path& path) {
  const std::string file = path.string();
  TraceHandler handler(stream);
  parse(stream, handler, file);
  if (!handler.has_events) {
    const std::optional<std::string_view> foreign = foreign_json(handler.root_keys);
    if (foreign) throw SpecError(file, 0, fmt::format("is {}; {}", *foreign, kWhatIsRead));
    throw SpecError(file, 0, "not a trace: it has no array traceEvents");
  }
  if (handler.records.gpu.empty()) {
    const std::string others = handler.records.categories();
    throw SpecError(file, 0,
                    fmt::format("no GPU events (kernel, gpu_memcpy, gpu_memset) among its events{}{}",
                                others.empty() ? "" : ", which are ", others));
  }
  TraceFacts facts;
  facts.device = handler.device;
  facts.sms = whole_number<std::uint32_t>(handler.sms).value_or(0);
  facts.memory_bytes = static_cast<double>(whole_number<std::int64_t>(handler.memory).value_or(0));
  facts.world_size = whole_number<std::uint32_t>(handler.world_size).value_or(0);
  facts.scenario = handler.scenario;
  facts.base_time_ns = base_time_ns(handler, file);
  facts.counts_from_zero = !handler.base_time.empty() && facts.base_time_ns == 0;
  facts.rank = rank_of(handler, file);
  return assemble(std::move(handler.records), facts, path);
}

}  // namespace moeline
