#include "experiments/validate/host_speed.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/file.hpp"
#include "experiments/run/best_run.hpp"

namespace moeline {
namespace {

constexpr const char* kKey = "hardware.host_speed";
constexpr double kSlowest = 0.01, kFastest = 100;

double ms_of(const Run& run) { return to_us(run.metrics.span) / 1e3; }

class HostBound {
 public:
  explicit HostBound(const Fact& fact) : spec_(fact.prediction) {
    spec_.expect({"scenario", "set", "metric"});
    const Spec& metric = spec_.at("metric");
    if (fact.method != "simulate" || spec_.text("metric") != "step_ms") {
      throw metric.error("metric", "must be step_ms, simulated: a host's speed is found by steps");
    }
    if (fact.unit != "ms") throw metric.error("metric", fmt::format("is in ms, and the fact in {}", fact.unit));
    path_ = beside(spec_.at("scenario").file(), spec_.text("scenario"));
    set_ = spec_.settings();
    for (const std::string& each : set_) {
      if (each.starts_with(kKey))
        throw spec_.at("set").error("set", fmt::format("holds {}, which is to be found", kKey));
    }
  }

  [[nodiscard]] Run run(double speed) const {
    return used(spec_, "scenario", [&] {
      std::vector<std::string> set = set_;
      set.push_back(fmt::format("{}={}", kKey, speed));
      return best_run(path_, set);
    });
  }
  [[nodiscard]] double ms(double speed) const { return ms_of(run(speed)); }

  // `alone`: with the fastest host. A slower one never makes a step shorter.
  [[nodiscard]] double speed_for(double measured_ms, const Run& alone) const {
    constexpr double kClose = 1e-3;
    if (ms_of(alone) >= measured_ms) refuse(measured_ms, "is no longer than its kernels take alone");
    if (ms(kSlowest) <= measured_ms) refuse(measured_ms, "is longer than by the slowest host");
    double slow = kSlowest, fast = kFastest;
    while (fast / slow > 1 + kClose) {
      const double middle = std::sqrt(slow * fast);
      (ms(middle) > measured_ms ? slow : fast) = middle;
    }
    const double speed = std::sqrt(slow * fast);
    constexpr double kWaits = 1.5;  // where the host binds, half its speed makes a step nearly twice as long
    if (ms(speed / 2) < kWaits * measured_ms) refuse(measured_ms, "waits for more than its host");
    return speed;
  }

 private:
  [[noreturn]] void refuse(double measured_ms, const char* why) const {
    throw spec_.at("scenario")
        .error("scenario", fmt::format("says nothing of its host: the step of {:.5g} ms {}", measured_ms, why));
  }

  const FactSpec& spec_;
  std::filesystem::path path_;
  std::vector<std::string> set_;
};

}  // namespace

HostCalibration calibrate_host(const Subject& subject, const Progress& progress) {
  HostCalibration result;
  ProgressCount done(progress, "steps", subject.facts.size());
  std::vector<HostBound> steps;
  double sum = 0;
  for (const Fact& fact : subject.facts) {
    const HostBound& step = steps.emplace_back(fact);
    const Run alone = step.run(kFastest);
    const std::string& hardware = alone.setup.scenario.hardware;
    if (result.hardware.empty()) result.hardware = hardware;
    if (hardware != result.hardware) {
      throw fact.prediction.at("scenario")
          .error("scenario", fmt::format("runs on {}, and the steps before on {}", hardware, result.hardware));
    }
    result.steps.push_back({fact.id, fact.measured, step.speed_for(fact.measured, alone), 0});
    sum += std::log(result.steps.back().speed);
    done();
  }
  constexpr double kDigits = 1e3;  // of what a profile is to show
  result.speed = std::round(kDigits * std::exp(sum / static_cast<double>(steps.size()))) / kDigits;
  for (std::size_t i = 0; i < steps.size(); ++i) result.steps[i].predicted_ms = steps[i].ms(result.speed);
  return result;
}

}  // namespace moeline
