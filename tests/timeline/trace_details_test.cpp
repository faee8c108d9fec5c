// What the reader takes from an event's args and from other events: grids, bytes, shapes, calls of the host,
// synchronisation events, processes and their ranks; and what it tolerates with a note.
#include <doctest/doctest.h>

#include "tests/support/trace_text.hpp"

TEST_SUITE("timeline/trace_details") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Trace with_args(const std::string& args) {
  return read(trace_of(slice("kernel", "k", kStream7, times("0", "1"), args)));
}

std::uint32_t blocks_of(const std::string& grid) { return with_args(R"("grid": )" + grid).gpu_events[0].blocks; }

std::string operation(const std::string& name, const std::string& dims, int external_id) {
  return slice("cpu_op", name, kMainThread, times("0", "5"),
               R"("External id": )" + std::to_string(external_id) + R"(, "Input Dims": )" + dims);
}

std::string kernel_of(int external_id, const std::string& ts, const std::string& dur) {
  return slice("kernel", "k", kStream7, times(ts, dur), R"("External id": )" + std::to_string(external_id));
}

double flops_of(const std::string& name, const std::string& dims) {
  return read(trace_of(operation(name, dims, 9) + "," + kernel_of(9, "10", "5"))).gpu_events[0].flops;
}

std::string call(const std::string& name, const std::string& ts, const std::string& args) {
  return slice("cuda_runtime", name, kMainThread, times(ts, "1"), args);
}

std::string on_process(const std::string& pid, const std::string& ts = "0") {
  return slice("kernel", "k", R"("pid": )" + pid + R"(, "tid": 7)", times(ts, "1"), R"("stream": 7)");
}

std::string process_name(const std::string& pid, const std::string& name) {
  return R"({"ph": "M", "name": "process_name", "pid": )" + pid + R"(, "args": {"name": ")" + name + R"("}})";
}

std::vector<std::uint32_t> ranks(const std::string& events, const std::string& file = "trace.json") {
  std::vector<std::uint32_t> found;
  for (const TraceGpu& gpu : read(trace_of(events), file).gpus) found.push_back(gpu.rank);
  return found;
}

using Ranks = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a grid's blocks are the product of its three numbers") {
  CHECK(blocks_of("[32, 128, 1]") == 4096);
  CHECK(blocks_of("[112, 1, 1]") == 112);
  CHECK(blocks_of(R"(["2", "56", "1"])") == 112);
}

TEST_CASE("a grid that is absent, no list of three numbers or too large is not known") {
  CHECK(with_args("").gpu_events[0].blocks == 0);
  for (const char* grid : {"[]", "[7]", "[7, 7]", "7", "null", R"("[1, 1, 1]")", "[-1, 2, 2]", "[0, 1, 1]",
                           "[1e3, 1, 1]", "[2147483647, 65535, 65535]", "[[1], 1, 1]", "{\"x\": 1}"}) {
    CAPTURE(grid);
    CHECK(blocks_of(grid) == 0);
  }
}

TEST_CASE("bytes are of the event that states them") {
  CHECK(with_args(R"("bytes": 4096)").gpu_events[0].bytes == 4096);
  CHECK(with_args(R"("bytes": "12")").gpu_events[0].bytes == 12);
  for (const char* bytes : {"-5", "1.5", "null", "\"many\"", "99999999999999999999"}) {
    CAPTURE(bytes);
    CHECK(with_args(R"("bytes": )" + std::string(bytes)).gpu_events[0].bytes == 0);
  }
}

TEST_CASE("an NCCL message has the bytes of its input or its output, whichever is larger") {
  const auto bytes = [](const std::string& in, const std::string& out, const std::string& dtype) {
    return with_args(R"("In msg nelems": )" + in + R"(, "Out msg nelems": )" + out + R"(, "dtype": ")" + dtype +
                     R"(", "Group size": 8)")
        .gpu_events[0]
        .bytes;
  };
  CHECK(bytes("4194304", "33554432", "BFloat16") == 67'108'864);  // all-gather
  CHECK(bytes("33554432", "4194304", "Float") == 134'217'728);    // reduce-scatter
  CHECK(bytes("100", "100", "Half") == 200);
  CHECK(bytes("100", "100", "Long") == 800);
  CHECK(bytes("100", "100", "Float8_e4m3fn") == 100);
  CHECK(bytes("100", "100", "Byte") == 100);
  for (const char* unknown : {"", "QInt8", "bfloat", "[]"}) CHECK(bytes("100", "100", unknown) == 0);
  for (const char* count : {"-5", "null", "\"many\"", "99999999999999999999", "9000000000000000000"}) {
    CAPTURE(count);
    CHECK(bytes(count, "0", "Double") == 0);
  }
  CHECK(with_args(R"("bytes": 7, "In msg nelems": 100, "dtype": "Float")").gpu_events[0].bytes == 7);
  CHECK(with_args(R"("In msg nelems": 100)").gpu_events[0].bytes == 0);
}

TEST_CASE("a matrix product's FLOPs follow from its Input Dims") {
  const double mm = 2.0 * 4096 * 256 * 7168;
  CHECK(flops_of("aten::mm", "[[4096, 7168], [7168, 256]]") == mm);
  CHECK(flops_of("aten::addmm", "[[256], [4096, 7168], [7168, 256], [], []]") == mm);
  CHECK(flops_of("aten::bmm", "[[16, 128, 64], [16, 64, 32]]") == 2.0 * 16 * 128 * 64 * 32);
  CHECK(flops_of("aten::baddbmm", "[[1], [16, 128, 64], [16, 64, 32]]") == 2.0 * 16 * 128 * 64 * 32);
  CHECK(flops_of("aten::_scaled_mm", "[[128, 512], [512, 64], [], []]") == 2.0 * 128 * 512 * 64);
}

TEST_CASE("shapes that say nothing give no FLOPs") {
  CHECK(flops_of("aten::add", "[[4096, 7168], [7168, 256]]") == 0);
  for (const char* dims : {"[]", "[[4096, 7168]]", "[[4096], [7168]]", "[[2, 3, 4], [4, 5]]", "7", "null",
                           R"(["[4096, 7168]"])", "[[], []]", "[4, 5]"}) {
    CAPTURE(dims);
    CHECK(flops_of("aten::mm", dims) == 0);
  }
}

TEST_CASE("of several kernels of one operator the longest gets the FLOPs") {
  const Trace trace = read(trace_of(operation("aten::mm", "[[2, 3], [3, 4]]", 9) + "," + kernel_of(9, "10", "5") + "," +
                                    kernel_of(9, "20", "50") + "," + kernel_of(8, "80", "90")));
  CHECK(trace.gpu_events[0].flops == 0);
  CHECK(trace.gpu_events[1].flops == 48);
  CHECK(trace.gpu_events[2].flops == 0);
}

TEST_CASE("calls of the host are launches, waits, records and synchronisations, by start, others are left out") {
  const Trace trace =
      read(trace_of(kernel("100", "5") + "," + call("cudaStreamWaitEvent", "40", R"("correlation": 4)") + "," +
                    call("cudaEventRecordWithFlags", "30", R"("correlation": 3)") + "," + launch("20") + "," +
                    call("cudaMalloc", "25", R"("correlation": 9)") + "," + call("cudaEventQuery", "26", "") + "," +
                    call("cudaStreamSynchronize", "50", "") + "," +
                    slice("cuda_driver", "cuStreamWaitEvent", kMainThread, times("60", "1"), R"("correlation": 6)")));
  const auto kind = [&](std::size_t i) { return trace.calls.at(i).kind; };
  REQUIRE(trace.calls.size() == 5);
  CHECK(kind(0) == HostCallKind::launch);
  CHECK(kind(1) == HostCallKind::record_event);
  CHECK(kind(2) == HostCallKind::wait_event);
  CHECK(kind(3) == HostCallKind::synchronize);
  CHECK(kind(4) == HostCallKind::wait_event);
  CHECK(trace.gpu_events[0].call == 0);
  CHECK(trace.calls[0].start_ns == 0);
  CHECK(trace.calls[0].end_ns == 2'000);
}

TEST_CASE("synchronisation events complete the waits of their correlation, wherever they stand in the file") {
  const std::string sync =
      slice("cuda_sync", "Stream Wait Event", kStream7, times("40", "0"),
            R"("stream": 7, "correlation": 4, "wait_on_stream": 27, "wait_on_cuda_event_record_corr_id": 3)");
  const std::string context =
      slice("cuda_sync", "Context Sync", R"("pid": 0, "tid": -1)", times("50", "5"), R"("stream": -1)");
  for (const bool first : {true, false}) {
    const std::string calls = call("cudaEventRecord", "30", R"("correlation": 3)") + "," +
                              call("cudaStreamWaitEvent", "40", R"("correlation": 4)") + "," + kernel("100", "5");
    const Trace trace = read(trace_of(first ? sync + "," + context + "," + calls : calls + "," + context + "," + sync));
    REQUIRE(trace.calls.size() == 2);
    CHECK(trace.calls[1].stream == 7);
    CHECK(trace.calls[1].source_stream == 27);
    CHECK(trace.calls[1].record == 0);
    CHECK(trace.calls[0].record == -1);
  }
}

TEST_CASE("the first device names the machine and its SMs") {
  const Trace trace = read(R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H800", "numSms": 132},)"
                           R"({"id": 1, "name": "NVIDIA A100", "numSms": 108}], "traceEvents": [)" +
                           kernel("0", "1") + "]}");
  CHECK(trace.device == "NVIDIA H800");
  CHECK(trace.sms == 132);
  CHECK(read(trace_of(kernel("0", "1"))).device.empty());
  CHECK(read(R"({"deviceProperties": {"name": "x"}, "traceEvents": [)" + kernel("0", "1") + "]}").sms == 0);
}

TEST_CASE("several GPU processes have the ranks in their names, else their positions") {
  const std::string two = on_process("0") + "," + on_process("1", "5");
  CHECK(ranks(process_name("0", "rank 8") + "," + process_name("1", "rank 12") + "," + two) == Ranks{8, 12});
  CHECK(ranks(two + "," + process_name("1", "moeline rank 12")) == Ranks{0, 12});  // names may come later
  CHECK(ranks(process_name("0", "python") + "," + two) == Ranks{0, 1});
  CHECK(ranks(two, "rank7.json") == Ranks{0, 1});
}

TEST_CASE("a single GPU process has the file's rank, whatever it is called") {
  CHECK(ranks(process_name("0", "rank 8") + "," + on_process("0"), "rank7.json") == Ranks{7});
}

TEST_CASE("GPU processes that share a rank are numbered, with a note") {
  const Trace trace = read(trace_of(process_name("0", "rank 3") + "," + process_name("1", "rank 3") + "," +
                                    on_process("0") + "," + on_process("1", "5")));
  CHECK(trace.gpus[0].rank == 0);
  CHECK(trace.gpus[1].rank == 1);
  REQUIRE(trace.notes.size() == 1);
  CHECK(trace.notes[0] == "GPU processes share a rank; they are numbered by first appearance");
}

TEST_CASE("pids may be strings, and are told apart as they are written") {
  const Trace trace =
      read(trace_of(on_process("\"GPU 0\"") + "," + on_process("\"GPU 1\"", "5") + "," + on_process("\"GPU 0\"", "9")));
  REQUIRE(trace.gpus.size() == 2);
  CHECK(trace.gpus[0].pid == "GPU 0");
  CHECK(trace.gpu_events[0].gpu == 0);
  CHECK(trace.gpu_events[1].gpu == 1);
  CHECK(trace.gpu_events[2].gpu == 0);
}

TEST_CASE("flows without their other end are counted, and are no note") {
  const auto flow = [](const char* ph, int id, const char* cat = "ac2g") {
    return std::string(R"({"ph": ")") + ph + R"(", "cat": ")" + cat + R"(", "pid": 0, "tid": 7, "ts": 0, "id": )" +
           std::to_string(id) + "}";
  };
  const auto lone = [&](const std::string& flows) {
    const Trace trace = read(trace_of(kernel("0", "1") + "," + flows));
    CHECK(trace.notes.empty());
    return std::pair(trace.lone_flows.starts, trace.lone_flows.ends);
  };
  using Lone = std::pair<std::size_t, std::size_t>;
  CHECK(lone(flow("s", 1) + "," + flow("f", 1)) == Lone{0, 0});
  CHECK(lone(flow("f", 1) + "," + flow("f", 2) + "," + flow("s", 2)) == Lone{0, 1});
  CHECK(lone(flow("s", 1)) == Lone{1, 0});
  // An id means something in its category alone.
  CHECK(lone(flow("s", 1) + "," + flow("f", 1, "fwdbwd")) == Lone{1, 1});
}

TEST_CASE("events that overlap on their stream are counted in a note") {
  const Trace trace = read(trace_of(kernel("0", "10", 1) + "," + kernel("5", "10", 2) + "," + kernel("12", "1", 3) +
                                    "," + kernel("15", "1", 4) + "," + kernel("0", "99", 5, kStream27)));
  REQUIRE(trace.notes.size() == 1);
  CHECK(trace.notes[0] == "2 GPU events start before the one ahead of them on their stream has ended");
}

}  // TEST_SUITE("timeline/trace_details")
