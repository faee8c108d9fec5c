#include "experiments/run/run_metrics.hpp"

namespace moeline {
namespace {

bool always(const Run& /*run*/) { return true; }
bool of_kernels(const Run& run) { return !run.has_given_slots(); }
bool of_operators(const Run& run) { return of_kernels(run) && run.setup.scenario.level == "operator"; }
bool of_layers(const Run& run) { return !run.is_pipeline(); }
bool of_memory(const Run& run) { return run.knows_memory(); }
bool of_training_step(const Run& run) { return run.step.has_value(); }
bool of_whole_training(const Run& run) { return run.step.has_value() && run.is_whole_step(); }
bool of_pipeline(const Run& run) { return run.is_pipeline(); }
bool of_step(const Run& run) { return run.is_whole_step(); }
bool of_decode(const Run& run) { return run.is_whole_step() && run.is_decode(); }
bool of_prefill(const Run& run) { return run.is_whole_step() && run.is_inference() && !run.is_decode(); }
bool of_loads(const Run& run) { return run.has_imbalance(); }

constexpr RunMetric kRunMetrics[] = {
    {"step_ms", [](const Run& r) { return to_us(r.metrics.span) / 1e3; }, always},
    {"layer_us", [](const Run& r) { return r.layer_us(); }, of_layers},
    {"tokens_per_s_per_gpu", [](const Run& r) { return r.tokens_per_s(); }, of_step},
    {"tpot_ms", [](const Run& r) { return r.tpot_ms(); }, of_decode},
    {"ttft_ms", [](const Run& r) { return r.ttft_ms; }, of_prefill},
    {"mfu", [](const Run& r) { return r.mfu(); }, of_kernels},
    {"compute_busy_us", [](const Run& r) { return to_us(r.metrics.compute_busy); }, always},
    {"comm_busy_us", [](const Run& r) { return to_us(r.metrics.comm_busy); }, always},
    {"exposed_comm_us", [](const Run& r) { return to_us(r.metrics.exposed_comm); }, always},
    {"barrier_us", [](const Run& r) { return r.barrier_us(); }, of_operators},
    {"compute_waits_us", [](const Run& r) { return r.compute_waits_us(); }, of_layers},
    {"overlap_fraction", [](const Run& r) { return r.metrics.overlap_fraction(); }, always},
    {"bubble_fraction", [](const Run& r) { return r.bubble_fraction(); }, always},
    {"bubble_ms", [](const Run& r) { return r.bubble_ms(); }, of_pipeline},
    {"forward_ms", [](const Run& r) { return to_us(r.step->mean.forward) / 1e3; }, of_training_step},
    {"backward_ms", [](const Run& r) { return to_us(r.step->mean.backward) / 1e3; }, of_training_step},
    {"weight_ms", [](const Run& r) { return to_us(r.step->mean.weight) / 1e3; }, of_training_step},
    {"overlapped_ms", [](const Run& r) { return to_us(r.step->mean.overlapped) / 1e3; }, of_training_step},
    {"optimizer_ms", [](const Run& r) { return to_us(r.step->mean.optimizer) / 1e3; }, of_training_step},
    {"mfu_non_causal", [](const Run& r) { return r.mfu_non_causal(); }, of_whole_training},
    {"gpu_hours_per_trillion_tokens", [](const Run& r) { return r.gpu_hours_per_trillion_tokens(); },
     of_whole_training},
    {"memory_gib", [](const Run& r) { return gib(r.memory_bytes()); }, of_memory},
    {"fits_memory", [](const Run& r) { return r.fits_memory() ? 1.0 : 0.0; }, of_memory},
    {"imbalance", [](const Run& r) { return r.imbalance(); }, of_loads},
};

}  // namespace

std::span<const RunMetric> run_metrics() { return kRunMetrics; }

}  // namespace moeline
