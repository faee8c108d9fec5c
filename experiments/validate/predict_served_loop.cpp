#include "experiments/validate/predict_served_loop.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "experiments/serve/measures.hpp"
#include "experiments/serve/step_grid.hpp"
#include "experiments/validate/served_deployment.hpp"

namespace moeline {
namespace {

Length drawn(double nominal, const ServedLoop& loop) {
  const auto whole = [](double value) { return std::max(1, static_cast<int>(std::lround(value))); };
  Length length;
  length.least = whole(loop.least * nominal);
  length.most = whole(loop.most * nominal);
  length.mean = (length.least + length.most) / 2;
  return length;
}

PromptOrder prompts_of(const ServedStudy& study, const std::string& stack) {
  const auto& first = study.loop->prompts_first;
  return std::find(first.begin(), first.end(), stack) == first.end() ? PromptOrder::mixed : PromptOrder::first;
}

ServeWorkload workload_of(const ServedStudy& study, const ServedRow& row) {
  ServeWorkload w;
  w.concurrency = static_cast<int>(row.concurrency);
  w.requests = w.concurrency * study.loop->requests_per_slot;
  w.input = drawn(row.input, *study.loop);
  w.output = drawn(row.output, *study.loop);
  w.tokens = study.step_tokens;
  w.overlapped = true;
  w.order = prompts_of(study, row.stack);
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
  const ServeWorkload w = workload_of(study, row);
  StepGrids& answers = grids.of(set, row.colocated ? RequestPart::all : RequestPart::answer);
  StepGrids* prompts = row.colocated ? nullptr : &grids.of(deployment_of(study, row, row.prefill), RequestPart::prompt);
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
