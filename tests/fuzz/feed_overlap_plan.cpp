// Bytes as the order of phases of a layer, for every kind of step that takes one.
#include "base/file.hpp"
#include "schedules/lowering/inference_step.hpp"
#include "schedules/lowering/training_passes.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {
namespace {

PlanContents contents_of(const char* experiment, const std::string& schedule) {
  const std::vector<std::string> set = {"schedule=" + schedule};
  return inference_plan_contents(load_setup(home() / "experiments/studies" / experiment / "scenario.yaml", set));
}

}  // namespace

bool feed_overlap_plan(std::string_view bytes) {
  static const std::vector<std::pair<std::string, PlanContents>> kinds = {
      {"dualpipe-chunk", training_plan_contents()},
      {"prefill-two-batch", contents_of("prefill_deepseek_v3_h800_ep32", "prefill-two-batch")},
      {"decode-two-batch", contents_of("decode_deepseek_v3_h800_ep128", "decode-two-batch")},
      {"single-batch", contents_of("decode_deepseek_v3_h800_ep128", "single-batch")}};
  const FedFiles files(bytes, "plan.yaml");
  bool taken = false;
  for (const auto& [schedule, contents] : kinds) {
    try {
      const OverlapPlan plan = load_overlap_plan(schedule, files.first(), contents);
      (void)plan_text(plan, contents, "");
      taken = true;
    } catch (const SpecError&) {
    }
  }
  return taken;
}

}  // namespace moeline::fuzz
