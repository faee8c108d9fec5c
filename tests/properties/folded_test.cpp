// One rank that stands for all takes what all of them take on average.
#include <doctest/doctest.h>

#include <cmath>

#include "schedules/scenario/fold.hpp"
#include "tests/support/random_scenarios.hpp"

TEST_SUITE("properties/folded") {

using namespace moeline;
using namespace moeline::testing;

namespace {

double step_us(const Setup& setup) { return to_us(run_scenario(setup).metrics.span); }

struct Mean {
  double value = 0, standard_error = 0;
};

Mean mean_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) squares += std::pow(value - sum / count, 2);
  return {sum / count, std::sqrt(squares / (count - 1) / count)};
}

// Of all ranks, simulated together, over seeds.
Mean every_rank_us(Setup setup, int seeds) {
  std::vector<double> us;
  for (int seed = 0; seed < seeds; ++seed) {
    draw(setup, seed);
    us.push_back(step_us(setup));
  }
  return mean_of(us);
}

Setup with_ranks(ScenarioKeys keys, const char* ranks) {
  keys["ranks"] = ranks;
  return setup_of(yaml_of(keys));
}

struct Error {
  double signed_error = 0;    // over the mean of all ranks
  double standard_error = 0;  // what chance makes of a mean of few seeds
  [[nodiscard]] double surely() const {
    constexpr double kSurely = 4;
    return std::abs(signed_error) - kSurely * standard_error;
  }
};

Error compared(const ScenarioKeys& keys, int seeds) {
  const Mean all = every_rank_us(with_ranks(keys, "all"), seeds);
  return {step_us(folded(with_ranks(keys, "folded"))) / all.value - 1, all.standard_error / all.value};
}

double error_of(const ScenarioKeys& keys, int seeds) { return compared(keys, seeds).surely(); }

// Whole steps of prefill and decode: of some layers alone, the last one waits for nobody.
bool is_asked(const ScenarioKeys& keys) {
  constexpr int kMostRankLayers = 1000;
  const Setup all = with_ranks(keys, "all");
  const Scenario& s = all.scenario;
  return s.phase() != WorkloadPhase::train && s.whole_model && all.every_rank &&
         s.layers * s.parallelism.group() <= kMostRankLayers;
}

// `errors`: all that were found.
std::optional<std::string> another_mean(ScenarioKeys keys, std::vector<double>& errors) {
  constexpr int kSeeds = 4;
  constexpr double kMost = 0.02;
  for (const char* key : {"layers", "samples", "seed"}) keys.erase(key);
  try {
    if (!is_asked(keys)) return std::nullopt;
    const Error error = compared(keys, kSeeds);
    errors.push_back(error.signed_error);
    return error.surely() < kMost ? "" : "one rank for all takes another time than all on average";
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

ScenarioKeys decode_of(const char* model, const char* machine, int tp, int ep, int batch) {
  return {{"model", model},
          {"hardware", machine},
          {"schedule", "sequential"},
          {"parallelism.tp", std::to_string(tp)},
          {"parallelism.ep", std::to_string(ep)},
          {"workload.phase", "decode"},
          {"workload.batch_size", std::to_string(batch)},
          {"workload.kv_len", "500"}};
}

}  // namespace

TEST_CASE("ranks that share experts get the same rows and do not wait for each other's: Mixtral's one request, TP4") {
  const ScenarioKeys keys = decode_of("mixtral-8x7b", "h100", 4, 1, 1);
  CHECK(error_of(keys, 8) < 0.02);
  ScenarioKeys exact = keys;
  exact["routing.distribution"] = "exact";
  // One token chooses two experts, whoever counts: nothing is left to chance but which.
  CHECK(step_us(with_ranks(keys, "folded")) / step_us(with_ranks(exact, "folded")) == doctest::Approx(1).epsilon(0.06));
}

TEST_CASE("few rows: how many experts get any is all that matters") {
  CHECK(error_of(decode_of("qwen3-30b-a3b", "h100", 2, 4, 1), 8) < 0.02);
  CHECK(error_of(decode_of("gpt-oss-120b", "h20", 1, 8, 1), 8) < 0.02);
}

TEST_CASE("two micro-batches hide a part of what each waits") {
  ScenarioKeys keys = decode_of("qwen3-30b-a3b", "h100", 4, 16, 4);
  keys["schedule"] = "decode-two-batch";
  keys["comm.mode"] = "low_latency";
  CHECK(error_of(keys, 4) < 0.02);
  keys["parallelism.tp"] = "1";
  CHECK(error_of(keys, 4) < 0.02);
}

TEST_CASE("halves of a rank's experts get rows by chance, too, or none") {
  ScenarioKeys keys = decode_of("deepseek-v3", "h100", 4, 8, 2);
  keys["schedule"] = "per-expert";
  CHECK(error_of(keys, 8) < 0.02);
}

TEST_CASE("one rank for all takes what all take on average") {
  std::vector<double> errors;
  none_in_any_scenario([&](const ScenarioKeys& keys) { return another_mean(keys, errors); }, 80, 8);
  const auto beyond = [](double error) { return std::abs(error) > 0.02; };
  const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
  MESSAGE("errors ", 100 * *least, " to ", 100 * *most, " %, mean ", 100 * mean_of(errors).value,
          " %; beyond 2 %: ", std::count_if(errors.begin(), errors.end(), beyond), " of ", errors.size());
}

}  // TEST_SUITE("properties/folded")
