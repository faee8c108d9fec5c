#include "experiments/serve/time_series.hpp"

#include <algorithm>

#include "experiments/serve/measures.hpp"

namespace moeline {
namespace {

class Slices {
 public:
  Slices(double begin_ms, double end_ms, int count)
      : begin_ms_(begin_ms), length_ms_((end_ms - begin_ms) / count), slices_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      slices_[i].begin_ms = begin_ms + static_cast<double>(i) * length_ms_;
      slices_[i].end_ms = slices_[i].begin_ms + length_ms_;
    }
  }

  [[nodiscard]] std::size_t at(double ms) const {
    const auto index = static_cast<std::size_t>((ms - begin_ms_) / length_ms_);
    return std::min(index, slices_.size() - 1);
  }
  [[nodiscard]] double length_ms() const { return length_ms_; }

  // `amount` evenly from one instant to another.
  void spread(double from_ms, double to_ms, double amount, double ServeSlice::*sum) {
    if (to_ms <= std::max(from_ms, begin_ms_)) return;
    for (std::size_t i = at(std::max(from_ms, begin_ms_)); i <= at(to_ms); ++i) {
      const double inside = std::min(to_ms, slices_[i].end_ms) - std::max(from_ms, slices_[i].begin_ms);
      slices_[i].*sum += amount * std::max(0.0, inside) / (to_ms - from_ms);
    }
  }

  std::vector<ServeSlice>& all() { return slices_; }

 private:
  double begin_ms_, length_ms_;
  std::vector<ServeSlice> slices_;
};

}  // namespace

std::vector<ServeSlice> time_series(const ServeLog& log, int count) {
  Slices slices(log.requests.front().arrival_ms, log.end_ms, count);
  std::vector<std::vector<double>> ttft(slices.all().size()), tpot(slices.all().size());
  const double per_s = 1e3 / slices.length_ms();
  for (const ServedRequest& each : log.requests) {
    const std::size_t at = slices.at(each.arrival_ms);
    slices.all()[at].arrivals_per_s += per_s;
    ttft[at].push_back(each.ttft_ms());
    if (each.output_len > 1) tpot[at].push_back(each.tpot_ms());
    const double waits_ms = each.begin_ms - each.arrival_ms, runs_ms = each.end_ms - each.begin_ms;
    slices.spread(each.arrival_ms, each.begin_ms, waits_ms / slices.length_ms(), &ServeSlice::waiting);
    slices.spread(each.begin_ms, each.end_ms, runs_ms / slices.length_ms(), &ServeSlice::running);
    slices.all()[slices.at(each.first_token_ms)].output_tokens_per_s += per_s;
    slices.spread(each.first_token_ms, each.end_ms, (each.output_len - 1) * per_s, &ServeSlice::output_tokens_per_s);
  }
  for (const auto& [from, to, replicas] : log.replicas_on) {
    slices.spread(from, to, replicas * (to - from) / slices.length_ms(), &ServeSlice::replicas_on);
  }
  for (std::size_t i = 0; i < ttft.size(); ++i) {
    const Quantiles first = quantiles_of(std::move(ttft[i]));
    slices.all()[i].ttft_p50_ms = first.p50;
    slices.all()[i].ttft_p99_ms = first.p99;
    slices.all()[i].tpot_p50_ms = quantiles_of(std::move(tpot[i])).p50;
  }
  return std::move(slices.all());
}

}  // namespace moeline
