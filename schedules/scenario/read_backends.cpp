// Whose kernels run attention's core and experts that are one fused layer: what the scenario says, else what the stack
// runs, else what the kernel set has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "moe/fused_experts.hpp"
#include "schedules/scenario/kernel_habits.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {
namespace {

// Libraries that a family may be run by: those that some set of the machine has it of.
template <class Backend>
struct Choice {
  const char* key;
  std::string kernels;  // "fp8 experts"
  std::vector<Backend> known;
  Backend own;  // the kernel set's
  const std::vector<habits::KernelHabit<Backend>>& habits;

  [[nodiscard]] bool has(Backend backend) const {
    return std::find(known.begin(), known.end(), backend) != known.end();
  }

  // What it has of another generation counts as nobody's.
  [[nodiscard]] Backend usual() const { return has(own) ? own : Backend::usual; }

  [[nodiscard]] Backend by_habit(const Setup& setup) const {
    const auto* row = habits::habit_of(setup, habits, known);
    return row == nullptr ? usual() : row->backend;
  }

  [[nodiscard]] Backend read(const Spec& spec, const Setup& setup) const {
    if (!spec.has(key)) return by_habit(setup);
    const Backend asked = read_choice(spec, key, Backend::usual);
    if (asked == Backend::usual) return usual();
    if (has(asked)) return asked;
    throw spec.error(
        key, fmt::format("{}: no kernels of {} have {} by it; there is: usual{}{}", word_of(asked), setup.machine.name,
                         kernels, known.empty() ? "" : ", ", fmt::join(words_of(known), ", ")));
  }
};

void refuse_backend(const Spec& spec, const char* key, const char* why) {
  if (spec.has(key)) throw spec.error(key, fmt::format("does not apply: {}", why));
}

AttentionBackend read_attention_backend(const Spec& spec, const HardwareProfile& profile, const Setup& setup,
                                        Libraries& others) {
  constexpr const char* kKey = "attention_backend";
  const std::string family = attention_family(setup);
  if (family.empty()) {
    refuse_backend(spec, kKey, "no layer attends to keys, or it is training");
    return AttentionBackend::usual;
  }
  const Choice<AttentionBackend> choice{kKey, family, attention_libraries(profile, family),
                                        attention_library(setup.kernels(), family), habits::attention_kernels()};
  const AttentionBackend taken = choice.read(spec, setup);
  if (taken != choice.usual()) others.attention = taken;
  return taken;
}

MoeBackend read_moe_backend(const Spec& spec, const HardwareProfile& profile, const Setup& setup, Libraries& others) {
  constexpr const char* kKey = "moe_backend";
  if (!runs_fused(setup)) {
    refuse_backend(spec, kKey, "no experts run as one fused layer");
    return MoeBackend::usual;
  }
  const std::string family = measured_experts(setup, ExpertLayout::fused);
  const Choice<MoeBackend> choice{kKey, fmt::format("{} experts", name_of(setup.model.expert_weights)),
                                  experts_libraries(profile, family), experts_library(setup.kernels(), family),
                                  habits::expert_kernels()};
  const MoeBackend taken = choice.read(spec, setup);
  if (taken != choice.usual()) others.experts = taken;
  return taken;
}

}  // namespace

std::string attention_family(const Setup& setup) {
  if (setup.scenario.phase() == WorkloadPhase::train) return "";
  const InferenceWork work = setup.inference_work({0, passes(setup.scenario)});
  std::string found;
  for (const Block& block : blocks_of(setup.model, 0)) {
    if (!is_layer(block.kind)) continue;
    for (const Operator& op : inference_phase("attn", work, block)) {
      if (row_of(op.family).kind != FamilyKind::attention || op.measured_as.empty()) continue;
      const bool decodes = op.family == Family::mla_decode || op.family == Family::gqa_decode;
      if (decodes || !work.decode.any()) return op.measured_as;
      if (found.empty()) found = op.measured_as;
    }
    if (!found.empty()) break;
  }
  return found;
}

std::string measured_experts(const Setup& setup, ExpertLayout layout) {
  RankWork work;
  work.has_fp4 = setup.machine.facts.fp4_tflops > 0;
  work.mxfp4_rows = setup.mxfp4_rows();
  ExpertShape shape;
  shape.weights = setup.model.expert_weights;
  shape.math = work.fused_format(shape.weights);
  shape.gate = setup.model.gated_ffn ? 2 : 1;
  shape.layout = layout;
  return measured_expert_layer(shape);
}

void read_backends(const Spec& spec, const std::shared_ptr<const HardwareProfile>& profile, Setup& setup) {
  Libraries others;
  setup.scenario.moe_backend = read_moe_backend(spec, *profile, setup, others);
  setup.scenario.attention_backend = read_attention_backend(spec, *profile, setup, others);
  if (others != Libraries{}) setup.prices = prices_of(profile, setup.kernels().name, "", others);
}

}  // namespace moeline
