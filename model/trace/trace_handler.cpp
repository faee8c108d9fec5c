#include "trace/trace_handler.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

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
  if (key == "class") return &event.kernel_class;
  if (key == "assumed") return &event.assumed;
  if (key == "name") return &event.label;
  if (key == "wait_on_stream") return &event.wait_stream;
  if (key == "wait_on_cuda_event_record_corr_id") return &event.wait_record;
  return nullptr;
}

std::string* array_of(EventText& event, std::string_view key) {
  if (key == "grid") return &event.grid;
  if (key == "Input Dims") return &event.dims;
  return nullptr;
}

// Keeps the strings' memory for the next event.
void clear(EventText& event) {
  for (std::string* field :
       {&event.ph,      &event.cat,         &event.name,         &event.pid,         &event.tid,
        &event.ts,      &event.dur,         &event.id,           &event.stream,      &event.correlation,
        &event.layer,   &event.micro_batch, &event.bytes,        &event.external_id, &event.kernel_class,
        &event.assumed, &event.label,       &event.wait_stream,  &event.wait_record, &event.grid,
        &event.dims,    &event.in_elements, &event.out_elements, &event.dtype}) {
    field->clear();
  }
}

}  // namespace

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
      return key == "baseTimeNanoseconds" ? &base_time : nullptr;
    case Scope::distributed_info:
      return key == "rank" ? &rank : nullptr;
    case Scope::device:
      if (past_first_device_) return nullptr;
      return key == "name" ? &device : key == "numSms" ? &sms : nullptr;
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

}  // namespace moeline
