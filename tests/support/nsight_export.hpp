// The work of a Kineto trace as Nsight Systems' SQLite export tells it, in the dialects of several of its versions.
#pragma once

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <sqlite3.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/trace_text.hpp"
#include "trace/trace_records.hpp"

namespace moeline::testing {

/// What differs between exports of one work.
struct NsightVersion {
  bool text_ids = true;          ///< ranges have the number of their text, else the text itself
  bool target_info = true;       ///< the GPU's name, the session's start, columns of CUDA graphs
  bool kernels_alone = false;    ///< neither calls nor ranges nor copies
  bool mangled = false;          ///< kernels by their mangled names' column alone
  bool one_device_each = false;  ///< each GPU is device 0 of a process of its own
};

inline const NsightVersion kNsight2020{.text_ids = false, .target_info = false};
inline const NsightVersion kNsight2025{};
inline const NsightVersion kKernelsAlone{.target_info = false, .kernels_alone = true};

/// A database made by SQL, as the bytes of its file.
class SqliteWriter {
 public:
  SqliteWriter() {
    REQUIRE(sqlite3_open((folder_ / "made.sqlite").c_str(), &connection_) == SQLITE_OK);
    run("PRAGMA page_size = 512; PRAGMA synchronous = OFF; BEGIN");
  }
  ~SqliteWriter() { sqlite3_close(connection_); }
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  SqliteWriter& run(const std::string& sql) {
    char* problem = nullptr;
    sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, &problem);
    REQUIRE_MESSAGE(problem == nullptr, sql << ": " << problem);
    return *this;
  }
  /// Values as SQL writes them; an empty one is NULL.
  SqliteWriter& insert(const std::string& table, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + (value.empty() ? "NULL" : value);
    return run("INSERT INTO " + table + " VALUES (" + list + ")");
  }
  std::string bytes() {
    run("COMMIT");
    std::string content = content_of(folder_ / "made.sqlite");
    run("BEGIN");
    return content;
  }

 private:
  TemporaryFolder folder_;
  sqlite3* connection_ = nullptr;
};

inline std::string sql_text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

class NsightWriter {
 public:
  explicit NsightWriter(const NsightVersion& version) : version_(version) { create_tables(); }

  SqliteWriter& sql() { return sql_; }

  /// The number of a name.
  std::string id(const std::string& name) {
    const auto [known, is_new] = ids_.try_emplace(name, std::to_string(100 + ids_.size()));
    if (is_new) sql_.insert("StringIds", {known->second, sql_text(name)});
    return known->second;
  }
  static std::int64_t global(std::int64_t pid, std::int64_t tid = 0) {
    constexpr std::int64_t kMachine = std::int64_t{1} << 48;
    return kMachine + (pid << 24) + tid % (1 << 24);
  }

  std::string bytes() { return sql_.bytes(); }

 private:
  void create_tables() {
    const std::string graph = version_.target_info ? ", graphNodeId INTEGER" : "";
    const std::string names = version_.mangled ? "mangledName INTEGER" : "shortName INTEGER, demangledName INTEGER";
    sql_.run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)");
    sql_.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, "
        "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, registersPerThread INTEGER, "
        "gridX INTEGER, gridY INTEGER, gridZ INTEGER, " +
        names + graph + ")");
    if (version_.kernels_alone) return;
    sql_.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
        "correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
        "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
        "correlationId INTEGER, globalPid INTEGER, eventId INTEGER)");
    sql_.run("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, domainId INTEGER, " +
             std::string(version_.text_ids ? "text TEXT, textId INTEGER" : "text TEXT") + ", globalTid INTEGER)");
    if (!version_.target_info) return;
    sql_.run(
        "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, smCount INTEGER);"
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT)");
  }

  NsightVersion version_;
  SqliteWriter sql_;
  std::map<std::string, std::string> ids_;
};

namespace nsight {

inline std::string field(const rapidjson::Value& object, const char* key) {
  if (!object.IsObject() || !object.HasMember(key) || !object[key].IsString()) return "";
  return object[key].GetString();
}

inline std::int64_t ns(const std::string& us) { return ns_from_us(us).value(); }

class Converter {
 public:
  Converter(const std::string& kineto, const NsightVersion& version) : version_(version), writer_(version) {
    document_.Parse<rapidjson::kParseNumbersAsStringsFlag>(kineto.c_str());
    REQUIRE_FALSE(document_.HasParseError());
  }

  std::string bytes() {
    for (const rapidjson::Value& event : document_["traceEvents"].GetArray()) find_pids(event);
    for (const rapidjson::Value& event : document_["traceEvents"].GetArray()) {
      if (field(event, "ph") == "X") add(event);
    }
    if (version_.target_info && !version_.kernels_alone) add_target();
    return writer_.bytes();
  }

 private:
  void find_pids(const rapidjson::Value& event) {
    const std::string cat = field(event, "cat");
    std::vector<std::string>* pids = is_gpu(cat) ? &gpus_ : cat == "cuda_runtime" ? &hosts_ : nullptr;
    if (pids == nullptr) return;
    if (std::find(pids->begin(), pids->end(), field(event, "pid")) == pids->end()) pids->push_back(field(event, "pid"));
  }
  static bool is_gpu(const std::string& cat) { return cat == "kernel" || cat == "gpu_memcpy" || cat == "gpu_memset"; }

  // As many hosts as GPUs: each has its own.
  [[nodiscard]] std::int64_t host_of(std::size_t gpu) const {
    if (hosts_.empty()) return 4711;
    return std::stoll(hosts_.size() == gpus_.size() ? hosts_[gpu] : hosts_[0]);
  }

  void add(const rapidjson::Value& event) {
    const std::string cat = field(event, "cat");
    if (is_gpu(cat) && (cat == "kernel" || !version_.kernels_alone)) add_gpu(event, cat);
    if (version_.kernels_alone) return;
    if (cat == "cuda_runtime" || cat == "cuda_driver") add_call(event);
    if (cat == "user_annotation") add_range(event);
    if (cat == "cuda_sync") add_wait(event);
  }

  [[nodiscard]] static std::pair<std::string, std::string> times_of(const rapidjson::Value& event) {
    const std::int64_t start = ns(field(event, "ts"));
    return {std::to_string(start), std::to_string(start + ns(field(event, "dur")))};
  }

  void add_gpu(const rapidjson::Value& event, const std::string& cat) {
    const rapidjson::Value& args = event["args"];
    const auto gpu =
        static_cast<std::size_t>(std::find(gpus_.begin(), gpus_.end(), field(event, "pid")) - gpus_.begin());
    const auto [start, end] = times_of(event);
    const std::string stream = field(args, "stream").empty() ? field(event, "tid") : field(args, "stream");
    std::vector<std::string> values = {start,
                                       end,
                                       std::to_string(version_.one_device_each ? 0 : gpu),
                                       "1",
                                       stream,
                                       field(args, "correlation"),
                                       std::to_string(NsightWriter::global(host_of(gpu)))};
    const std::string name = field(event, "name");
    if (cat == "kernel") {
      values.insert(values.end(), {"32", "", "", ""});
      if (args.HasMember("grid")) {
        for (rapidjson::SizeType i = 0; i < 3; ++i) values[8 + i] = args["grid"][i].GetString();
      }
      if (!version_.mangled) values.push_back(writer_.id(name.substr(0, 8)));
      values.push_back(writer_.id(name));
      if (version_.target_info) values.push_back(field(args, "graph node id"));
      writer_.sql().insert("CUPTI_ACTIVITY_KIND_KERNEL", values);
    } else if (cat == "gpu_memcpy") {
      values.insert(values.end(), {field(args, "bytes"), name.find("HtoD") != std::string::npos ? "1" : "2"});
      writer_.sql().insert("CUPTI_ACTIVITY_KIND_MEMCPY", values);
    } else {
      values.insert(values.end(), {"0", field(args, "bytes")});
      writer_.sql().insert("CUPTI_ACTIVITY_KIND_MEMSET", values);
    }
  }

  static std::string thread_of(const rapidjson::Value& event) {
    return std::to_string(NsightWriter::global(std::stoll(field(event, "pid")), std::stoll(field(event, "tid"))));
  }

  void add_call(const rapidjson::Value& event) {
    const auto [start, end] = times_of(event);
    const std::string name = field(event, "name") + "_v7000";
    writer_.sql().insert("CUPTI_ACTIVITY_KIND_RUNTIME", {start, end, "0", thread_of(event),
                                                         field(event["args"], "correlation"), writer_.id(name), "0"});
  }

  void add_range(const rapidjson::Value& event) {
    const auto [start, end] = times_of(event);
    const std::string name = field(event, "name");
    std::vector<std::string> values = {start, end, ++ranges_ % 2 == 0 ? "59" : "60", "0"};
    if (version_.text_ids) values.insert(values.end(), {"", writer_.id(name)});
    if (!version_.text_ids) values.push_back(sql_text(name));
    values.push_back(thread_of(event));
    writer_.sql().insert("NVTX_EVENTS", values);
  }

  void add_wait(const rapidjson::Value& event) {
    const rapidjson::Value& args = event["args"];
    const std::string record = field(args, "wait_on_cuda_event_record_corr_id");
    if (record.empty()) return;
    const auto [start, end] = times_of(event);
    const std::string process = std::to_string(NsightWriter::global(host_of(0)));
    writer_.sql().insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {start, end, "0", "1", field(args, "stream"),
                                                                 field(args, "correlation"), process, "2", record});
    writer_.sql().insert("CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                         {"0", "1", field(args, "wait_on_stream"), record, process, record});
  }

  void add_target() {
    if (document_.HasMember("deviceProperties")) {
      const rapidjson::Value& device = document_["deviceProperties"][0];
      writer_.sql().insert("TARGET_INFO_GPU", {"0", "0", sql_text(field(device, "name")), field(device, "numSms")});
    }
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      writer_.sql().insert(
          "TARGET_INFO_CUDA_DEVICE",
          {std::to_string(gpu), std::to_string(version_.one_device_each ? 0 : gpu), std::to_string(host_of(gpu))});
    }
    writer_.sql().insert("TARGET_INFO_SESSION_START_TIME", {"1700000000000000000", "'2023-11-14'"});
  }

  NsightVersion version_;
  NsightWriter writer_;
  rapidjson::Document document_;
  std::vector<std::string> gpus_, hosts_;
  int ranges_ = 0;
};

}  // namespace nsight

/// The export's bytes. Of the host, calls and annotations are in it; of annotations' twins on streams nothing is.
inline std::string nsight_export(const std::string& kineto, const NsightVersion& version = {}) {
  return nsight::Converter(kineto, version).bytes();
}

}  // namespace moeline::testing
