#include "moe/dispatcher.hpp"

#include "base/error.hpp"
#include "moe/dispatcher_buffers.hpp"

namespace moeline {
namespace {

using StagedTransfer = Operator (*)(const AllToAllWork&, Stage);

template <StagedTransfer kTransfer>
std::vector<Operator> in_stages(const AllToAllWork& work) {
  return {kTransfer(work, Stage::issue), kTransfer(work, Stage::wire), kTransfer(work, Stage::receive)};
}

template <StagedTransfer kTransfer>
std::vector<Operator> as_one(const AllToAllWork& work) {
  return {kTransfer(work, Stage::whole)};
}

// Without what stands before a transfer.
std::vector<Operator> normal_dispatch_alone(const AllToAllWork& work) { return {normal_dispatch(work).back()}; }
std::vector<Operator> normal_combine_alone(const AllToAllWork& work) { return {normal_combine(work).back()}; }

// In the order of CommMode.
std::vector<Dispatcher> described() {
  constexpr const char* kHybridEpFlags = "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep";
  return {
      {.mode = CommMode::normal,
       .word = "normal",
       .serves = true,
       .trains = true,
       .by_rank = true,
       .has_sms = true,
       .of_deep_ep = true,
       .arrival = Arrival::tokens,
       .most_ranks = 160,  // NUM_MAX_RDMA_PEERS x NUM_MAX_NVL_PEERS
       .most_nodes = 20,
       .dispatch = normal_dispatch,
       .combine = normal_combine,
       .dispatch_gradients = cached_dispatch,
       .combine_gradients = combine_of_gradients,
       .asked_dispatch = normal_dispatch_alone,
       .asked_combine = normal_combine_alone,
       .buffers = buffers::normal,
       .sends_in = {"fp8"},
       .returns_in = {"bf16"},
       .sglang = "deepep",
       .vllm = "deepep_high_throughput",
       .megatron = "--moe-token-dispatcher-type flex --moe-enable-deepep"},
      {.mode = CommMode::low_latency,
       .word = "low_latency",
       .serves = true,
       .staged = true,
       .of_deep_ep = true,
       .casts_on_the_way = true,
       .arrival = Arrival::slabs,
       .dispatch = in_stages<low_latency_dispatch>,
       .combine = in_stages<low_latency_combine>,
       .asked_dispatch = as_one<low_latency_dispatch>,
       .asked_combine = as_one<low_latency_combine>,
       .buffers = buffers::low_latency,
       .usual_tokens = 128,
       .sends_in = {"fp8"},
       .returns_in = {"bf16"},
       .sglang = "deepep",
       .vllm = "deepep_low_latency"},
      {.mode = CommMode::nvlink,
       .word = "nvlink",
       .serves = true,
       .trains = true,
       .by_rank = true,
       .in_domain = true,
       .dispatch = nvlink_dispatch,
       .combine = nvlink_combine,
       .dispatch_gradients = nvlink_dispatch,
       .combine_gradients = nvlink_combine,
       .asked_dispatch = nvlink_dispatch,
       .asked_combine = nvlink_combine,
       .buffers = buffers::nvlink,
       .sends_in = {"fp8", "bf16", "nvfp4"},
       .returns_in = {"bf16", "nvfp4"},
       .vllm = "flashinfer_all2allv",
       .megatron = kHybridEpFlags},
      {.mode = CommMode::all_gather, .word = "all_gather", .serves = true, .vllm = "allgather_reducescatter"},
      {.mode = CommMode::all_reduce, .word = "all_reduce", .serves = true, .sends_tokens = false},
      {.mode = CommMode::none,
       .word = "none",
       .serves = true,
       .trains = true,
       .sends_tokens = false,
       .brings_results = false},
      {.mode = CommMode::all_to_all,
       .word = "all_to_all",
       .trains = true,
       .has_sms = true,
       .megatron = "--moe-token-dispatcher-type alltoall"},
      {.mode = CommMode::fused,
       .word = "fused",
       .serves = true,
       .sends_tokens = false,
       .brings_results = false,
       .buffers = buffers::fused},
      {.mode = CommMode::hybrid_ep,
       .word = "hybrid_ep",
       .trains = true,
       .by_rank = true,
       .has_sms = true,
       .gathers_choices = true,
       .dispatch = hybrid_ep_dispatch,
       .combine = hybrid_ep_combine,
       .dispatch_gradients = hybrid_ep_dispatch_gradients,
       .combine_gradients = hybrid_ep_combine_gradients,
       .asked_dispatch = hybrid_ep_dispatch,
       .asked_combine = hybrid_ep_combine,
       .sends_in = {"bf16", "fp8"},
       .returns_in = {"bf16"},
       .megatron = kHybridEpFlags},
      {.mode = CommMode::deepep_v2,
       .word = "deepep_v2",
       .serves = true,
       .trains = true,
       .by_rank = true,
       .has_sms = true,
       .has_layouts = true,
       .of_deep_ep = true,
       .from_hopper_on = true,
       .arrival = Arrival::rows,
       .most_ranks = 2048,
       .dispatch = deep_ep_v2_dispatch,
       .combine = deep_ep_v2_combine,
       .dispatch_gradients = deep_ep_v2_dispatch_gradients,
       .combine_gradients = deep_ep_v2_combine_gradients,
       .asked_dispatch = deep_ep_v2_dispatch,
       .asked_combine = deep_ep_v2_combine,
       .buffers = buffers::deepep_v2,
       .sends_in = {"fp8", "bf16"},
       .returns_in = {"bf16"},
       .sglang = "deepep_v2",
       .vllm = "deepep_v2",
       .megatron = "--moe-token-dispatcher-type flex"},
      {.mode = CommMode::pplx,
       .word = "pplx",
       .serves = true,
       .staged = true,
       .arrival = Arrival::slabs,
       .dispatch = in_stages<pplx_dispatch>,
       .combine = in_stages<pplx_combine>,
       .asked_dispatch = as_one<pplx_dispatch>,
       .asked_combine = as_one<pplx_combine>,
       .buffers = buffers::pplx,
       .usual_tokens = 128,
       .sends_in = {"fp8", "bf16"},
       .returns_in = {"bf16"}},
  };
}

}  // namespace

const std::vector<Dispatcher>& dispatchers() {
  static const std::vector<Dispatcher> kAll = [] {
    std::vector<Dispatcher> all = described();
    MOELINE_CHECK(all.size() == kCommModes, "a row for each mode");
    for (std::size_t i = 0; i < all.size(); ++i) MOELINE_CHECK(all[i].mode == static_cast<CommMode>(i), all[i].word);
    return all;
  }();
  return kAll;
}

const Dispatcher& dispatcher_of(CommMode mode) { return dispatchers()[static_cast<std::size_t>(mode)]; }

std::vector<CommMode> modes_that(bool (*has)(const Dispatcher&)) {
  std::vector<CommMode> modes;
  for (const Dispatcher& each : dispatchers()) {
    if (has(each)) modes.push_back(each.mode);
  }
  return modes;
}

}  // namespace moeline
