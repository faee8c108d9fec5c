// The operator lists against what was measured and published.
#include <doctest/doctest.h>

#include <cmath>

#include "base/csv.hpp"
#include "moe/training.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("moe/training") {

using namespace moeline;
using namespace moeline::testing;

namespace {

LayerWork deepseek_v3(double rows = 32512) {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = given_load(work.model, rows, work.ep, work.spread);
  return work;
}

double teraflops(const std::vector<Operator>& ops) {
  double flops = 0;
  for (const Operator& op : ops) flops += op.flops;
  return flops / 1e12;
}

}  // namespace

TEST_CASE("each phase has as many kernels as the measured layer") {
  const LayerWork work = deepseek_v3();
  const std::vector<std::pair<const char*, std::size_t>> measured = {
      {"combine(B)", 3}, {"attn(F)", 69}, {"mlp(B)", 29},   {"dispatch(F)", 3}, {"dispatch(B)", 2},
      {"mlp(W)", 12},    {"mlp(F)", 19},  {"attn(B)", 101}, {"attn(W)", 5},     {"combine(F)", 2}};
  for (const auto& [phase, kernels] : measured) {
    MOELINE_CAPTURE_BINDING(phase);
    CHECK(training_phase(phase, work).size() == kernels);
  }
}

TEST_CASE("a layer pair executes 17.17 TFLOP, as derived from the trace's grids") {
  const LayerWork forward = deepseek_v3(32512);  // means over the measured layers
  const LayerWork backward = deepseek_v3(32128);
  double sum = 0;
  for (const std::string& phase : training_phase_names()) {
    sum += teraflops(training_phase(phase, phase.ends_with("(F)") ? forward : backward));
  }
  CHECK(sum == doctest::Approx(17.17).epsilon(0.002));
}

TEST_CASE("every measured kernel of 20 us or more has the bytes that a close reading derived") {
  if (!present(training_kernels())) return;
  const CsvTable table(training_kernels());
  const LayerWork forward = deepseek_v3(31104);  // rows of layer 0
  const LayerWork backward = deepseek_v3(34688);
  int compared = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "layer") != "0" || table.text(row, "mbytes").empty()) continue;
    const std::string& phase = table.text(row, "phase");
    const auto ops = training_phase(phase, phase.ends_with("(F)") ? forward : backward);
    const Operator& op = ops[static_cast<std::size_t>(table.number(row, "idx"))];
    CAPTURE(phase);
    CAPTURE(op.name);
    CHECK(op.bytes / 1e6 == doctest::Approx(table.number(row, "mbytes")).epsilon(0.01));
    ++compared;
  }
  CHECK(compared > 60);
}

TEST_CASE("no kernel of 20 us or more is lumped into a fixed cost") {
  if (!present(training_kernels())) return;
  const CsvTable table(training_kernels());
  const LayerWork work = deepseek_v3();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.number(row, "idx") < 0 || table.number(row, "dur_us") < 20) continue;
    const auto ops = training_phase(table.text(row, "phase"), work);
    const Operator& op = ops[static_cast<std::size_t>(table.number(row, "idx"))];
    CAPTURE(op.name);
    CHECK(op.family != Family::small);
  }
}

TEST_CASE("DeepSeek-V3's gating reaches 3.96 of 8 nodes, 3.12 of 4, 1.97 of 2, and 7.49 of 64 ranks") {
  const Architecture model = load_architecture("deepseek-v3");
  CHECK(expected_spread(model, 64, 8).nodes_per_token == doctest::Approx(3.96).epsilon(0.005));
  CHECK(expected_spread(model, 32, 8).nodes_per_token == doctest::Approx(3.12).epsilon(0.01));
  CHECK(expected_spread(model, 16, 8).nodes_per_token == doctest::Approx(1.97).epsilon(0.005));
  CHECK(expected_spread(model, 64, 8).ranks_per_token == doctest::Approx(7.49).epsilon(0.005));
  CHECK(expected_spread(model, 32, 8).ranks_per_token == doctest::Approx(6.85).epsilon(0.005));
  CHECK(expected_spread(model, 16, 8).ranks_per_token == doctest::Approx(5.72).epsilon(0.005));
}

TEST_CASE("one group per node, four of them chosen, reaches what DeepEP's own benchmark reaches") {
  Architecture model = load_architecture("deepseek-v3");
  model.n_group = 4;
  CHECK(expected_spread(model, 32, 8).nodes_per_token == doctest::Approx(3.614).epsilon(0.005));
  model.n_group = model.topk_group = 2;
  CHECK(expected_spread(model, 16, 8).nodes_per_token == doctest::Approx(1.993).epsilon(0.005));
}

TEST_CASE("transfers carry the bytes that DeepEP's records and the gating imply") {
  const LayerWork work = deepseek_v3();
  // per rank, off-node, MB: 4096 tokens x 3.965 nodes x 7/8 x record (7472, 7408, 14352, 14384 bytes)
  CHECK(dispatch_forward(work).back().traffic.wire_bytes / 1e6 == doctest::Approx(106.2).epsilon(0.005));
  CHECK(combine_backward(work).back().traffic.wire_bytes / 1e6 == doctest::Approx(105.3).epsilon(0.005));
  CHECK(combine_forward(work).back().traffic.wire_bytes / 1e6 == doctest::Approx(204.0).epsilon(0.005));
  CHECK(dispatch_backward(work).back().traffic.wire_bytes / 1e6 == doctest::Approx(204.4).epsilon(0.005));
}

TEST_CASE("within one node nothing goes over the NIC") {
  LayerWork work = deepseek_v3();
  work.ep = 8;
  work.spread = expected_spread(work.model, 8, 8);
  CHECK(dispatch_forward(work).back().traffic.wire_bytes == 0);
  CHECK(dispatch_forward(work).back().traffic.nvlink_bytes > 0);
}

}  // TEST_SUITE("moe/training")
