// GPU work is read whoever made the device: by the categories that Kineto and others give it.
#include "trace/read_trace.hpp"

#include <doctest/doctest.h>

#include "tests/support/trace_text.hpp"
#include "trace/trace_records.hpp"

TEST_SUITE("trace/trace_categories") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Maker {
  const char* name;
  const char *kernel, *copy, *set, *runtime, *launch;
};

// By ActivityType.cpp of Kineto and of the makers' forks of it. AMD's kernels have CUDA's words, and calls of HIP.
const std::vector<Maker> kMakers = {
    {"NVIDIA", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cudaLaunchKernel"},
    {"NVIDIA's driver", "kernel", "gpu_memcpy", "gpu_memset", "cuda_driver", "cuLaunchKernel"},
    {"AMD", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "hipLaunchKernel"},
    {"Intel", "kernel", "gpu_memcpy", "gpu_memset", "xpu_runtime", "urEnqueueKernelLaunch"},
    {"Intel's driver", "kernel", "gpu_memcpy", "gpu_memset", "xpu_driver", "zeCommandListAppendLaunchKernel"},
    {"MTIA", "mtia_ccp_events", "gpu_memcpy", "gpu_memset", "mtia_runtime", "launch"},
    {"another backend of PyTorch", "kernel", "gpu_memcpy", "gpu_memset", "privateuse1_runtime", "launch"},
    {"Cambricon", "kernel", "mlu_memcpy", "mlu_memset", "mlu_runtime", "cnInvokeKernel"},
    {"Kineto until 2022", "Kernel", "Memcpy", "Memset", "Runtime", "cudaLaunchKernel"},
};

}  // namespace

TEST_CASE("kernels, copies, sets and launches of every maker are read as NVIDIA's") {
  for (const Maker& maker : kMakers) {
    CAPTURE(maker.name);
    const auto gpu = [](const char* cat, const char* name, const char* ts, int correlation) {
      return slice(cat, name, kStream7, times(ts, "5"),
                   R"("stream": 7, "correlation": )" + std::to_string(correlation)) +
             ",";
    };
    const Trace trace =
        read(trace_of(gpu(maker.kernel, "gemm", "20", 1) + gpu(maker.copy, "copy", "30", 2) +
                      gpu(maker.set, "set", "40", 3) + range("attn", "0", "15") + "," +
                      slice(maker.runtime, maker.launch, kMainThread, times("3", "2"), R"("correlation": 1)")));
    REQUIRE(trace.gpu_events.size() == 3);
    CHECK(trace.gpu_events[0].kind == GpuEventKind::kernel);
    CHECK(trace.gpu_events[1].kind == GpuEventKind::memcpy);
    CHECK(trace.gpu_events[2].kind == GpuEventKind::memset);
    CHECK(trace.launched_ns(trace.gpu_events[0]) == 3'000);
    CHECK(trace.gpu_events[0].annotation == 0);
    CHECK(trace.gpu_events[1].call == -1);
  }
}

TEST_CASE("calls of HIP, Level Zero and versions of CUDA wait, record and launch as CUDA's do") {
  for (const char* name : {"cudaStreamWaitEvent", "cudaStreamWaitEvent_v3020", "hipStreamWaitEvent",
                           "cudaStreamWaitEvent_ptsz_v7000", "cuStreamWaitEvent"}) {
    CHECK(kind_of_call(name) == HostCallKind::wait_event);
  }
  for (const char* name : {"cudaEventRecord_v3020", "hipEventRecord", "cudaEventRecordWithFlags_ptsz_v11010"}) {
    CHECK(kind_of_call(name) == HostCallKind::record_event);
  }
  for (const char* name : {"hipStreamSynchronize", "cudaEventSynchronize_v3020", "zeEventHostSynchronize"}) {
    CHECK(kind_of_call(name) == HostCallKind::synchronize);
  }
  for (const char* name : {"cudaDeviceSynchronize_v3020", "hipDeviceSynchronize", "cuCtxSynchronize"}) {
    CHECK(kind_of_call(name) == HostCallKind::synchronize_device);
  }
  for (const char* name : {"cudaLaunchKernel_v7000", "hipLaunchKernel", "cudaGraphLaunch_v10000", "", "_v1", "v"}) {
    CHECK(kind_of_call(name) == HostCallKind::launch);
  }
}

TEST_CASE("kernels of rocprof's JSON have no category, and are known by their process") {
  const auto event = [](int pid, const std::string& name, const std::string& ts) {
    return R"({"ph": "X", "name": ")" + name + R"(", "pid": )" + std::to_string(pid) + R"(, "tid": 3, "ts": ")" + ts +
           R"(", "dur": "4", "args": {"BeginNs": "17", "EndNs": "18"}},)";
  };
  const auto process = [](int pid, const std::string& name) {
    return R"({"args": {"name": ")" + name + R"("}, "ph": "M", "pid": )" + std::to_string(pid) +
           R"(, "name": "process_name"},)";
  };
  const std::string text = "{}," + process(2, "0 CPU HIP API") + process(1, "1 COPY") + process(6, "2 GPU0") +
                           event(2, "hipLaunchKernel", "1") + event(6, "gemm(float*)", "10") +
                           event(6, "softmax", "15") + event(1, "CopyHostToDevice", "20") + "{}";
  const Trace trace = read(trace_of(text));
  REQUIRE(trace.gpus.size() == 1);
  REQUIRE(trace.gpu_events.size() == 2);
  CHECK(trace.name(trace.gpu_events[0]) == "gemm(float*)");
  CHECK(trace.gpu_events[1].start_ns - trace.gpu_events[0].start_ns == 5'000);
  CHECK(trace.gpu_events[0].stream == 3);
}

TEST_CASE("a process is rocprof's GPU by its whole word and number") {
  for (const char* name : {"GPU0", "5 GPU12"}) CHECK(is_gpu_of_rocprof(name));
  for (const char* name : {"", "GPU", "0", "GPU 0", "CPU HIP API", "5 MYGPU1", "GPU Barriers0"}) {
    CHECK_FALSE(is_gpu_of_rocprof(name));
  }
}

}  // TEST_SUITE("trace/trace_categories")
