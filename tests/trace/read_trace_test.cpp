// A trace is read as it stands in the file: its events, their times to the nanosecond, its rank.
#include <doctest/doctest.h>

#include <string>
#include <tuple>

#include "tests/support/trace_text.hpp"

TEST_SUITE("trace/read_trace") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("kernels, copies and sets are GPU events, everything else is skipped") {
  const Trace trace = read(
      trace_of(slice("cpu_op", "aten::mm", kMainThread, times("100", "5")) + "," +
               slice("gpu_memset", "Memset", kStream7, times("130", "0"), R"("stream": 7, "correlation": 3)") + "," +
               slice("kernel", "combine", kStream27, times("120", "4"), R"("stream": 27, "correlation": 2)") + "," +
               slice("gpu_memcpy", "Memcpy", kStream7, times("120", "3"), R"("stream": 7, "correlation": 1)") + "," +
               R"({"ph": "C", "cat": "kernel", "name": "counter", "ts": 1}, 17, "text", [{"ph": "X"}], null, {})"));
  CHECK(trace.time_zero_ns == 100'000);
  CHECK(trace.annotations.empty());
  REQUIRE(trace.gpu_events.size() == 3);
  const auto shown = [&](std::size_t i) {
    const GpuEvent& e = trace.gpu_events[i];
    return std::tuple(trace.name(e), e.kind, e.stream, e.start_ns, e.end_ns, e.annotation);
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

TEST_CASE("the largest times are read without overflow") {
  const Trace trace = read(trace_of(kernel("3e15", "0") + "," + kernel("2999999999999999.5", "0.25")));
  CHECK(trace.time_zero_ns == 2'999'999'999'999'999'500);
  CHECK(trace.gpu_events[1].start_ns == 500);
  CHECK(refusal_of(trace_of(kernel("-3e15", "0") + "," + kernel("3e15", "3e15"))) == "lasts longer than 11 days");
}

TEST_CASE("a trace that lasts longer than 11 days, or whose events sum to more than 90, is refused") {
  constexpr const char* kAge = "lasts longer than 11 days";
  CHECK(read(trace_of(kernel("0", "1") + "," + kernel("950399999999", "1"))).gpu_events.size() == 2);
  CHECK(refusal_of(trace_of(kernel("0", "1") + "," + kernel("950400000000", "1"))) == kAge);
  CHECK(refusal_of(trace_of(kernel("0", "1") + "," + launch("950400000000"))) == kAge);
  CHECK(refusal_of(trace_of(kernel("0", "1") + "," + range("mlp", "0", "1e12"))) == kAge);
  CHECK(refusal_of(trace_of(slice("cpu_op", "long ago", kMainThread, times("0", "1")) + "," +
                            kernel("1740461679479712", "1"))) == kAge);
  std::string parallel = kernel("0", "9e11");
  for (int i = 0; i < 9; ++i) parallel += "," + kernel("0", "9e11", i, kStream27);
  CHECK(refusal_of(trace_of(parallel)) == "its GPU events last longer than 90 days in all");
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
  CHECK(trace.gpus[0].rank == 3);
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
    REQUIRE(trace.name(event) == "gemm");
  }
}

TEST_CASE("a million brackets do not exhaust the stack") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(read(R"({"deep": )" + deep + R"(, "traceEvents": [)" + kernel("0", "1") + "]}").gpu_events.size() == 1);
}

TEST_CASE("an event's name may hold any character") {
  const Trace trace = read(trace_of(slice("kernel", R"(void f<\"a\">\n\u00b5s)", kStream7, times("0", "1"))));
  CHECK(trace.name(trace.gpu_events[0]) == "void f<\"a\">\n\u00b5s");
}

TEST_CASE("without args.stream a numeric tid is the stream") {
  CHECK(read(trace_of(slice("kernel", "k", kStream27, times("0", "1")))).gpu_events[0].stream == 27);
  CHECK(read(trace_of(slice("kernel", "k", R"("pid": "0", "tid": "23")", times("0", "1")))).gpu_events[0].stream == 23);
  CHECK(refusal_of(trace_of(slice("kernel", "k", R"("pid": 0, "tid": "stream 7")", times("0", "1")))) ==
        "event 'k' at byte 17: without args.stream, tid 'stream 7' is not a whole number in range");
  CHECK(refusal_of(trace_of(slice("kernel", "k", R"("pid": 0)", times("0", "1")))) ==
        "event 'k' at byte 17: has neither args.stream nor tid");
}

TEST_CASE("the rank is distributedInfo's, else the file name's, else 0") {
  const std::string events = R"("traceEvents": [)" + kernel("0", "1") + "]}";
  const std::string with_rank = R"({"distributedInfo": {"rank": 12}, )" + events;
  const std::string after_events = "{" + events.substr(0, events.size() - 1) + R"(, "distributedInfo": {"rank": "4"}})";
  CHECK(read(with_rank, "rank3.json").gpus[0].rank == 12);
  CHECK(read(after_events, "rank3.json").gpus[0].rank == 4);
  CHECK(read("{" + events, "rank3.json").gpus[0].rank == 3);
  CHECK(read("{" + events, "train_rank_63.json.gz").gpus[0].rank == 63);
  CHECK(read("{" + events, "rank-0_rank-5.pt.trace.json").gpus[0].rank == 5);
  CHECK(read("{" + events, "ranking.json").gpus[0].rank == 0);
  CHECK(read("{" + events, "trace7.json").gpus[0].rank == 0);
  CHECK(read(R"({"distributedInfo": {"backend": "nccl"}, )" + events, "rank2.json").gpus[0].rank == 2);
  CHECK(read(R"({"distributedInfo": null, )" + events, "rank2.json").gpus[0].rank == 2);
}

TEST_CASE("flows without a start, repeated metadata and overlapping events are no reason to refuse") {
  const std::string thread_name = R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "s"}},)";
  const Trace trace = read(trace_of(R"({"ph": "f", "id": 9, "bp": "e", "cat": "ac2g", "name": "ac2g", "ts": 0},)" +
                                    thread_name + thread_name + kernel("0", "10") + "," + kernel("5", "10") +
                                    R"(, {"ph": "X", "cat": "Trace", "ts": 0, "pid": "Spans", "tid": "Profiler"})"));
  CHECK(trace.gpu_events.size() == 2);
}

TEST_CASE("NaN in a field that nobody reads does no harm") {
  CHECK(read(trace_of(slice("kernel", "k", kStream7, times("0", "1"), R"("GB/s": NaN, "more": -Infinity)")))
            .gpu_events.size() == 1);
}

TEST_CASE("reading a long file tells how many megabytes of it are behind, a short one nothing") {
  std::string events = kernel("100", "5");
  const std::string other = "," + slice("cpu_op", std::string(50'000, 'x'), kMainThread, times("100", "5"));
  for (int i = 0; i < 60; ++i) events += other;
  const TemporaryFolder folder;
  std::size_t last = 0;
  const auto progress = [&](const char* what, std::size_t done, std::size_t all) {
    CHECK(what == std::string("MB"));
    CHECK(all == 3);
    CHECK(done >= last);
    last = done;
  };
  (void)read_trace(folder.write("trace.json", trace_of(events)), progress);
  CHECK(last == 3);
  const auto silent = [](const char*, std::size_t, std::size_t) { FAIL("a file of less than a megabyte"); };
  (void)read_trace(folder.write("trace.json.gz", gzipped(trace_of(events))), silent);
}

}  // TEST_SUITE("trace/read_trace")
