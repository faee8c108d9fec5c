#include "experiments/validate/predict_served.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "experiments/run/run.hpp"
#include "experiments/validate/served_deployment.hpp"

namespace moeline {
namespace {

// Steps of one deployment, each simulated once.
class Steps {
 public:
  Steps(const ServedStudy& study, const std::vector<std::string>& deployment)
      : study_(study), deployment_(deployment) {}

  double decode_ms(int batch, int kv_len) { return step_ms({batch, kv_len, 0, 0}); }
  // `tokens` of prompts of this length are prefilled in it.
  double mixed_ms(int batch, int kv_len, int tokens, int prompt_len) {
    return step_ms({batch, kv_len, tokens, prompt_len});
  }

 private:
  using Key = std::tuple<int, int, int, int>;  // requests, keys of each, tokens of prompts, their length

  double step_ms(const Key& key) {
    const auto found = ms_.find(key);
    if (found != ms_.end()) return found->second;
    const auto [batch, kv_len, tokens, prompt_len] = key;
    const std::string of_decode = fmt::format("batch_size: {}, kv_len: {}", batch, kv_len);
    Setup setup = tokens == 0 ? setup_of(decode_, fmt::format("phase: decode, {}", of_decode))
                              : setup_of(mixed_, fmt::format("phase: mixed, {}, tokens: {}, prompt_len: {}", of_decode,
                                                             tokens, prompt_len));
    const DecodeWorkload answers{.batch_size = batch, .kv_len = kv_len};
    if (tokens == 0) {
      setup.scenario.workload = answers;
    } else {
      setup.scenario.workload = MixedWorkload{answers, {.tokens = tokens, .prompt_len = prompt_len}};
    }
    const double ms = to_us(run_scenario(setup).metrics.span) / 1e3;
    return ms_.emplace(key, ms).first->second;
  }

  // Loaded once of each phase, with the first workload that is asked for, by which the stack's habits are told.
  const Setup& setup_of(std::optional<Setup>& setup, const std::string& workload) {
    if (!setup) {
      std::vector<std::string> set = deployment_;
      set.push_back("workload={" + workload + "}");
      setup = load_setup(study_.scenario, set);
    }
    return *setup;
  }

  const ServedStudy& study_;
  std::vector<std::string> deployment_;
  std::optional<Setup> decode_, mixed_;
  std::map<Key, double> ms_;
};

int whole(double value) { return std::max(1, static_cast<int>(std::lround(value))); }

struct Lengths {
  double input, output;
  [[nodiscard]] int kv_len() const { return whole(input + output / 2); }
};

// How many steps prefill, and how much, while `batch` requests decode.
void share_prompts(const Lengths& lengths, int step_tokens, ServedPrediction& p) {
  const double arrivals = p.batch / lengths.output;  // prompts at each step
  const double budget = std::max(1.0, step_tokens - p.batch);
  p.mixed_share = -std::expm1(-arrivals);
  p.chunk_tokens = arrivals * lengths.input / p.mixed_share;
  if (p.chunk_tokens <= budget) return;
  p.chunk_tokens = budget;
  p.mixed_share = std::min(1.0, arrivals * lengths.input / budget);
}

double tpot_ms(const ServedStudy& study, const ServedRow& row, const Lengths& lengths, Steps& steps,
               ServedPrediction& p) {
  const int batch = whole(p.batch);
  const double decode = steps.decode_ms(batch, lengths.kv_len());
  if (!row.colocated) return decode;
  share_prompts(lengths, study.step_tokens, p);
  const double mixed = steps.mixed_ms(batch, lengths.kv_len(), whole(p.chunk_tokens), whole(lengths.input));
  return (1 - p.mixed_share) * decode + p.mixed_share * mixed;
}

// The batch at which Little's law holds, to what a whole number of requests tells.
ServedPrediction predict(const ServedStudy& study, const ServedRow& row, Steps& steps) {
  constexpr int kMostRounds = 12;
  constexpr double kNear = 1e-3, kFirstGuess = 20;
  const Lengths lengths{study.drawn_length * row.input, study.drawn_length * row.output};
  const double most = row.concurrency / (row.split.workers * row.split.dp);
  ServedPrediction p;
  p.tpot_ms = kFirstGuess;
  for (int round = 0; round < kMostRounds; ++round) {
    const double before = p.tpot_ms;
    p.batch = most * lengths.output * before / (row.ttft_ms + lengths.output * before);
    p.tpot_ms = tpot_ms(study, row, lengths, steps, p);
    if (std::abs(p.tpot_ms / before - 1) < kNear) break;
  }
  return p;
}

}  // namespace

std::vector<ServedPrediction> predict_served(const ServedStudy& study) {
  return predict_rows<ServedPrediction>(study, [&](const std::vector<std::string>& set, const ServedRow& /*first*/) {
    return [&study, steps = std::make_shared<Steps>(study, set)](const ServedRow& row) {
      return predict(study, row, *steps);
    };
  });
}

}  // namespace moeline
