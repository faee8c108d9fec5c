#include "experiments/page/metric_facts.hpp"

namespace moeline {
namespace {

struct Row {
  const char* name;
  const char* unit;
  Better better;
};

// Busy and overlapped time is neither good nor bad: what of it is exposed is.
constexpr Row kRows[] = {
    {"step_ms", "ms", Better::lower},
    {"layer_us", "us", Better::lower},
    {"layer_compute_busy_us", "us", Better::neither},
    {"layer_comm_busy_us", "us", Better::neither},
    {"layer_exposed_comm_us", "us", Better::lower},
    {"tokens_per_s_per_gpu", "tokens/s", Better::higher},
    {"tokens_per_s_per_user", "tokens/s", Better::higher},
    {"tpot_ms", "ms", Better::lower},
    {"ttft_ms", "ms", Better::lower},
    {"cost_per_million_tokens", "USD", Better::lower},
    {"mfu", "fraction of peak", Better::higher},
    {"mfu_non_causal", "fraction of peak", Better::higher},
    {"compute_busy_us", "us", Better::neither},
    {"comm_busy_us", "us", Better::neither},
    {"exposed_comm_us", "us", Better::lower},
    {"barrier_us", "us", Better::lower},
    {"compute_waits_us", "us", Better::lower},
    {"overlap_fraction", "fraction of communication", Better::higher},
    {"bubble_fraction", "fraction of step", Better::lower},
    {"bubble_ms", "ms", Better::lower},
    {"forward_ms", "ms", Better::lower},
    {"backward_ms", "ms", Better::lower},
    {"weight_ms", "ms", Better::lower},
    {"overlapped_ms", "ms", Better::neither},
    {"optimizer_ms", "ms", Better::lower},
    {"gpu_hours_per_trillion_tokens", "GPU-hours", Better::lower},
    {"memory_gib", "GiB", Better::lower},
    {"fits_memory", "1: yes", Better::neither},
    {"imbalance", "max / mean", Better::lower},
    {"clock_mhz", "MHz", Better::higher},
    {"power_w", "W", Better::lower},
    {"extrapolated_share", "fraction of solo time", Better::lower},
    {"outside_share", "fraction of solo time", Better::lower},
    {"carried_over_share", "fraction of solo time", Better::lower},
    {"roofline_share", "fraction of solo time", Better::lower},
};

}  // namespace

MetricFacts facts_of_metric(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return {row.unit, row.better};
  }
  return {};
}

}  // namespace moeline
