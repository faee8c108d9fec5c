// Traces as inference servers write them under torch.profiler: an annotation around each step on the host and a twin of
// it on every stream, CUDA graphs of a whole step with one launch, all-reduces, copies on a stream of their own, flows
// that end without having started. The model is dense, with tensor parallelism: all layers are alike.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/dice.hpp"
#include "tests/support/trace_text.hpp"

namespace moeline::testing {

struct ServerTrace {
  std::vector<std::string> steps;  ///< their annotations, as the server writes them
  int layers = 36;
  double pace = 1;         ///< all kernels take this many times as long
  bool graphs = true;      ///< one launch per step, else one per kernel
  bool on_host = true;     ///< annotations and calls of the host
  bool on_gpu = true;      ///< the annotations' twins on the streams
  int unrecorded = 0;      ///< the launch of each so-manieth kernel is not in the trace; 0: all are
  double early_us = 0;     ///< the profiler has seen the host this long before the GPU's first event
  double lead_us = 0;      ///< a copy on its own stream runs this long before the first kernel that computes
  double between_us = 40;  ///< of the host, between two steps
  bool profiler = false;   ///< ProfilerStep#1, #2, ... around the steps
};

namespace server {

struct Work {
  const char* name;
  double us;
};

// One layer of a step of decode.
inline const std::vector<Work> kLayer = {
    {"void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, float)", 2.6},
    {"nvjet_tst_64x32_64x16_4x1_v_bz_splitK_TNT", 9.4},
    {"void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel<false, 128u, 8u>(__nv_bfloat16*)", 2.9},
    {"void store_kvcache<1024l, true, long>(StoreKernelParams)", 1.8},
    {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 8u>(Params)", 13.7},
    {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, float, "
     "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__nv_bfloat16 const> > >(cublasGemvParamsEx<int>)",
     7.2},
    {"void sglang::cross_device_reduce_1stage<__nv_bfloat16, 4>(sglang::RankData*, sglang::RankSignals)", 6.1},
    {"void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, float)", 2.5},
    {"nvjet_tst_128x64_64x8_2x1_v_bz_TNT", 21.3},
    {"void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(silu(float const&))>(__nv_bfloat16*)", 3.1},
    {"nvjet_tst_64x64_64x13_4x1_v_bz_TNT", 12.8},
    {"void sglang::cross_device_reduce_1stage<__nv_bfloat16, 4>(sglang::RankData*, sglang::RankSignals)", 6.3},
};
inline const Work kEmbedding = {
    "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*, char*, long*, int)", 3.3};
inline const std::vector<Work> kHead = {
    {"void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, float)", 2.4},
    {"nvjet_tst_192x128_64x5_2x1_v_bz_coopB_TNT", 141.0}};
inline const Work kSampling = {
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, 4> >(int)", 18.2};

class Writer {
 public:
  explicit Writer(const ServerTrace& what) : what_(what) {}

  std::string text() {
    if (what_.early_us > 0) add(slice("cpu_op", "aten::empty", kMainThread, time(-what_.early_us, 3)));
    gpu_us_ = what_.lead_us;
    if (what_.lead_us > 0) event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 23, 0, 30, ++correlation_, "");
    host_us_ = std::max(0.0, what_.lead_us - 60);
    for (std::size_t i = 0; i < what_.steps.size(); ++i) step(i);
    return R"({"distributedInfo": {"rank": 0}, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],)"
           "\n\"traceEvents\": [\n" +
           events_ + "\n]}\n";
  }

 private:
  struct Range {
    double start_us = 0, end_us = 0;
  };

  void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }
  static std::string time(double start_us, double us) {
    return times(fmt::format("{:.3f}", start_us), fmt::format("{:.3f}", us));
  }

  void event(const char* cat, const std::string& name, int stream, double start_us, double us, int correlation,
             const std::string& args) {
    add(slice(
        cat, name, fmt::format(R"("pid": 0, "tid": {})", stream), time(start_us, us),
        fmt::format(R"("stream": {}, "device": 0, "context": 1, "correlation": {}{})", stream, correlation, args)));
    add(fmt::format(
        R"({{"ph": "f", "cat": "ac2g", "name": "ac2g", "bp": "e", "pid": 0, "tid": {}, "ts": {:.3f}, "id": {}}})",
        stream, start_us, 900'000 + flow_++));
    Range& range = on_stream_.try_emplace(stream, Range{start_us, start_us}).first->second;
    range.end_us = std::max(range.end_us, start_us + us);
  }

  void launch(const char* name, int correlation) {
    if (what_.on_host) {
      add(slice("cuda_runtime", name, kMainThread, time(host_us_, 4),
                fmt::format(R"("correlation": {})", correlation)));
    }
    host_us_ += 6;
  }

  // Inside a graph its launch is `correlation`; 0: a launch of its own.
  void kernel(const Work& work, int correlation) {
    const int own = correlation > 0 ? correlation : ++correlation_;
    const bool recorded = what_.unrecorded == 0 || ++kernels_ % what_.unrecorded != 0;
    if (correlation == 0 && recorded) launch("cudaLaunchKernel", own);
    if (correlation == 0 && !recorded) host_us_ += 6;
    const double us = work.us * what_.pace * (1 + 0.02 * static_cast<double>(dice_.below(5)));
    gpu_us_ = std::max(gpu_us_ + 0.9, correlation > 0 ? 0 : host_us_ + 7);
    event("kernel", work.name, 7, gpu_us_, us, own, correlation > 0 ? R"(, "graph node id": 1)" : "");
    gpu_us_ += us;
  }

  void annotation(const std::string& name, double start_us) {
    if (what_.on_host)
      add(slice("user_annotation", name, kMainThread, time(start_us, host_us_ - start_us), R"("External id": 1)"));
    if (!what_.on_gpu) return;
    for (const auto& [stream, range] : on_stream_) {
      add(slice("gpu_user_annotation", name, fmt::format(R"("pid": 0, "tid": {})", stream),
                time(range.start_us - 0.001, range.end_us - range.start_us + 0.002), R"("External id": 1)"));
    }
  }

  void step(std::size_t i) {
    on_stream_.clear();
    const double start_us = host_us_;
    host_us_ += 2;
    const int graph = what_.graphs ? ++correlation_ : 0;
    if (graph > 0) {
      launch("cudaGraphLaunch", graph);
      gpu_us_ = std::max(gpu_us_, host_us_ + 12);
    }
    kernel(kEmbedding, graph);
    for (int layer = 0; layer < what_.layers; ++layer) {
      for (const Work& work : kLayer) kernel(work, graph);
    }
    for (const Work& work : kHead) kernel(work, graph);
    launch("cudaMemcpyAsync", ++correlation_);
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 23, gpu_us_ + 1.5, 1.2, correlation_, R"(, "bytes": 128)");
    host_us_ += 3;
    annotation(what_.steps[i], start_us);
    host_us_ += 1;
    kernel(kSampling, 0);
    if (what_.on_host) {
      add(slice("cuda_runtime", "cudaStreamSynchronize", kMainThread, time(host_us_, gpu_us_ + 4 - host_us_),
                R"("correlation": 0)"));
    }
    host_us_ = gpu_us_ + 5;
    if (what_.profiler) annotation(fmt::format("ProfilerStep#{}", i + 1), start_us - 1);
    host_us_ += what_.between_us;
  }

  const ServerTrace& what_;
  std::string events_;
  std::map<int, Range> on_stream_;  // of the step
  Dice dice_{7};
  double host_us_ = 0, gpu_us_ = 0;
  int correlation_ = 0, kernels_ = 0, flow_ = 0;
};

}  // namespace server

inline std::string server_trace(const ServerTrace& what) { return server::Writer(what).text(); }

/// Some of the step on the host: `times` of the same annotation.
inline std::vector<std::string> steps_named(const std::string& name, int times) {
  return std::vector<std::string>(static_cast<std::size_t>(times), name);
}

}  // namespace moeline::testing
