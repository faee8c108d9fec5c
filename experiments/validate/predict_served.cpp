#include "experiments/validate/predict_served.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "base/error.hpp"
#include "experiments/run/run.hpp"
#include "experiments/serve/measures.hpp"
#include "experiments/serve/schedulers.hpp"
#include "experiments/serve/step_grids.hpp"

namespace moeline {
namespace {

std::string named(const std::map<std::string, std::string>& names, const std::string& what, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) throw SpecError(fmt::format("{}: the study has none for '{}'", what, name));
  return found->second;
}

}  // namespace

std::vector<std::string> deployment_of(const ServedStudy& study, const ServedRow& row, const ServedSplit& split) {
  const auto model = std::find_if(study.models.begin(), study.models.end(), [&](const ServedModel& each) {
    const bool same = std::find(each.names.begin(), each.names.end(), row.model) != each.names.end();
    return same && each.precision == row.precision;
  });
  if (model == study.models.end()) {
    throw SpecError(fmt::format("models: the study has none for '{}' in {}", row.model, row.precision));
  }
  std::vector<std::string> set = model->set;
  set.push_back("hardware=" + named(study.machines, "machines", row.system));
  set.push_back("kernels=" + named(study.kernels, "kernels", row.stack));
  std::string keys = fmt::format("tp: {}, dp: {}", split.tp, split.dp);
  if (split.pp > 1) keys += fmt::format(", pp: {}", split.pp);
  keys += fmt::format(", ep: {}", split.ep);
  if (split.ep > 1 || split.dp > 1) keys += fmt::format(", moe_tp: {}", split.moe_tp);  // else all split the layers
  set.push_back(fmt::format("parallelism={{{}}}", keys));
  return set;
}

DeployedRows rows_by_deployment(const ServedStudy& study) {
  DeployedRows deployed;
  std::map<std::vector<std::string>, std::vector<std::size_t>> deployments;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const ServedRow& row = study.rows[i];
    if (!row.left_out.empty()) continue;
    try {
      deployments[deployment_of(study, row, row.split)].push_back(i);
    } catch (const SpecError& error) {
      deployed.refused.emplace_back(i, error.reason());
    }
  }
  deployed.deployments.assign(deployments.begin(), deployments.end());
  return deployed;
}

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

namespace {

Length drawn(double nominal, const ServedLoop& loop) {
  const auto whole = [](double value) { return std::max(1, static_cast<int>(std::lround(value))); };
  Length length;
  length.least = whole(loop.least * nominal);
  length.most = whole(loop.most * nominal);
  length.mean = (length.least + length.most) / 2;
  return length;
}

ServeWorkload workload_of(const ServedStudy& study, const ServedRow& row) {
  ServeWorkload w;
  w.concurrency = static_cast<int>(row.concurrency);
  w.requests = w.concurrency * study.loop->requests_per_slot;
  w.input = drawn(row.input, *study.loop);
  w.output = drawn(row.output, *study.loop);
  w.tokens = study.step_tokens;
  w.scheduler = choice_of<Stack>(row.stack);
  w.replicas = row.split.workers;
  w.prefill.replicas = row.colocated ? 0 : row.prefill.workers;
  return w;
}

// Grids of rows that run on the same GPUs: prompts of some rows may be prefilled by others than those of the next.
class Grids {
 public:
  Grids(const Spec& scenario, ServeWorkload workload) : scenario_(scenario), workload_(std::move(workload)) {}

  StepGrids& of(const std::vector<std::string>& deployment, RequestPart part) {
    std::unique_ptr<StepGrids>& grid = grids_[{deployment, part}];
    if (!grid) grid = std::make_unique<StepGrids>(scenario_, deployment, workload_, part);
    return *grid;
  }

 private:
  const Spec& scenario_;
  ServeWorkload workload_;
  std::map<std::pair<std::vector<std::string>, RequestPart>, std::unique_ptr<StepGrids>> grids_;
};

ServedLoopPrediction predict(const ServedStudy& study, const ServedRow& row, const std::vector<std::string>& set,
                             Grids& grids) {
  ServeWorkload w = workload_of(study, row);
  StepGrids& answers = grids.of(set, row.colocated ? RequestPart::all : RequestPart::answer);
  StepGrids* prompts = row.colocated ? nullptr : &grids.of(deployment_of(study, row, row.prefill), RequestPart::prompt);
  w = with_defaults(w, (prompts != nullptr ? *prompts : answers).base().setup());
  const ServeDeployment deployment = deployment_of(answers, prompts, w);
  const ServeLog log = serve_requests(w, deployment, 1);
  const ServeMeasures measures = measure(log, w);
  ServedLoopPrediction p;
  p.steady_ttft_ms = measures.steady.ttft_ms.mean;
  p.first_ttft_ms = measures.first.ttft_ms.mean;
  for (const ServedRequest& each : log.requests) {
    p.ttft_ms += each.ttft_ms() / w.requests;
    p.tpot_ms += each.tpot_ms() / w.requests;
  }
  return p;
}

}  // namespace

std::vector<ServedLoopPrediction> predict_served_loop(const ServedStudy& study) {
  const Spec scenario = Spec::load(study.scenario);
  return predict_rows<ServedLoopPrediction>(study, [&](const std::vector<std::string>& set, const ServedRow& first) {
    return [&study, &set, grids = std::make_shared<Grids>(scenario, workload_of(study, first))](const ServedRow& row) {
      return predict(study, row, set, *grids);
    };
  });
}

}  // namespace moeline
