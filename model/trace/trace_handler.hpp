// The JSON of a trace: which of its values mean something, and where they go.
#pragma once

#include <rapidjson/rapidjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/gzip_stream.hpp"
#include "trace/trace_records.hpp"

namespace moeline {

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

}  // namespace moeline
