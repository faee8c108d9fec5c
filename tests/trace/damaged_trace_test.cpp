// What is no trace, or a damaged one, is refused by name and place.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/trace_text.hpp"
#include "trace/read_trace.hpp"

TEST_SUITE("trace/damaged_trace") {

namespace fs = std::filesystem;
using namespace moeline;
using namespace moeline::testing;

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
  const std::string hint = "; " + std::string(kWhatIsRead);
  CHECK(refusal_of("\x7f\x45LF\x02\x01") == "not valid JSON at byte 0: Invalid value." + hint);
  CHECK(refusal_of(std::string(10, '\0')) == "not valid JSON at byte 0: a zero byte" + hint);
  CHECK(refusal_of("hello, world") == "not valid JSON at byte 0: Invalid value." + hint);
  const std::string whole = trace_of(kernel("0", "1"));
  const std::string at_its_end = "not valid JSON at byte " + std::to_string(whole.size()) + ": ";
  CHECK(refusal_of(whole + std::string(1, '\0') + "more") == at_its_end + "a zero byte");
  CHECK(refusal_of(whole + "]").starts_with(at_its_end));
}

TEST_CASE("files of other profilers and archives are called what they are, with what is read instead") {
  const auto refused = [](const std::string& name, const std::string& content) {
    const TemporaryFolder folder;
    const std::string file = folder.write(name, content);
    const std::string message = refusal(file);
    REQUIRE(message.starts_with(file + ": is "));
    CHECK(message.ends_with("; " + std::string(kWhatIsRead)));
    return message.substr(file.size() + 2, message.rfind("; ") - file.size() - 2);
  };
  const std::string sqlite = std::string("SQLite format 3\0\x10\0\1\1", 20) + std::string(200'000, '\0');
  const std::string report =
      "is a report of Nsight Systems: `nsys export --type sqlite` makes a file of it that is read";
  CHECK(refused("report.json.gz", gzipped(sqlite)) == "is an SQLite database inside gzip: unpack it first");
  CHECK(refused("report.nsys-rep", std::string("\x01\0NVIDIA", 8)) == report);
  CHECK(refused("report.qdrep", "QDREP") == report);
  CHECK(refused("report.ncu-rep", "NVR") == "is a report of Nsight Compute");
  CHECK(refused("t.pftrace", "\x0a\x10 packet") == "is a protobuf trace of Perfetto");
  CHECK(refused("perf.data", "PERFILE2h\x01") == "is a recording of Linux perf");
  CHECK(refused("t.zip", "PK\x03\x04\x14") == "is a zip archive");
  CHECK(refused("t.json.zst", "\x28\xb5\x2f\xfd\x04") == "is compressed by zstd");
  CHECK(refused("t.json.xz", "\xfd\x37zXZ") == "is compressed by xz");
  CHECK(refused("t.tgz", gzipped("t.json" + std::string(251, '\0') + "ustar")) == "is a tar archive");
}

TEST_CASE("execution traces are called what they are, whatever the file is called, with what they lack") {
  const std::string text =
      R"({"schema": "1.1.1-chakra.0.0.4", "pid": 17, "time": "2025-04-11 13:43:51", "start_ts": 2188,
    "nodes": [{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1}, {"id": 3, "name": "aten::mm"}],
    "finish_ts": 2190})";
  const std::string what =
      "is an execution trace of PyTorch (ExecutionTraceObserver, Chakra): it says which operators ran after which, and "
      "not when kernels ran; " +
      std::string(kWhatIsRead);
  CHECK(refusal_of(text) == what);
  CHECK(refusal_of(gzipped(text)) == what);
  const TemporaryFolder folder;
  const std::string chakra = folder.write("rank.0.et",
                                          "\x0b\x0a\x09"
                                          "1.0.1-chakra");
  CHECK(refusal(chakra) ==
        chakra +
            ": is an execution trace of Chakra: it says which operators ran after which, and not when kernels ran; " +
            std::string(kWhatIsRead));
  CHECK(refusal_of(R"({"rocprofiler-sdk-tool": [{}]})").starts_with("is the JSON of rocprofv3"));
  CHECK(refusal_of(R"({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []})")
            .starts_with("is a profile of speedscope"));
  CHECK(refusal_of(R"({"nodes": []})") == "not a trace: it has no array traceEvents");
}

TEST_CASE("a trace of a strange name is read, and a damaged one called damaged") {
  const TemporaryFolder folder;
  CHECK(read_trace(folder.write("t.pftrace", trace_of(kernel("0", "1")))).gpu_events.size() == 1);
  const std::string broken = folder.write("t.pb", " \n{\"traceEvents\": [");
  CHECK(refusal(broken) == broken + ": truncated: its JSON breaks off at byte 19");
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

TEST_CASE("a trace without GPU events is refused, and says what its events are") {
  const std::string none = "no GPU events (kernel, gpu_memcpy, gpu_memset) among its events";
  CHECK(refusal_of("[]") == none);
  CHECK(refusal_of(trace_of("")) == none);
  const std::string launched = launch("0") + "," + range("a", "0", "1") + "," + launch("2");
  CHECK(refusal_of(trace_of(launched)) == none + ", which are cuda_runtime 2, user_annotation 1");
  std::string hpu;
  for (int i = 0; i < 10; ++i) hpu += slice("hpu_op" + std::to_string(i), "a", kMainThread, times("0", "1")) + ",";
  hpu += R"({"ph": "X", "name": "no category", "ts": 1, "dur": 1, "pid": 1, "tid": 1})";
  CHECK(refusal_of(trace_of(hpu)) ==
        none +
            ", which are hpu_op0 1, hpu_op1 1, hpu_op2 1, hpu_op3 1, hpu_op4 1, hpu_op5 1, "
            "hpu_op6 1, hpu_op7 1, ...");
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

TEST_CASE("a stream, correlation, rank or base time that is no number is refused") {
  const auto with_args = [](const std::string& args) {
    return trace_of(slice("kernel", "k", kStream7, times("0", "1"), args));
  };
  CHECK(refusal_of(with_args(R"("stream": -1)")) ==
        "event 'k' at byte 17: args.stream '-1' is not a whole number in range");
  CHECK(refusal_of(with_args(R"("stream": 7, "correlation": 1.5)")) ==
        "event 'k' at byte 17: args.correlation '1.5' is not a whole number in range");
  const std::string events = R"("traceEvents": [)" + kernel("0", "1") + "]}";
  CHECK(refusal_of(R"({"distributedInfo": {"rank": -1}, )" + events) == "distributedInfo.rank '-1' is not a rank");
  CHECK(refusal_of(R"({"baseTimeNanoseconds": 1e18, )" + events) == "baseTimeNanoseconds '1e18' is not a time");
}

}  // TEST_SUITE("trace/damaged_trace")
