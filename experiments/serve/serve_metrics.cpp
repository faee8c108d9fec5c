#include "experiments/serve/serve_metrics.hpp"

#include <algorithm>

namespace moeline {
namespace {

using R = ServeResult;

// clang-format off
constexpr ServeMetric kServeMetrics[] = {
    {"output_tokens_per_s_per_gpu", "tokens/s", Better::higher, "tokens of answers in the steady state",
     [](const R& r) { return r.measures.output_tokens_per_s / r.gpus(); }},
    {"tokens_per_s_per_gpu", "tokens/s", Better::higher, "all tokens computed in the steady state",
     [](const R& r) { return r.measures.total_tokens_per_s / r.gpus(); }},
    {"good_output_tokens_per_s_per_gpu", "tokens/s", Better::higher, "tokens of answers within the workload's limits",
     [](const R& r) { return r.measures.good_output_tokens_per_s / r.gpus(); }},
    {"ttft_ms", "ms", Better::lower, "mean time to first token", [](const R& r) { return r.measures.steady.ttft_ms.mean; }},
    {"ttft_p50_ms", "ms", Better::lower, "its median", [](const R& r) { return r.measures.steady.ttft_ms.p50; }},
    {"ttft_p99_ms", "ms", Better::lower, "its 99 % quantile", [](const R& r) { return r.measures.steady.ttft_ms.p99; }},
    {"tpot_ms", "ms", Better::lower, "mean time per output token", [](const R& r) { return r.measures.steady.tpot_ms.mean; }},
    {"tpot_p50_ms", "ms", Better::lower, "its median", [](const R& r) { return r.measures.steady.tpot_ms.p50; }},
    {"tpot_p99_ms", "ms", Better::lower, "its 99 % quantile", [](const R& r) { return r.measures.steady.tpot_ms.p99; }},
    {"request_ms", "ms", Better::lower, "mean time of a request", [](const R& r) { return r.measures.steady.total_ms.mean; }},
    {"request_p99_ms", "ms", Better::lower, "its 99 % quantile", [](const R& r) { return r.measures.steady.total_ms.p99; }},
    {"output_throughput", "tokens/s", Better::higher, "tokens of answers of all GPUs in the whole run",
     [](const R& r) { return r.measures.bench.output_throughput; }},
    {"output_throughput_per_gpu", "tokens/s", Better::higher, "the same of each GPU",
     [](const R& r) { return r.measures.bench.output_throughput / r.gpus(); }},
    {"total_token_throughput", "tokens/s", Better::higher, "tokens of prompts and answers of all GPUs in the whole run",
     [](const R& r) { return r.measures.bench.total_token_throughput; }},
    {"duration_s", "s", Better::lower, "from the first request to the last end",
     [](const R& r) { return r.measures.bench.duration_s; }},
    {"good_share", "fraction", Better::higher, "share of requests within the workload's limits",
     [](const R& r) { return r.measures.good_share; }},
};
// clang-format on

}  // namespace

std::span<const ServeMetric> serve_metrics() { return kServeMetrics; }

const ServeMetric* serve_metric_named(std::string_view name) {
  const auto* found = std::ranges::find_if(kServeMetrics, [&](const ServeMetric& m) { return name == m.name; });
  return found == std::end(kServeMetrics) ? nullptr : found;
}

}  // namespace moeline
