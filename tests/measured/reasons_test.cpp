// Why a kernel did not start earlier: each reason alone, on traces of a few calls.
#include <doctest/doctest.h>

#include "tests/support/measured.hpp"

TEST_SUITE("measured/reasons") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Edges = std::vector<std::string>;

// Kineto's synchronisation event beside a cudaStreamWaitEvent of the same correlation.
std::string wait_record(int stream, int correlation, int source_stream, int record) {
  return slice("cuda_sync", "Stream Wait Event", R"("pid": 0, "tid": )" + std::to_string(stream), times("0", "1"),
               R"("stream": )" + std::to_string(stream) + R"(, "correlation": )" + std::to_string(correlation) +
                   R"(, "wait_on_stream": )" + std::to_string(source_stream) +
                   R"(, "wait_on_cuda_event_record_corr_id": )" + std::to_string(record));
}

std::string correlated(int id) { return R"("correlation": )" + std::to_string(id); }

// Layers 1 ms apart, in which mlp follows a dispatch on the other stream; `wait`: the host says so.
SmallTrace layers_with_dispatch(const std::vector<int>& dispatch_ends, bool wait) {
  SmallTrace trace;
  int zero = 0;
  for (const int end : dispatch_ends) {
    trace.annotation("attn", zero, zero + 9).kernel("first", 7, zero + 1, zero + 100, zero + 300);
    trace.annotation("dispatch", zero + 10, zero + 19).kernel(kDispatch, 27, zero + 11, zero + 150, zero + end);
    if (wait) trace.wait_event(zero + 25);
    trace.annotation("mlp", zero + 20, zero + 40)
        .kernel("second", 7, zero + 30, zero + std::max(end, 300) + 2, zero + 900);
    zero += 1'000;
  }
  return trace;
}

}  // namespace

TEST_CASE("kernels of one stream follow each other") {
  const Measured m = SmallTrace()
                         .on_gpu("kernel", "a", 7, 0, 10)
                         .on_gpu("kernel", "b", 7, 12, 20)
                         .on_gpu("gpu_memcpy", "c", 7, 21, 22)
                         .on_gpu("kernel", "aside", 23, 5, 30)
                         .understood();
  CHECK(edges(m, Reason::stream_order) == Edges{"a -> b", "b -> c"});
  CHECK(m.dependencies.size() == 2);
  CHECK(m.dependencies[0].order == Order::end_to_start);
}

TEST_CASE("of kernels that overlap on their stream, the second follows the start of the first") {
  const Measured m = SmallTrace().on_gpu("kernel", "a", 7, 0, 10).on_gpu("kernel", "b", 7, 4, 20).understood();
  REQUIRE(m.dependencies.size() == 1);
  CHECK(m.dependencies[0].order == Order::part_to_start);
  CHECK(replayed_span(m) == from_us(20));
}

TEST_CASE("a kernel follows its launch, and launches follow each other") {
  const Measured m = SmallTrace().kernel("a", 7, 0, 10, 20).kernel("b", 7, 100, 115, 120).understood();
  CHECK(edges(m, Reason::launch) == Edges{"host -> a", "host -> b"});
  CHECK(edges(m, Reason::host_order) == Edges{"host -> host"});
  CHECK(launch_latencies_ns(m.trace) == std::vector<std::int64_t>{10'000, 10'000});
  // The host is what b waited for: twice its time, twice the way to b's start.
  CHECK(replayed_span(m) == from_us(110));
  CHECK(replayed_span(m, {{{"host", 2}}, {}}) == from_us(210));
}

TEST_CASE("a launch that stands behind its kernel's start is no reason") {
  const Measured m = SmallTrace().kernel("a", 7, 50, 10, 20).understood();
  CHECK(edges(m, Reason::launch).empty());
  CHECK(replayed_span(m) == from_us(10));
}

TEST_CASE("the host that synchronises waits for the kernel launched before that ended last, with the device for all") {
  for (const char* call : {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"}) {
    CAPTURE(call);
    const Measured m = SmallTrace()
                           .kernel("early", 23, 0, 10, 50)
                           .kernel("late_gemm", 7, 5, 15, 400)
                           .call(call, 10, 395)
                           .kernel("next", 7, 410, 420, 430)
                           .understood();
    const bool of_device = std::string(call) == "cudaDeviceSynchronize";
    CHECK(edges(m, Reason::host_wait) ==
          (of_device ? Edges{"early -> host", "late_gemm -> host"} : Edges{"late_gemm -> host"}));
    CHECK(replayed_span(m) == from_us(420));
    // Twice as long it ends 385 us later, and the host and `next` come that much later.
    CHECK(replayed_span(m, {{{"kernel:gemm", 2}}, {}}) == from_us(420 + 385));
  }
}

TEST_CASE("a synchronising call that returns at once is no wait") {
  const Measured m = SmallTrace()
                         .kernel("a", 7, 0, 10, 20)
                         .call("cudaStreamSynchronize", 30, 2)
                         .kernel("b", 7, 40, 50, 60)
                         .understood();
  CHECK(edges(m, Reason::host_wait).empty());
}

TEST_CASE("a host that goes on just behind the same kernel, layer after layer, waited for it") {
  const auto layers = [](const std::vector<int>& launched) {
    SmallTrace trace;
    int zero = 0;
    for (const int next : launched) {
      trace.annotation("dispatch", zero, zero + 9).kernel(kNotify, 27, zero + 1, zero + 10, zero + 400);
      trace.annotation("mlp", zero + next - 1, zero + next + 9);
      trace.kernel("gemm", 7, zero + next, zero + next + 10, zero + 900);
      zero += 1'000;
    }
    return edges(trace.understood(), Reason::host_wait);
  };
  CHECK(layers({430, 440, 450}) == Edges(3, "dispatch -> host"));
  // In the slow layer too; not where most layers do not show it, nor where the host was ahead.
  CHECK(layers({430, 440, 600}) == Edges(3, "dispatch -> host"));
  CHECK(layers({430, 600, 600}).empty());
  CHECK(layers({200, 200, 450}).empty());
}

TEST_CASE("an event wait is the edge that explains why its kernel stood still") {
  const Measured m = layers_with_dispatch({400, 450}, true).understood();
  CHECK(edges(m, Reason::event_wait) == Edges(2, "dispatch -> mlp"));
  CHECK(edges(m, Reason::start_time).empty());
}

TEST_CASE("an event wait that one layer refutes holds in none") {
  // In the third layer mlp starts at 302, before the dispatch ends.
  SmallTrace trace = layers_with_dispatch({400, 450}, true);
  trace.annotation("attn", 2'000, 2'009).kernel("first", 7, 2'001, 2'100, 2'300);
  trace.annotation("dispatch", 2'010, 2'019).kernel(kDispatch, 27, 2'011, 2'150, 2'700);
  trace.wait_event(2'025);
  trace.annotation("mlp", 2'020, 2'040).kernel("second", 7, 2'030, 2'302, 2'900);
  const Measured m = trace.understood();
  for (const Dependency& edge : m.dependencies) {
    if (edge.reason != Reason::event_wait) continue;  // what remains is the dispatch of the layer before
    CHECK(phase_of(m, edge.before)->place.layer < phase_of(m, edge.after)->place.layer);
  }
}

TEST_CASE("a kernel that has its phase in one layer and none in another is no reason to fail") {
  SmallTrace trace;
  for (int layer = 0; layer < 2; ++layer) {
    const int zero = 1'000 * layer;
    trace.annotation("dispatch", zero, zero + 9).kernel(kDispatch, 27, zero + 1, zero + 10, zero + 400);
    trace.wait_event(zero + 10);
    trace.annotation("mlp", zero + 20, zero + (layer == 0 ? 29 : 39));
    trace.kernel("second", 7, zero + 21, zero + 402, zero + 900);
    trace.kernel("aside", 23, zero + 31, zero + 402, zero + 500);  // in layer 1 alone inside the annotation
  }
  CHECK(edges(trace.understood(), Reason::event_wait) == Edges(2, "dispatch -> mlp"));
}

TEST_CASE("an event wait that never bound is read as the youngest source that says something new") {
  const Measured m = layers_with_dispatch({250, 260}, true).understood();
  CHECK(edges(m, Reason::event_wait) == Edges(2, "dispatch -> mlp"));
}

TEST_CASE("synchronisation events are taken at their word") {
  // Recorded behind `first`; `second` was launched before the wait, and nobody waited for it.
  SmallTrace trace;
  trace.kernel("first", 27, 0, 10, 100);
  trace.call("cudaEventRecord", 5, 1, correlated(51));
  trace.kernel("second", 27, 10, 101, 500);
  trace.call("cudaStreamWaitEvent", 15, 1, correlated(52)).add(wait_record(7, 52, 27, 51));
  trace.kernel("waiter", 7, 20, 102, 300);
  const Measured m = trace.understood();
  CHECK(edges(m, Reason::event_wait) == Edges{"first -> waiter"});
  CHECK(replayed_span(m) == from_us(490));
}

TEST_CASE("a synchronisation event that names no record means the last kernel launched before the wait") {
  SmallTrace trace;
  trace.call("cudaDeviceSynchronize", 0, 1);  // has no correlation either
  trace.kernel("first", 27, 2, 10, 100);
  trace.call("cudaStreamWaitEvent", 15, 1, correlated(52)).add(wait_record(7, 52, 27, -1));
  trace.kernel("waiter", 7, 20, 102, 300);
  CHECK(edges(trace.understood(), Reason::event_wait) == Edges{"first -> waiter"});
}

TEST_CASE("a synchronisation event whose stream is given nothing afterwards says nothing") {
  SmallTrace trace;
  trace.kernel("first", 27, 2, 10, 100);
  trace.call("cudaStreamWaitEvent", 15, 1, correlated(52)).add(wait_record(99, 52, 27, -1));
  trace.kernel("other", 7, 20, 30, 300);
  CHECK(edges(trace.understood(), Reason::event_wait).empty());
}

TEST_CASE("a hundred thousand kernels and their waits, beside streams used once, are read in a moment") {
  SmallTrace trace;
  for (int stream = 50; stream < 80; ++stream) trace.kernel("once", stream, stream, 100 + stream, 101 + stream);
  for (int i = 0; i < 20'000; ++i) {
    const int zero = 1'000 + 60 * i;
    for (int j = 0; j < 4; ++j) trace.kernel("gemm", 7, zero - 40 + j, zero + 10 * j, zero + 10 * j + 9);
    trace.kernel(kDispatch, 27, zero - 35, zero + 20, zero + 50);
    trace.wait_event(zero - 30);
    if (i % 2 == 0) {
      trace.call("cudaStreamWaitEvent", zero - 29, 1, correlated(1'000'000 + i));
      trace.add(wait_record(60, 1'000'000 + i, 61, -1));  // of a stream that is given nothing more
    }
  }
  CHECK(trace.understood().trace.gpu_events.size() == 100'030);
}

TEST_CASE("where no call says so, a kernel that starts just when another ends, layer after layer, waited for it") {
  const Measured m = layers_with_dispatch({400, 450, 420}, false).understood();
  CHECK(edges(m, Reason::start_time) == Edges(3, "dispatch -> mlp"));
}

TEST_CASE("start times that one layer refutes are chance") {
  SmallTrace trace = layers_with_dispatch({400, 450}, false);
  trace.annotation("attn", 2'000, 2'009).kernel("first", 7, 2'001, 2'100, 2'300);
  trace.annotation("dispatch", 2'010, 2'019).kernel(kDispatch, 27, 2'011, 2'150, 2'700);
  trace.annotation("mlp", 2'020, 2'040).kernel("second", 7, 2'030, 2'302, 2'900);
  CHECK(edges(trace.understood(), Reason::start_time).empty());
}

TEST_CASE("a kernel that starts long after others ended waited for something that the trace does not show") {
  SmallTrace trace;
  trace.kernel("first", 7, 0, 100, 200).kernel(kDispatch, 27, 1, 100, 300).kernel("second", 7, 2, 350, 400);
  const Measured m = trace.understood();
  CHECK(edges(m, Reason::start_time).empty());
  const std::vector<Unexplained> waits = unexplained_waits(m, release_times(m));
  REQUIRE(waits.size() == 1);
  CHECK(m.trace.name(m.trace.gpu_events[waits[0].event]) == "second");
  CHECK(waits[0].wait_ns == 150'000);
  CHECK(replayed_span(m) == from_us(300));  // the wait is kept
}

TEST_CASE("GPUs of one file do not wait for each other") {
  SmallTrace trace;
  trace.on_gpu("kernel", "a", 27, 0, 100).on_gpu("kernel", "b", 7, 0, 10);
  trace.add(slice("kernel", "on gpu 1", R"("pid": 1, "tid": 7)", times("101", "50"), R"("stream": 7)"));
  const Measured m = trace.understood();
  CHECK(m.dependencies.empty());
  CHECK(replayed_span(m) == from_us(151));
}

}  // TEST_SUITE("measured/reasons")
