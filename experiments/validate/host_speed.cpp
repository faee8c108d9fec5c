#include "experiments/validate/host_speed.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/file.hpp"
#include "experiments/run/best_run.hpp"

namespace moeline {
namespace {

constexpr double kSlowest = 0.01, kFastest = 100;

class HostBound {
 public:
  explicit HostBound(const Fact& fact) : spec_(fact.prediction) {
    if (fact.method != "simulate" || spec_.text("metric") != "step_ms" || fact.unit != "ms") {
      throw spec_.at("metric").error("metric",
                                     "must be step_ms, simulated and in ms: a host's speed is found by steps");
    }
    path_ = beside(spec_.at("scenario").file(), spec_.text("scenario"));
    if (spec_.has("set")) set_ = spec_.at("set").texts("set");
  }

  [[nodiscard]] Run run(double speed) const {
    return used(spec_, "scenario", [&] {
      std::vector<std::string> set = set_;
      set.push_back(fmt::format("hardware.host_speed={}", speed));
      return best_run(path_, set);
    });
  }
  [[nodiscard]] double ms(double speed) const { return to_us(run(speed).metrics.span) / 1e3; }

  // A slower host never makes a step shorter.
  [[nodiscard]] double speed_for(double measured_ms) const {
    constexpr double kClose = 1e-3;
    if (const double least = ms(kFastest); least >= measured_ms) {
      throw spec_.at("scenario")
          .error("scenario", fmt::format("takes {:.5g} ms by its kernels alone, no less than the "
                                         "{:.5g} measured: it says nothing of its host",
                                         least, measured_ms));
    }
    double slow = kSlowest, fast = kFastest;
    while (fast / slow > 1 + kClose) {
      const double middle = std::sqrt(slow * fast);
      (ms(middle) > measured_ms ? slow : fast) = middle;
    }
    return std::sqrt(slow * fast);
  }

 private:
  const FactSpec& spec_;
  std::filesystem::path path_;
  std::vector<std::string> set_;
};

}  // namespace

HostCalibration calibrate_host(const Subject& subject, const Progress& progress) {
  HostCalibration result;
  ProgressCount done(progress, "steps", subject.facts.size());
  double sum = 0;
  for (const Fact& fact : subject.facts) {
    const HostBound step(fact);
    const std::string hardware = step.run(kFastest).setup.scenario.hardware;
    if (result.hardware.empty()) result.hardware = hardware;
    if (hardware != result.hardware) {
      throw fact.prediction.at("scenario")
          .error("scenario", fmt::format("runs on {}, and the steps before on {}", hardware, result.hardware));
    }
    result.steps.push_back({fact.id, fact.measured, step.speed_for(fact.measured), 0});
    sum += std::log(result.steps.back().speed);
    done();
  }
  constexpr double kDigits = 1e3;  // of what a profile is to show
  result.speed = std::round(kDigits * std::exp(sum / static_cast<double>(subject.facts.size()))) / kDigits;
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    result.steps[i].predicted_ms = HostBound(subject.facts[i]).ms(result.speed);
  }
  return result;
}

}  // namespace moeline
