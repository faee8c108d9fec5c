#include "experiments/cli/run_metrics.hpp"

namespace moeline {
namespace {

bool always(const Run& /*run*/) { return true; }
bool of_kernels(const Run& run) { return !run.is_pipeline(); }
bool of_pipeline(const Run& run) { return run.is_pipeline(); }
bool of_step(const Run& run) { return run.is_whole_step(); }
bool of_decode(const Run& run) { return run.is_whole_step() && run.is_decode(); }
bool of_prefill(const Run& run) { return run.is_whole_step() && !run.is_decode(); }
bool of_loads(const Run& run) { return run.has_imbalance(); }

constexpr RunMetric kRunMetrics[] = {
    {"step_ms", [](const Run& r) { return to_us(r.metrics.span) / 1e3; }, always},
    {"layer_us", [](const Run& r) { return r.layer_us(); }, of_kernels},
    {"tokens_per_s_per_gpu", [](const Run& r) { return r.tokens_per_s(); }, of_step},
    {"tpot_ms", [](const Run& r) { return r.tpot_ms(); }, of_decode},
    {"ttft_ms", [](const Run& r) { return r.ttft_ms; }, of_prefill},
    {"mfu", [](const Run& r) { return r.mfu(); }, of_kernels},
    {"compute_busy_us", [](const Run& r) { return to_us(r.metrics.compute_busy); }, always},
    {"comm_busy_us", [](const Run& r) { return to_us(r.metrics.comm_busy); }, always},
    {"exposed_comm_us", [](const Run& r) { return to_us(r.metrics.exposed_comm); }, always},
    {"barrier_us", [](const Run& r) { return r.barrier_us(); }, of_kernels},
    {"compute_waits_us", [](const Run& r) { return r.compute_waits_us(); }, of_kernels},
    {"overlap_fraction", [](const Run& r) { return r.metrics.overlap_fraction(); }, always},
    {"bubble_fraction", [](const Run& r) { return r.metrics.bubble_fraction(); }, always},
    {"bubble_ms", [](const Run& r) { return to_us(r.metrics.span - r.metrics.compute_busy) / 1e3; }, of_pipeline},
    {"imbalance", [](const Run& r) { return r.imbalance(); }, of_loads},
};

}  // namespace

std::span<const RunMetric> run_metrics() { return kRunMetrics; }

}  // namespace moeline
