// How the kernels of the three experiments are known, checked against the profile's text by a second, plain reading.
#include <doctest/doctest.h>

#include <map>

#include "base/spec.hpp"
#include "experiments/run/run_metrics.hpp"
#include "moe/inference.hpp"
#include "moe/training.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/provenance") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Shape = std::map<std::string, double>;

// What tells an operator apart from others of its family, by the keys of a profile. `sms`: left to computation.
Shape shape_of(const Operator& op, double sms, double communication_sms) {
  const std::string& family = name_of(op.family);
  const AttentionShape& a = op.attention;
  const double rows = a.heads * a.query_len / a.kv_heads;
  if (family == "gemm_fp8" || family == "gemm_fp8_wgrad") return {{"m", op.m}, {"n", op.n}, {"k", op.k}, {"sms", sms}};
  if (family == "gemm_fp8_grouped" || family == "gemm_fp8_masked") {
    const double m = family == "gemm_fp8_masked" ? op.m / op.groups : op.m;
    return {{"m", m}, {"n", op.n}, {"k", op.k}, {"groups", op.groups}, {"sms", sms}};
  }
  if (family.starts_with("attention")) {
    return {{"batch", a.batch},
            {"kv_heads", a.kv_heads},
            {"heads_per_kv", a.heads / a.kv_heads},
            {"query_len", a.query_len},
            {"kv_len", a.kv_len},
            {"cached", a.kv_len - a.query_len},
            {"window", 0},
            {"qk_dim", a.qk_dim},
            {"v_dim", a.v_dim},
            {"sms", 132}};
  }
  if (family.ends_with("_decode")) {
    return {{"batch", a.batch},   {"kv_heads", a.kv_heads}, {"rows", rows},     {"query_len", a.query_len},
            {"kv_len", a.kv_len}, {"qk_dim", a.qk_dim},     {"v_dim", a.v_dim}, {"sms", 132}};
  }
  if (op.traffic.ranks > 0) {
    Shape shape = {{"bytes", op.traffic.copied_bytes}, {"ranks", op.traffic.ranks}};
    if (!family.starts_with("low_latency")) shape["sms"] = communication_sms;
    return shape;
  }
  if (family == "small") return {};
  return op.items > 0 ? Shape{{"items", op.items}} : Shape{{"bytes", op.bytes}, {"sms", 132}};
}

// "measured", "interpolated" or "extrapolated" by the ranges of one family in the profile's text.
std::string place_in(const Spec& range, const Shape& shape) {
  bool point = !shape.empty();
  for (const auto& [key, value] : shape) {
    const std::vector<double> ends = range.numbers(key, 0, 1e30);
    const double low = ends[0], high = ends[1];
    const double slack = key == "sms" || key == "ranks" ? 1 : 1.01;
    if (value > high * slack || value < low * (2 - slack)) return "extrapolated";
    point = point && high <= low * slack;
  }
  return point ? "measured" : "interpolated";
}

// By the fits of one kernel set, which here has every family.
std::string expected(const Operator& op, const Spec& fits, double sms, double communication_sms) {
  const std::string& family = name_of(op.family);
  if (family == "notify") return "datasheet";
  if (family.starts_with("gemm_bf16")) return "extrapolated";
  const Shape shape = shape_of(op, sms, communication_sms);
  if (!family.starts_with("low_latency")) return place_in(fits.map(family).map_or_empty("range"), shape);
  const std::string whole = place_in(fits.map("low_latency").map_or_empty("range"), shape);
  return place_in(fits.map("low_latency_hold").map_or_empty("range"), shape) == "extrapolated" ? "extrapolated" : whole;
}

std::vector<Operator> operators_of(const Setup& setup, const Phase& phase) {
  const auto layer = static_cast<int>(phase.layer);
  if (setup.scenario.phase() == WorkloadPhase::train) {
    return training_phase(phase.name, setup.layer_work(phase.name.ends_with("(F)"), layer));
  }
  return inference_phase(phase.name, setup.inference_work({static_cast<int>(phase.micro_batch), 2}),
                         layer_of(setup.model, layer));
}

// Kernels by family and provenance.
using Counts = std::map<std::pair<std::string, std::string>, int>;

Counts counted(const Run& run) {
  Counts counts;
  for (const ProvenanceUse& use : run.program.provenance) {
    counts[{name_of(use.family), name_of(use.provenance)}] += static_cast<int>(use.kernels);
  }
  return counts;
}

Counts recounted(const Run& run) {
  const Spec profile = Spec::load(source("hwprofiles/h800.yaml"));
  const Spec fits = profile.map("kernel_sets").map("deepseek-2025-02").map("fits");
  const double communication_sms = run.setup.scenario.comm.num_sms;
  Counts counts;
  for (const Phase& phase : run.program.graph.phases()) {
    for (const Operator& op : operators_of(run.setup, phase)) {
      ++counts[{name_of(op.family), expected(op, fits, 132 - communication_sms, communication_sms)}];
    }
  }
  return counts;
}

const std::vector<std::filesystem::path>& scenarios() {
  static const std::vector<std::filesystem::path> kScenarios = {chunk_scenario(), prefill_scenario(),
                                                                decode_scenario()};
  return kScenarios;
}

}  // namespace

TEST_CASE("every kernel of the three experiments is known as the ranges in the profile say") {
  for (const auto& scenario : scenarios()) {
    CAPTURE(scenario.string());
    const Run run = run_scenario(load_setup(scenario, {"kernels=deepseek-2025-02", "ranks=folded", "samples=1"}));
    const Counts theirs = counted(run), ours = recounted(run);
    for (const auto& each : ours) {
      const auto& what = each.first;
      CAPTURE(what.first);
      CAPTURE(what.second);
      const auto found = theirs.find(what);
      CHECK((found == theirs.end() ? 0 : found->second) == each.second);
    }
    CHECK(theirs.size() == ours.size());
  }
}

TEST_CASE("what is neither measured nor interpolated says why, all else does not") {
  for (const auto& scenario : scenarios()) {
    for (const char* kernels : {"kernels=deepseek-2025-02", "kernels=open-2025-late"}) {
      for (const ProvenanceUse& use : run_scenario(load_setup(scenario, {kernels})).program.provenance) {
        const bool inside = use.provenance == Provenance::measured || use.provenance == Provenance::interpolated;
        CAPTURE(name_of(use.family));
        CHECK(use.note.text().empty() == inside);
      }
    }
  }
}

TEST_CASE("the warning names the families that are extrapolated most, and in what") {
  const Run prefill = run_prefill({"kernels=deepseek-2025-02"});
  // 32 ranks and 24 SMs, where DeepEP was measured beside compute on 64 and 20; 8 experts of 8192 rows, on 108 SMs
  CHECK(prefill.warnings[0].find("(bytes 1.17e+09 > 6.73e+08, ranks 32 < 64, sms 24 > 20)") != std::string::npos);
  CHECK(prefill.warnings[0].find("(m 6.6e+04 > 34688, groups 8 > 4, sms 108 < 112)") != std::string::npos);
}

TEST_CASE("a slowdown measured with other kernels than those it slows down is no measurement") {
  for (const auto& [set, provenance] : {std::pair{"kernels=deepseek-2025-02", Provenance::measured},
                                        std::pair{"kernels=open-2025-late", Provenance::extrapolated}}) {
    const Run chunk = run_scenario(load_setup(chunk_scenario(), {set}));
    for (const ProvenanceUse& use : chunk.program.provenance) {
      if (is_all_to_all(use.family)) CHECK(use.provenance == provenance);
    }
  }
}

TEST_CASE("how much of a step is known how: an all-reduce between nodes by NCCL's model is no certainty") {
  const Run across = run_scenario(read_setup(
      Spec::parse("s.yaml",
                  "{schema: 1, model: deepseek-v3, hardware: h100, schedule: sequential, parallelism: {tp: 16},"
                  " layers: 2, workload: {phase: decode, batch_size: 8, kv_len: 2000}}")));
  CHECK(extrapolated_share(across) > 0.01);
  const Run carried = run_decode({"hardware=h20", "kernels=deepseek", "layers=2"});
  CHECK(carried_over_share(carried) > 0.5);
  CHECK(outside_share(carried) <= extrapolated_share(carried));
  CHECK(carried_over_share(carried) <= extrapolated_share(carried));
}

}  // TEST_SUITE("schedules/provenance")
