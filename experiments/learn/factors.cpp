#include "experiments/learn/factors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace moeline {
namespace {

// Executions of one operator over all traces.
struct Seen {
  std::string learnt_class, family;
  double measured_us = 0, simulated_us = 0;
  std::vector<double> ratios;  // of each execution, over the mean one of its trace
  bool fused = true;           // in all traces
  int kernels = 0;
  MeasuredRange range;

  [[nodiscard]] bool has_ratio() const { return !fused && measured_us > 0 && simulated_us > 0; }
  [[nodiscard]] double log_ratio() const { return std::log(measured_us / simulated_us); }
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / static_cast<double>(values.size() - 1);
}

void add(const OperatorTimes& times, const Program& program, const KernelSet& kernels, Seen& seen) {
  if (times.executions == 0 || (times.observed == 0 && !times.may_be_fused)) return;  // nothing is known of it
  const Operator& op = program.kernels[times.works.front()].op;
  seen.learnt_class = learnt_class(op);
  seen.family = priced_as(op, kernels);
  seen.kernels += static_cast<int>(times.count);
  if (times.is_fused_away()) return;
  seen.fused = false;
  const double middle = times.measured_us / static_cast<double>(times.observed);
  const double least = times.each_us.empty() ? middle : *std::min_element(times.each_us.begin(), times.each_us.end());
  const auto executions = static_cast<double>(times.observed);
  seen.measured_us += times.meets_ranks ? executions * least : times.measured_us;
  seen.simulated_us += times.meets_ranks ? executions * times.least_simulated_us : times.simulated_us;
  for (const double us : times.each_us) seen.ratios.push_back(middle > 0 ? us / middle : 1);
  for (const std::uint32_t work : times.works) extend(seen.range, learnt_dimensions(program.kernels[work].op));
}

// What one execution scatters by where too few were seen to tell.
constexpr double kUsualScatter = 0.1;
constexpr std::size_t kEnough = 8;

double shrunk(const Seen& seen, double class_log, double spread_squared) {
  const double n = std::max(1.0, static_cast<double>(seen.ratios.size()));
  const double scatter = seen.ratios.size() >= kEnough ? variance(seen.ratios) : kUsualScatter * kUsualScatter;
  const double error = scatter / n;
  const double own = spread_squared + error > 0 ? spread_squared / (spread_squared + error) : 1;
  return std::exp(class_log + own * (seen.log_ratio() - class_log));
}

struct ClassSum {
  double measured_us = 0, simulated_us = 0;
  std::vector<double> logs;
  int kernels = 0;
  MeasuredRange range;
};

void widen(const MeasuredRange& more, MeasuredRange& range) {
  for (const auto& [dimension, bounds] : more) {
    Bounds& own = range.try_emplace(dimension, bounds).first->second;
    own = {std::min(own.low, bounds.low), std::max(own.high, bounds.high)};
  }
}

std::map<std::string, ClassSum> sums_of(const std::map<std::string, Seen>& operators) {
  std::map<std::string, ClassSum> sums;
  for (const auto& [name, seen] : operators) {
    if (!seen.has_ratio()) continue;
    ClassSum& sum = sums[seen.learnt_class];
    sum.measured_us += seen.measured_us;
    sum.simulated_us += seen.simulated_us;
    sum.logs.push_back(seen.log_ratio());
    sum.kernels += seen.kernels;
    widen(seen.range, sum.range);
  }
  return sums;
}

}  // namespace

void learn_factors(const std::vector<LearntFrom>& from, LearntKernels& learnt) {
  std::map<std::string, Seen> operators;
  for (const LearntFrom& trace : from) {
    for (const OperatorTimes& times : *trace.operators)
      add(times, trace.run->program, trace.run->setup.kernels(), operators[times.name]);
  }
  const std::map<std::string, ClassSum> sums = sums_of(operators);
  for (const auto& [name, sum] : sums) {
    learnt.classes[name] = {.factor = sum.measured_us / sum.simulated_us, .kernels = sum.kernels, .range = sum.range};
  }
  for (const auto& [name, seen] : operators) {
    if (seen.learnt_class.empty()) continue;
    if (seen.fused) {
      learnt.operators[name] = {.factor = 0, .kernels = std::max(1, seen.kernels), .range = {}};
    } else if (seen.has_ratio()) {
      const ClassSum& of_class = sums.at(seen.learnt_class);
      const double factor =
          shrunk(seen, std::log(of_class.measured_us / of_class.simulated_us), variance(of_class.logs));
      learnt.operators[name] = {factor, seen.kernels, seen.range, seen.family};
    }
  }
}

}  // namespace moeline
