#include "experiments/cli/output/analysis_output.hpp"

#include <algorithm>
#include <numeric>

namespace moeline {
namespace {

double per_second(double amount, Time time) { return time > Time::zero() ? amount / (to_us(time) / 1e6) : 0; }

}  // namespace

Rates rates_of(const AnalysisReport& r, const ClassUse& use) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  Rates rates;
  const ClassShapes* shapes = r.shapes ? &r.shapes->classes[static_cast<std::size_t>(use.kernel_class)] : nullptr;
  const double flops = shapes != nullptr ? std::accumulate(shapes->flops.begin(), shapes->flops.end(), 0.0) : use.flops;
  const double bytes = shapes != nullptr ? shapes->bytes : use.bytes;
  const Time flops_time = shapes != nullptr ? use.busy : use.flops_time;
  const Time bytes_time = shapes != nullptr ? use.busy : use.bytes_time;
  rates.tflops = per_second(flops, flops_time) / kTera;
  rates.GBps = per_second(bytes, bytes_time) / kGiga;
  if (!r.machine) return rates;
  const MachineFacts& facts = r.machine->facts;
  if (shapes != nullptr && flops > 0) {
    double at_peak_s = 0;
    for (int p = 0; p < kPrecisions; ++p) {
      const double own = shapes->flops[static_cast<std::size_t>(p)];
      if (own > 0) at_peak_s += own / (facts.tflops(static_cast<Precision>(p)) * kTera);
    }
    rates.share_of_peak = at_peak_s / (to_us(flops_time) / 1e6);
  }
  if (!is_communication(use.kernel_class)) rates.share_of_memory = rates.GBps / facts.hbm_GBps;
  return rates;
}

double bandwidth_GBps(const AnalysisReport& r, const RankAnalysis& rank, const Transfer& transfer) {
  double bytes = transfer.bytes;
  if (bytes == 0 && r.shapes && &rank == &r.analysis.ranks.front()) {
    const auto found = r.shapes->wire_bytes.find(key_of(transfer.times));
    if (found != r.shapes->wire_bytes.end()) bytes = found->second;
  }
  return per_second(bytes, transfer.times.transfer) / 1e9;
}

bool computes(const RankAnalysis& rank, std::uint32_t stream) {
  return std::find(rank.compute_streams.begin(), rank.compute_streams.end(), stream) != rank.compute_streams.end();
}

}  // namespace moeline
