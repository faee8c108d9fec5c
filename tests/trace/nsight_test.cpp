// The same work in Kineto's JSON and in Nsight Systems' export is the same trace.
#include <doctest/doctest.h>

#include "tests/support/data.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/nsight_export.hpp"
#include "tests/support/same_trace.hpp"
#include "tests/support/server_trace.hpp"

TEST_SUITE("trace/nsight") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::vector<NsightVersion> kVersions = {kNsight2020, kNsight2025, {.mangled = true}};

std::string phase_name(const Trace& trace, const GpuEvent& event) {
  return event.annotation < 0 ? "" : trace.annotations[static_cast<std::size_t>(event.annotation)].name;
}

// What copies are called is the profiler's.
void check_same_gpu_work(const Trace& a, const Trace& b) {
  CHECK(kernels_of(a) == kernels_of(b));
  REQUIRE(a.gpu_events.size() == b.gpu_events.size());
  for (std::size_t i = 0; i < a.gpu_events.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a.gpu_events[i].kind == b.gpu_events[i].kind);
    REQUIRE(a.gpu_events[i].blocks == b.gpu_events[i].blocks);
    REQUIRE(a.gpu_events[i].bytes == b.gpu_events[i].bytes);
  }
}

void check_same_host(const Trace& a, const Trace& b) {
  CHECK(launches_of(a) == launches_of(b));
  CHECK(phases_of(a) == phases_of(b));
  CHECK(steps_of(a) == steps_of(b));
  CHECK(kinds_of_steps(a) == kinds_of_steps(b));
  REQUIRE(a.calls.size() == b.calls.size());
  for (std::size_t i = 0; i < a.calls.size(); ++i) {
    REQUIRE(a.calls[i].kind == b.calls[i].kind);
    REQUIRE(a.calls[i].stream == b.calls[i].stream);
    REQUIRE(a.calls[i].source_stream == b.calls[i].source_stream);
    REQUIRE(a.calls[i].record == b.calls[i].record);
  }
}

Trace read_export(NsightWriter& writer) { return read(writer.bytes(), "trace.sqlite"); }

// An export by hand: a kernel of stream 7 from `start` to `end` ns, and its launch.
void add_launched(NsightWriter& writer, int correlation, int start, int end, std::int64_t pid = 20, int device = 0) {
  const std::string process = std::to_string(NsightWriter::global(pid));
  const std::string thread = std::to_string(NsightWriter::global(pid, 21));
  const std::string number = std::to_string(correlation);
  writer.sql().insert("CUPTI_ACTIVITY_KIND_RUNTIME", {std::to_string(start - 5), std::to_string(start - 2), "0", thread,
                                                      number, writer.id("cudaLaunchKernel_v7000"), "0"});
  writer.sql().insert("CUPTI_ACTIVITY_KIND_KERNEL",
                      {std::to_string(start), std::to_string(end), std::to_string(device), "1", "7", number, process,
                       "32", "1", "1", "1", writer.id("gemm"), writer.id("gemm(int)"), ""});
}

void add_range(NsightWriter& writer, int start, const std::string& end, const std::string& type,
               const std::string& text, int domain = 0, std::int64_t pid = 20) {
  writer.sql().insert("NVTX_EVENTS", {std::to_string(start), end, type, std::to_string(domain), sql_text(text), "",
                                      std::to_string(NsightWriter::global(pid, 21))});
}

}  // namespace

TEST_CASE("a server's steps in an Nsight export are those of its Kineto trace, with graphs and without") {
  for (const bool graphs : {true, false}) {
    CAPTURE(graphs);
    const std::string kineto = server_trace(
        {.steps = {"step[EXTEND bs=1 toks=888]", "step[DECODE bs=32]", "step[DECODE bs=32]"}, .graphs = graphs});
    const Trace expected = read(kineto);
    for (const NsightVersion& version : kVersions) {
      const Trace trace = read(nsight_export(kineto, version), "trace.sqlite");
      check_same_gpu_work(expected, trace);
      check_same_host(expected, trace);
      REQUIRE(trace.steps.size() == 3);
    }
  }
}

TEST_CASE("an export of kernels alone has their times, streams and names, and no launches") {
  const std::string kineto =
      SmallTrace().kernel("gemm", 7, 0, 10, 20).kernel("nccl", 27, 5, 12, 40).annotation("attn", 0, 9).text();
  const Trace trace = read(nsight_export(kineto, kKernelsAlone), "trace.sqlite");
  check_same_gpu_work(read(kineto), trace);
  CHECK(trace.calls.empty());
  CHECK(trace.annotations.empty());
  CHECK(trace.device.empty());
}

TEST_CASE("ranges of NVTX are phases by the launches inside them, and the replay is that of the Kineto trace") {
  SmallTrace small;
  for (int i = 0; i < 20; ++i) {
    const int zero = 300 * i;
    small.annotation("dispatch", zero, zero + 9).annotation("mlp", zero + 10, zero + 29);
    small.kernel(kDispatch, 27, zero + 1, zero + 100, zero + 150).call("cudaEventRecord", zero + 5, 1);
    small.wait_event(zero + 12).kernel("gemm", 7, zero + 15, zero + 152, zero + 290);
  }
  const Measured expected = small.understood();
  for (const NsightVersion& version : kVersions) {
    const Measured m = understand(read(nsight_export(small.text(), version), "trace.sqlite"));
    check_same_gpu_work(expected.trace, m.trace);
    check_same_host(expected.trace, m.trace);
    CHECK(edges(m, Reason::event_wait) == edges(expected, Reason::event_wait));
    CHECK(edges(m, Reason::event_wait).size() == 20);
    CHECK(replayed_span(m) == replayed_span(expected));
    CHECK(replayed_span(m, {{{"transfer", 0}}, {}}) == replayed_span(expected, {{{"transfer", 0}}, {}}));
  }
}

TEST_CASE("DeepSeek's training trace as an Nsight export has the same events, phases, event waits and accounts") {
  if (!present(training_trace())) return;
  const Measured m = understand(read(nsight_export(unpacked(training_trace())), "trace.sqlite"));
  check_same_gpu_work(training().trace, m.trace);
  check_same_host(training().trace, m.trace);
  CHECK(edges(m, Reason::event_wait) == edges(training(), Reason::event_wait));
  CHECK(replayed_span(m) == replayed_span(training()));
  const RankAnalysis before = analyze(training()).ranks[0];
  const RankAnalysis after = analyze(m).ranks[0];
  CHECK(after.times.compute == before.times.compute);
  CHECK(after.times.exposed == before.times.exposed);
  CHECK(after.layers.size() == before.layers.size());
}

TEST_CASE("an export says which GPU it is, how many SMs it has, and when the session began") {
  NsightWriter writer({});
  writer.sql().insert("TARGET_INFO_GPU", {"0", "3", "'NVIDIA H200'", "132"});
  writer.sql().insert("TARGET_INFO_GPU", {"0", "5", "'NVIDIA B200'", "148"});
  writer.sql().insert("TARGET_INFO_CUDA_DEVICE", {"5", "0", "20"});
  writer.sql().insert("TARGET_INFO_SESSION_START_TIME", {"1700000000000000000", "''"});
  add_launched(writer, 1, 105, 120);
  const Trace trace = read_export(writer);
  CHECK(trace.device == "NVIDIA B200");
  CHECK(trace.sms == 148);
  CHECK(trace.time_zero_ns == 1'700'000'000'000'000'100);
  CHECK(trace.gpus.size() == 1);
}

TEST_CASE(
    "processes of one export launch their own kernels, whatever their correlations, and are ranks by their GPUs") {
  NsightWriter writer({});
  for (const int pid : {30, 20}) {  // process 20 has GPU 1, 30 has GPU 0
    writer.sql().insert("TARGET_INFO_CUDA_DEVICE", {pid == 20 ? "1" : "0", "0", std::to_string(pid)});
  }
  add_range(writer, 0, "50", "59", "of 20", 0, 20);
  add_range(writer, 0, "50", "59", "of 30", 0, 30);
  for (int i = 0; i < 3; ++i) {
    add_launched(writer, i, 10 * i + 10, 10 * i + 18, 20);
    add_launched(writer, i, 10 * i + 11, 10 * i + 19, 30);
  }
  const Trace trace = read_export(writer);
  REQUIRE(trace.gpus.size() == 2);
  for (const GpuEvent& event : trace.gpu_events) {
    CHECK(trace.launched_ns(event) == event.start_ns - 5);
    CHECK(phase_name(trace, event) == (trace.rank(event) == 1 ? "of 20" : "of 30"));
  }
}

TEST_CASE("several GPUs of one process are ranks by their devices") {
  NsightWriter writer({});
  for (int device = 3; device >= 0; --device) add_launched(writer, device, 100 - device, 200 + device, 20, device);
  const Trace trace = read_export(writer);
  REQUIRE(trace.gpus.size() == 4);
  for (const GpuEvent& event : trace.gpu_events) CHECK(event.end_ns - event.start_ns == 100 + 2 * trace.rank(event));
}

TEST_CASE("the rank of an export with one GPU is in its file's name") {
  NsightWriter writer({});
  add_launched(writer, 1, 10, 20);
  CHECK(read(writer.bytes(), "report_rank3.sqlite").gpus[0].rank == 3);
}

TEST_CASE("a stream waits for the latest record of an event before the wait") {
  NsightWriter writer({});
  const std::string process = std::to_string(NsightWriter::global(20));
  const std::string thread = std::to_string(NsightWriter::global(20, 21));
  add_launched(writer, 1, 10, 20);
  const auto call = [&](const std::string& name, int correlation) {
    writer.sql().insert("CUPTI_ACTIVITY_KIND_RUNTIME", {std::to_string(correlation), std::to_string(correlation), "0",
                                                        thread, std::to_string(correlation), writer.id(name), "0"});
  };
  for (const int record : {30, 50, 70}) {
    call("cudaEventRecord_v3020", record);
    writer.sql().insert("CUPTI_ACTIVITY_KIND_CUDA_EVENT", {"0", "1", "27", std::to_string(record), process, "9"});
  }
  call("cudaStreamWaitEvent_v3020", 60);
  writer.sql().insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"60", "60", "0", "1", "7", "60", process, "2", "9"});
  const Trace trace = read_export(writer);
  const auto wait = std::find_if(trace.calls.begin(), trace.calls.end(),
                                 [](const HostCall& each) { return each.kind == HostCallKind::wait_event; });
  REQUIRE(wait != trace.calls.end());
  CHECK(wait->stream == 7);
  CHECK(wait->source_stream == 27);
  REQUIRE(wait->record >= 0);
  CHECK(trace.calls[static_cast<std::size_t>(wait->record)].start_ns == 50 - 5);
}

TEST_CASE("a range that never ended lasts to the end, and marks and ranges of libraries are no phases") {
  NsightWriter writer({});
  add_launched(writer, 1, 10, 20);
  add_launched(writer, 2, 30, 40);
  add_range(writer, 1, "", "75", "NCCL", 4);
  add_range(writer, 2, "", "59", "forward");
  add_range(writer, 3, "", "34", "a mark");
  add_range(writer, 24, "29", "59", "ncclAllReduce", 4);
  const Trace trace = read_export(writer);
  REQUIRE(trace.annotations.size() == 1);
  for (const GpuEvent& event : trace.gpu_events) CHECK(phase_name(trace, event) == "forward");
}

TEST_CASE("kernels of a graph have its launch, and a graph recorded as a whole is one kernel and a note") {
  NsightWriter writer({});
  add_launched(writer, 1, 10, 20);
  const std::string process = std::to_string(NsightWriter::global(20));
  writer.sql().run(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId, streamId, correlationId, "
      "globalPid)");
  writer.sql().insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"40", "90", "0", "6", "7", "2", process});
  const Trace trace = read_export(writer);
  REQUIRE(trace.gpu_events.size() == 2);
  CHECK(trace.name(trace.gpu_events[1]) == "CUDA graph 6");
  CHECK(trace.gpu_events[1].end_ns - trace.gpu_events[1].start_ns == 50);
  REQUIRE(trace.notes.size() == 1);
  CHECK(trace.notes[0] ==
        "1 launches of CUDA graphs are recorded as a whole and count as one kernel each: what runs in them, also what "
        "communicates, is not in the export; `nsys profile --cuda-graph-trace=node` records it");
}

TEST_CASE("events whose times the profiler could not take are left out, with a note") {
  NsightWriter writer({});
  add_launched(writer, 1, 10, 20);
  const std::string process = std::to_string(NsightWriter::global(20));
  writer.sql().insert("CUPTI_ACTIVITY_KIND_MEMCPY", {"0", "0", "0", "1", "7", "3", process, "4", "1"});
  writer.sql().insert("CUPTI_ACTIVITY_KIND_MEMCPY", {"11", "", "0", "1", "7", "3", process, "4", "1"});
  const Trace trace = read_export(writer);
  CHECK(trace.gpu_events.size() == 1);
  CHECK(trace.notes == std::vector<std::string>{"2 GPU events without times are left out"});
}

}  // TEST_SUITE("trace/nsight")
