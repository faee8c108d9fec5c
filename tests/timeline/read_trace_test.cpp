// A trace is read as it stands in the file, each GPU event finds its phase, and what is no trace is refused by name.
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "base/error.hpp"
#include "timeline/trace.hpp"

using namespace moeline;
namespace fs = std::filesystem;

namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& name = "trace.json")
      : folder_(fs::temp_directory_path() / ("moeline_read_trace_" + std::to_string(::getpid()))),
        path_(folder_ / name) {
    fs::create_directories(folder_);
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { fs::remove_all(folder_); }

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path folder_;
  fs::path path_;
};

Trace read(const std::string& content, const std::string& name = "trace.json") {
  return read_trace(TemporaryFile(content, name).path());
}

std::string refusal(const fs::path& path) {
  try {
    (void)read_trace(path);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

// What is said about a file of this content, behind the file's name.
std::string refusal_of(const std::string& content) {
  const TemporaryFile file(content);
  const std::string message = refusal(file.path());
  const std::string prefix = file.path().string() + ": ";
  REQUIRE(message.substr(0, prefix.size()) == prefix);
  CHECK(message.find('\n') == std::string::npos);
  return message.substr(prefix.size());
}

std::string gzipped(const std::string& text) {
  const TemporaryFile file("", "packed.gz");
  gzFile gzip = gzopen(file.path().c_str(), "wb");
  gzwrite(gzip, text.data(), static_cast<unsigned>(text.size()));
  gzclose(gzip);
  std::ostringstream packed;
  packed << std::ifstream(file.path(), std::ios::binary).rdbuf();
  return packed.str();
}

std::string trace_of(const std::string& events) { return R"({"traceEvents": [)" + events + "]}"; }

std::string x(const std::string& cat, const std::string& name, const std::string& track, const std::string& times,
              const std::string& args = "") {
  return R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name + R"(", )" + track + ", " + times +
         R"(, "args": {)" + args + "}}";
}

std::string times(const std::string& ts, const std::string& dur) { return R"("ts": )" + ts + R"(, "dur": )" + dur; }

const std::string kStream7 = R"("pid": 0, "tid": 7)";
const std::string kStream27 = R"("pid": 0, "tid": 27)";
const std::string kMainThread = R"("pid": 1166, "tid": 1166)";
const std::string kAutogradThread = R"("pid": 1166, "tid": 2571)";

std::string kernel(const std::string& ts, const std::string& dur, int correlation = 1,
                   const std::string& track = kStream7) {
  return x("kernel", "gemm", track, times(ts, dur), R"("stream": 7, "correlation": )" + std::to_string(correlation));
}

std::string launch(const std::string& ts, int correlation = 1, const std::string& track = kMainThread) {
  return x("cuda_runtime", "cudaLaunchKernel", track, times(ts, "2"),
           R"("correlation": )" + std::to_string(correlation));
}

std::string range(const std::string& name, const std::string& ts, const std::string& dur,
                  const std::string& track = kMainThread) {
  return x("user_annotation", name, track, times(ts, dur));
}

std::string gpu_range(const std::string& name, const std::string& ts, const std::string& dur,
                      const std::string& track = kStream7) {
  return x("gpu_user_annotation", name, track, times(ts, dur));
}

std::string phase(const Trace& trace, const GpuEvent& event) {
  return event.annotation < 0 ? "none" : trace.annotations.at(static_cast<std::size_t>(event.annotation)).name;
}

// Of a trace with one GPU event.
std::string phase_of(const std::string& events) {
  const Trace trace = read(trace_of(events));
  REQUIRE(trace.gpu_events.size() == 1);
  return phase(trace, trace.gpu_events[0]);
}

}  // namespace

TEST_CASE("kernels, copies and sets are GPU events; everything else is skipped") {
  const Trace trace = read(
      trace_of(x("cpu_op", "aten::mm", kMainThread, times("100", "5")) + "," +
               x("gpu_memset", "Memset", kStream7, times("130", "0"), R"("stream": 7, "correlation": 3)") + "," +
               x("kernel", "combine", kStream27, times("120", "4"), R"("stream": 27, "correlation": 2)") + "," +
               x("gpu_memcpy", "Memcpy", kStream7, times("120", "3"), R"("stream": 7, "correlation": 1)") + "," +
               R"({"ph": "C", "cat": "kernel", "name": "counter", "ts": 1}, 17, "text", [{"ph": "X"}], null, {})"));
  CHECK(trace.time_zero_ns == 100'000);
  CHECK(trace.annotations.empty());
  REQUIRE(trace.gpu_events.size() == 3);
  const auto shown = [&](std::size_t i) {
    const GpuEvent& e = trace.gpu_events[i];
    return std::tuple(e.name, e.kind, e.stream, e.start_ns, e.end_ns, e.annotation);
  };
  CHECK(shown(0) == std::tuple("Memcpy", GpuEventKind::memcpy, 7U, 20'000, 23'000, -1));
  CHECK(shown(1) == std::tuple("combine", GpuEventKind::kernel, 27U, 20'000, 24'000, -1));
  CHECK(shown(2) == std::tuple("Memset", GpuEventKind::memset, 7U, 30'000, 30'000, -1));
}

TEST_CASE("string times equal integer times") {
  const Trace integer = read(trace_of(kernel("1740461679479712", "52") + "," + kernel("1740461679479800", "3")));
  const Trace text =
      read(trace_of(kernel(R"("1740461679479712")", R"("52")") + "," + kernel(R"("1740461679479800")", R"("3")")));
  REQUIRE(text.gpu_events.size() == 2);
  CHECK(text.time_zero_ns == 1'740'461'679'479'712'000);
  CHECK(text.time_zero_ns == integer.time_zero_ns);
  CHECK(text.gpu_events[1].start_ns == 88'000);
  CHECK(text.gpu_events[1].end_ns == integer.gpu_events[1].end_ns);
}

TEST_CASE("nanosecond decimals of epoch times are exact, which doubles would not be") {
  const Trace trace =
      read(trace_of(kernel("1740461679479712.001", "0.004") + "," + kernel("1740461679479712.999", "1.25")));
  CHECK(trace.time_zero_ns == 1'740'461'679'479'712'001);
  CHECK(trace.gpu_events[0].end_ns == 4);
  CHECK(trace.gpu_events[1].start_ns == 998);
  CHECK(trace.gpu_events[1].end_ns == 2248);
}

TEST_CASE("exponents are read, and digits beyond the nanosecond round to the nearest") {
  const auto duration = [](const std::string& dur) { return read(trace_of(kernel("0", dur))).gpu_events[0].end_ns; };
  CHECK(duration("1.5e3") == 1'500'000);
  CHECK(duration("25E-1") == 2'500);
  CHECK(duration("2.5e+0") == 2'500);
  CHECK(duration("12.3449999") == 12'345);
  CHECK(duration("0.0004") == 0);
  CHECK(duration("0.0005") == 1);
  CHECK(duration("0.00009") == 0);
  CHECK(duration("0.9999") == 1'000);
  CHECK(duration("\"0e999999999\"") == 0);
  CHECK(duration("1e-300") == 0);
}

TEST_CASE("times before zero are times too") {
  const Trace trace = read(trace_of(kernel("-3.5", "1") + "," + kernel("2", "1")));
  CHECK(trace.time_zero_ns == -3'500);
  CHECK(trace.gpu_events[1].start_ns == 5'500);
}

TEST_CASE("baseTimeNanoseconds moves time zero and nothing else") {
  const Trace trace = read(R"({"traceEvents": [)" + kernel("2", "1") + "," + kernel("5", "1") +
                           R"(], "baseTimeNanoseconds": 1759276800000000001})");
  CHECK(trace.time_zero_ns == 1'759'276'800'000'002'001);
  CHECK(trace.gpu_events[1].start_ns == 3'000);
}

TEST_CASE("metadata and instants do not set time zero") {
  const Trace trace = read(trace_of(R"({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0},)"
                                    R"({"ph": "i", "name": "mark", "ts": 1},)" +
                                    kernel("5", "1")));
  CHECK(trace.time_zero_ns == 5'000);
}

TEST_CASE("fields may come in any order, nested and unknown ones among them") {
  const Trace trace =
      read(R"({"distributedInfo": {"pg": [{"rank": 5}], "rank": 3, "ranks": {"rank": 6}}, "traceEvents": [)"
           R"({"args": {"grid": [1, [2], {"stream": 9}], "correlation": 4, "more": {"stream": 8}, "stream": 27},)"
           R"( "dur": 2, "nested": {"ts": 0, "args": {"stream": 1}}, "tid": 27, "ts": 10, "name": "k", "pid": 0,)"
           R"( "cat": "kernel", "ph": "X"}], "other": {"traceEvents": [{"ph": "X", "cat": "kernel"}]}})");
  CHECK(trace.rank == 3);
  REQUIRE(trace.gpu_events.size() == 1);
  CHECK(trace.gpu_events[0].stream == 27);
  CHECK(trace.gpu_events[0].end_ns == 2'000);
  CHECK(trace.time_zero_ns == 10'000);
}

TEST_CASE("a bare array of events is a trace") { CHECK(read("[" + kernel("0", "1") + "]").gpu_events.size() == 1); }

TEST_CASE("gzip reads as plain text does, in one member or two, whatever the file is called") {
  const std::string text = trace_of(kernel("0", "1") + "," + kernel("4", "1"));
  CHECK(read(gzipped(text)).gpu_events.size() == 2);
  CHECK(read(gzipped(text.substr(0, 50)) + gzipped(text.substr(50)), "trace.json.gz").gpu_events.size() == 2);
}

TEST_CASE("events that span the read buffer's border are read whole") {
  std::string events = kernel("0", "1");
  for (int i = 1; i < 20'000; ++i) events += ", " + kernel(std::to_string(2 * i), "1", i);
  const Trace trace = read(gzipped(trace_of(events)));
  REQUIRE(trace.gpu_events.size() == 20'000);
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    REQUIRE(event.start_ns == static_cast<std::int64_t>(i) * 2'000);
    REQUIRE(event.name == "gemm");
  }
}

TEST_CASE("a million brackets do not exhaust the stack") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(read(R"({"deep": )" + deep + R"(, "traceEvents": [)" + kernel("0", "1") + "]}").gpu_events.size() == 1);
}

TEST_CASE("an event's name may hold any character") {
  const Trace trace = read(trace_of(x("kernel", R"(void f<\"a\">\n\u00b5s)", kStream7, times("0", "1"))));
  CHECK(trace.gpu_events[0].name == "void f<\"a\">\n\u00b5s");
}

TEST_CASE("without args.stream a numeric tid is the stream") {
  CHECK(read(trace_of(x("kernel", "k", kStream27, times("0", "1")))).gpu_events[0].stream == 27);
  CHECK(read(trace_of(x("kernel", "k", R"("pid": "0", "tid": "23")", times("0", "1")))).gpu_events[0].stream == 23);
  CHECK(refusal_of(trace_of(x("kernel", "k", R"("pid": 0, "tid": "stream 7")", times("0", "1")))) ==
        "event 'k' at byte 17: without args.stream, tid 'stream 7' is not a whole number in range");
  CHECK(refusal_of(trace_of(x("kernel", "k", R"("pid": 0)", times("0", "1")))) ==
        "event 'k' at byte 17: has neither args.stream nor tid");
}

TEST_CASE("the rank is distributedInfo's, else the file name's, else 0") {
  const std::string events = R"("traceEvents": [)" + kernel("0", "1") + "]}";
  const std::string with_rank = R"({"distributedInfo": {"rank": 12}, )" + events;
  const std::string after_events = "{" + events.substr(0, events.size() - 1) + R"(, "distributedInfo": {"rank": "4"}})";
  CHECK(read(with_rank, "rank3.json").rank == 12);
  CHECK(read(after_events, "rank3.json").rank == 4);
  CHECK(read("{" + events, "rank3.json").rank == 3);
  CHECK(read("{" + events, "train_rank_63.json.gz").rank == 63);
  CHECK(read("{" + events, "rank-0_rank-5.pt.trace.json").rank == 5);
  CHECK(read("{" + events, "ranking.json").rank == 0);
  CHECK(read("{" + events, "trace7.json").rank == 0);
  CHECK(read(R"({"distributedInfo": {"backend": "nccl"}, )" + events, "rank2.json").rank == 2);
  CHECK(read(R"({"distributedInfo": null, )" + events, "rank2.json").rank == 2);
}

TEST_CASE("flows without a start, repeated metadata and overlapping events are no reason to refuse") {
  const std::string thread_name = R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "s"}},)";
  const Trace trace = read(trace_of(R"({"ph": "f", "id": 9, "bp": "e", "cat": "ac2g", "name": "ac2g", "ts": 0},)" +
                                    thread_name + thread_name + kernel("0", "10") + "," + kernel("5", "10") +
                                    R"(, {"ph": "X", "cat": "Trace", "ts": 0, "pid": "Spans", "tid": "Profiler"})"));
  CHECK(trace.gpu_events.size() == 2);
}

TEST_CASE("NaN in a field that nobody reads does no harm") {
  CHECK(read(trace_of(x("kernel", "k", kStream7, times("0", "1"), R"("GB/s": NaN, "more": -Infinity)")))
            .gpu_events.size() == 1);
}

TEST_CASE("a GPU event belongs to the innermost annotation around its launch") {
  const std::string events = range("1F1B", "0", "100") + "," + range("attn(F)", "10", "20") + "," +
                             range("mlp(B)", "30", "20") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(events + launch("15")) == "attn(F)");
  CHECK(phase_of(events + launch("40")) == "mlp(B)");
  CHECK(phase_of(events + launch("60")) == "1F1B");
  CHECK(phase_of(events + launch("100")) == "1F1B");
  CHECK(phase_of(events + launch("101")) == "none");
  CHECK(phase_of(events + launch("15", 2)) == "none");
}

TEST_CASE("where two annotations touch, the launch belongs to the later one") {
  CHECK(phase_of(range("attn(F)", "10", "20") + "," + range("mlp(B)", "30", "20") + "," + launch("30") + "," +
                 kernel("200", "5")) == "mlp(B)");
}

TEST_CASE("of annotations that start together the shortest is the innermost") {
  CHECK(phase_of(range("inner", "10", "5") + "," + range("outer", "10", "50") + "," + launch("12") + "," +
                 kernel("200", "5")) == "inner");
}

TEST_CASE("a short annotation that is over does not hide the longer one around it") {
  CHECK(phase_of(range("outer", "0", "50") + "," + range("inner", "10", "5") + "," + range("inner", "20", "5") + "," +
                 launch("18") + "," + kernel("200", "5")) == "outer");
}

TEST_CASE("an annotation on the GPU event's own stream wins over one around its launch") {
  const std::string cpu = range("attn(F)", "0", "50") + "," + launch("10") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(cpu + gpu_range("mlp(F)", "200", "5")) == "mlp(F)");
  CHECK(phase_of(cpu + gpu_range("step", "100", "500") + "," + gpu_range("mlp(F)", "199.999", "5.002")) == "mlp(F)");
  CHECK(phase_of(cpu + gpu_range("on another stream", "200", "5", kStream27)) == "attn(F)");
  CHECK(phase_of(cpu + gpu_range("ends too early", "200", "4")) == "attn(F)");
  CHECK(phase_of(cpu + gpu_range("starts too late", "201", "4")) == "attn(F)");
}

TEST_CASE("an annotation of the GPU holds no launches, one of the CPU no kernels") {
  CHECK(phase_of(gpu_range("gpu", "0", "50") + "," + launch("10") + "," + kernel("200", "5")) == "none");
  CHECK(phase_of(range("cpu", "0", "500", kStream7) + "," + kernel("200", "5")) == "none");
}

TEST_CASE("ProfilerStep annotations are listed and never count") {
  const Trace trace = read(trace_of(range("ProfilerStep#1", "0", "50") + "," + gpu_range("ProfilerStep#1", "0", "500") +
                                    "," + launch("10") + "," + kernel("200", "5")));
  CHECK(phase(trace, trace.gpu_events[0]) == "none");
  REQUIRE(trace.annotations.size() == 2);
  CHECK(trace.annotations[0].on_gpu);
  CHECK_FALSE(trace.annotations[1].on_gpu);
  CHECK(trace.annotations[1].end_ns == 50'000);
}

TEST_CASE("an annotation on the launching thread wins, and one on any thread will do") {
  const std::string events = range("attn(B)", "10", "20") + "," + kernel("200", "5") + ",";
  CHECK(phase_of(events + launch("15", 1, kAutogradThread)) == "attn(B)");
  CHECK(phase_of(events + range("outer, own thread", "0", "90", kAutogradThread) + "," +
                 launch("15", 1, kAutogradThread)) == "outer, own thread");
  CHECK(phase_of(events + range("over", "0", "5", kAutogradThread) + "," + launch("15", 1, kAutogradThread)) ==
        "attn(B)");
}

TEST_CASE("launches of the driver count, and of two calls with one correlation the first") {
  const std::string driver = x("cuda_driver", "cuLaunchKernel", kMainThread, times("15", "1"), R"("correlation": "1")");
  const std::string events =
      range("attn(F)", "10", "10") + "," + range("mlp(B)", "30", "10") + "," + kernel("200", "5") + "," + driver;
  CHECK(phase_of(events) == "attn(F)");
  CHECK(phase_of(events + "," + launch("35")) == "attn(F)");
}

TEST_CASE("a hundred thousand nested annotations are attributed in a moment") {
  constexpr int kDepth = 100'000;
  std::string events;
  for (int i = 0; i < kDepth; ++i) {
    events += range("r" + std::to_string(i), std::to_string(i), std::to_string(2 * (kDepth - i))) + ",";
    events += launch(std::to_string(2 * kDepth - i), i) + "," + kernel(std::to_string(900'000 + i), "1", i) + ",";
  }
  events.pop_back();
  const Trace trace = read(trace_of(events));
  REQUIRE(trace.gpu_events.size() == kDepth);
  // Launch i stands at the end of range i, and of every range inside it nothing is left.
  CHECK(std::all_of(trace.gpu_events.begin(), trace.gpu_events.end(),
                    [&](const GpuEvent& event) { return event.annotation == &event - trace.gpu_events.data(); }));
}

TEST_CASE("a missing file and a folder are refused") {
  CHECK(refusal("/nowhere/trace.json") == "/nowhere/trace.json: no such file");
  CHECK(refusal(fs::temp_directory_path()) == fs::temp_directory_path().string() + ": is a folder, not a file");
}

TEST_CASE("an empty file is refused, packed or plain") {
  CHECK(refusal_of("") == "is empty");
  CHECK(refusal_of(" \n") == "is empty");
  CHECK(refusal_of(gzipped("")) == "is empty");
}

TEST_CASE("binary garbage and text that is no JSON are refused") {
  CHECK(refusal_of("\x7f\x45LF\x02\x01") == "not valid JSON at byte 0: Invalid value.");
  CHECK(refusal_of(std::string(10, '\0')) == "not valid JSON at byte 0: a zero byte");
  CHECK(refusal_of("hello, world") == "not valid JSON at byte 0: Invalid value.");
  const std::string whole = trace_of(kernel("0", "1"));
  const std::string at_its_end = "not valid JSON at byte " + std::to_string(whole.size()) + ": ";
  CHECK(refusal_of(whole + std::string(1, '\0') + "more") == at_its_end + "a zero byte");
  CHECK(refusal_of(whole + "]").starts_with(at_its_end));
}

TEST_CASE("a truncated gzip file is refused at every length") {
  const std::string packed = gzipped(trace_of(kernel("0", "1")));
  for (std::size_t length = 2; length < packed.size(); ++length) {
    CAPTURE(length);
    REQUIRE(refusal_of(packed.substr(0, length)) == "its gzip data is truncated");
  }
}

TEST_CASE("a gzip file with a wrong checksum or damaged data is refused") {
  const std::string packed = gzipped(trace_of(kernel("0", "1")));
  std::string wrong_checksum = packed;
  wrong_checksum[packed.size() - 8] ^= 1;
  CHECK(refusal_of(wrong_checksum) == "its gzip data is damaged: incorrect data check");
  for (std::size_t i = 10; i < packed.size(); ++i) {
    CAPTURE(i);
    std::string damaged = packed;
    damaged[i] ^= 1;
    REQUIRE(refusal_of(damaged).substr(0, 17) == "its gzip data is ");
  }
}

TEST_CASE("JSON that breaks off is refused at every length") {
  const std::string text = trace_of(kernel("0", "1") + "," + kernel("2", "1"));
  for (std::size_t length = 1; length < text.size(); ++length) {
    CAPTURE(length);
    REQUIRE(refusal_of(text.substr(0, length)) == "truncated: its JSON breaks off at byte " + std::to_string(length));
  }
}

TEST_CASE("JSON that is wrong in the middle is refused at its byte") {
  CHECK(refusal_of(R"({"traceEvents": [}, 1, 2]})") == "not valid JSON at byte 17: Invalid value.");
}

TEST_CASE("JSON without traceEvents is not a trace") {
  for (const char* text : {"{}", "17", "\"text\"", R"({"traceEvents": {}})", R"({"traceEvents": "none"})",
                           R"({"args": {"traceEvents": []}})"}) {
    CAPTURE(text);
    CHECK(refusal_of(text) == "not a trace: it has no array traceEvents");
  }
}

TEST_CASE("a trace without GPU events is refused") {
  for (const std::string& text :
       {std::string("[]"), trace_of(""), trace_of(launch("0") + "," + range("a", "0", "1"))}) {
    CAPTURE(text);
    CHECK(refusal_of(text) == "no GPU events (kernel, gpu_memcpy, gpu_memset) among its events");
  }
}

TEST_CASE("a time that is no time is refused, with its event and byte") {
  const auto reason = [](const std::string& ts, const std::string& dur) {
    const std::string text = trace_of(kernel("0", "1") + "," + kernel(ts, dur));
    const std::string message = refusal_of(text);
    const std::string prefix = "event 'gemm' at byte " + std::to_string(text.rfind(R"({"ph")")) + ": ";
    REQUIRE(message.substr(0, prefix.size()) == prefix);
    return message.substr(prefix.size());
  };
  const std::string no_time = "' is not a number of us within 95 years of 0";
  CHECK(reason("NaN", "1") == "ts 'NaN" + no_time);
  CHECK(reason("1", "Infinity") == "dur 'Infinity" + no_time);
  CHECK(reason("\"nan\"", "1") == "ts 'nan" + no_time);
  CHECK(reason("true", "1") == "ts 'true" + no_time);
  CHECK(reason("\"1\\n2\"", "1") == "ts '1?2" + no_time);
  for (const std::string text : {"1.", ".5", "-", "1e", "1e+-5", "1e5x", "0x10", " 1", "+1", "1 us"}) {
    CHECK(reason("\"" + text + "\"", "1") == "ts '" + text + no_time);
  }
  CHECK(reason("1", "-0.001") == "dur '-0.001' is negative");
  CHECK(reason("3000000000000000.001", "1") == "ts '3000000000000000.001" + no_time);
  CHECK(reason("-1e300", "1") == "ts '-1e300" + no_time);
  CHECK(reason("1", "18446744073709551617") == "dur '18446744073709551617" + no_time);
  CHECK(reason("null", "1") == "has no ts");
  CHECK(reason("1", "[1]") == "has no dur");
}

TEST_CASE("the largest times are read without overflow") {
  const Trace trace = read(trace_of(kernel("-3e15", "0") + "," + kernel("3e15", "3e15")));
  CHECK(trace.gpu_events[1].start_ns == 6'000'000'000'000'000'000);
  CHECK(trace.gpu_events[1].end_ns == 9'000'000'000'000'000'000);
}

TEST_CASE("a stream, correlation, rank or base time that is no number is refused") {
  const auto with_args = [](const std::string& args) {
    return trace_of(x("kernel", "k", kStream7, times("0", "1"), args));
  };
  CHECK(refusal_of(with_args(R"("stream": -1)")) ==
        "event 'k' at byte 17: args.stream '-1' is not a whole number in range");
  CHECK(refusal_of(with_args(R"("stream": 7, "correlation": 1.5)")) ==
        "event 'k' at byte 17: args.correlation '1.5' is not a whole number in range");
  const std::string events = R"("traceEvents": [)" + kernel("0", "1") + "]}";
  CHECK(refusal_of(R"({"distributedInfo": {"rank": -1}, )" + events) == "distributedInfo.rank '-1' is not a rank");
  CHECK(refusal_of(R"({"baseTimeNanoseconds": 1e18, )" + events) == "baseTimeNanoseconds '1e18' is not a time");
}

// ---- DeepSeek's own trace ----

namespace {

fs::path measured_folder() {
  const char* set = std::getenv("MOELINE_DATA");
  const fs::path data = set != nullptr ? fs::path(set) : fs::path(MOELINE_SOURCE_DIR) / "../shared/data";
  return data / "traces";
}

// One line of a CSV file whose fields may stand in quotes.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

struct KnownEvent {
  std::int64_t end_us = 0;
  std::string phase;
  int layer = 0;
};

// By (stream, start in us), which is unique. Columns: stream,start_us,dur_us,end_us,name,phase,layer,...
std::map<std::pair<std::uint32_t, std::int64_t>, KnownEvent> known_events(const fs::path& csv) {
  std::map<std::pair<std::uint32_t, std::int64_t>, KnownEvent> known;
  std::ifstream stream(csv);
  std::string line;
  std::getline(stream, line);
  while (std::getline(stream, line)) {
    const std::vector<std::string> f = fields_of(line);
    known[{static_cast<std::uint32_t>(std::stoul(f.at(0))), std::stoll(f.at(1))}] = {std::stoll(f.at(3)), f.at(5),
                                                                                     std::stoi(f.at(6))};
  }
  return known;
}

// Annotations of one name, in order of time, are the layers.
std::vector<int> layers_of(const std::vector<Annotation>& annotations) {
  std::map<std::string, int> seen;
  std::vector<int> layers;
  for (const Annotation& annotation : annotations) layers.push_back(seen[annotation.name]++);
  return layers;
}

}  // namespace

TEST_CASE("every GPU event of DeepSeek's trace finds the phase and layer that a close reading found") {
  const fs::path file = measured_folder() / "deepseek_v3_train_h800_ep64.json.gz";
  const fs::path csv = measured_folder() / "deepseek_v3_train_h800_ep64.kernels.csv";
  if (!fs::exists(file) || !fs::exists(csv)) {
    MESSAGE("skipped: no " << file.string());
    return;
  }
  const Trace trace = read_trace(file);
  const auto known = known_events(csv);
  CHECK(trace.rank == 0);
  CHECK(trace.time_zero_ns == 1'740'461'679'470'630'000);
  REQUIRE(known.size() == 983);
  REQUIRE(trace.gpu_events.size() == 983);
  const auto of_kind = [&](GpuEventKind kind) {
    return std::count_if(trace.gpu_events.begin(), trace.gpu_events.end(),
                         [&](const GpuEvent& event) { return event.kind == kind; });
  };
  CHECK(of_kind(GpuEventKind::kernel) == 963);
  CHECK(of_kind(GpuEventKind::memset) == 12);
  CHECK(of_kind(GpuEventKind::memcpy) == 8);
  CHECK(std::count_if(trace.annotations.begin(), trace.annotations.end(), [](const Annotation& annotation) {
          return !annotation.name.starts_with("ProfilerStep") && annotation.name != "1F1B";
        }) == 40);

  const std::vector<int> layers = layers_of(trace.annotations);
  std::map<std::string, int> events_in_phase;
  std::map<std::string, int> known_in_phase;
  for (const auto& [where, event] : known) ++known_in_phase[event.phase];
  for (const GpuEvent& event : trace.gpu_events) {
    REQUIRE(event.annotation >= 0);
    const auto match = known.find({event.stream, event.start_ns / 1000});
    REQUIRE(match != known.end());
    CHECK(event.end_ns == match->second.end_us * 1000);
    CHECK(phase(trace, event) == match->second.phase);
    CHECK(layers[static_cast<std::size_t>(event.annotation)] == match->second.layer);
    ++events_in_phase[phase(trace, event)];
  }
  CHECK(events_in_phase == known_in_phase);
}
