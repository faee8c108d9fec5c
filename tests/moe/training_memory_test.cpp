// Parameters and activations of training's stages, and the volume of what replicas exchange.
#include "moe/training_memory.hpp"

#include <doctest/doctest.h>

#include "architecture/parameters.hpp"
#include "moe/collectives.hpp"

TEST_SUITE("moe/training_memory") {

using namespace moeline;

namespace {

Architecture v3() { return load_architecture("deepseek-v3"); }

double mtp_parameters(const Architecture& model) {
  double sum = 0;
  for (const Module& module : mtp_modules(model)) sum += module.parameters();
  return sum;
}

LayerWork work_of(BlockKind kind) {
  LayerWork work;
  work.model = v3();
  work.kind = kind;
  work.content = work.model.layer(kind == BlockKind::dense_layer ? 0 : work.model.first_main_layer());
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = balanced_load(work.model, work.tokens(), work.ep, work.spread);
  return work;
}

}  // namespace

TEST_CASE("the blocks of a model hold all of its parameters once, experts spread over EP") {
  const Architecture model = v3();
  for (const int ep : {1, 64}) {
    const StageParameters all = stage_parameters(model, blocks_of(model, 0), {.ep = ep});
    CHECK(all.replicated + all.experts * ep == doctest::Approx(parameters(model)).epsilon(1e-9));
  }
}

TEST_CASE("MTP adds its own layer and projection, and shares embedding and head where they are on the same GPU") {
  const Architecture model = v3();
  const StageParameters with = stage_parameters(model, blocks_of(model, 1), {.ep = 1});
  const StageParameters without = stage_parameters(model, blocks_of(model, 0), {.ep = 1});
  const double added = with.replicated + with.experts - without.replicated - without.experts;
  CHECK(added == doctest::Approx(mtp_parameters(model)).epsilon(1e-5));  // norms aside
  const StageParameters apart = stage_parameters(model, std::vector{Block{BlockKind::mtp}}, {.ep = 1});
  CHECK(apart.replicated > 1.0 * model.vocab_size * model.hidden_size);  // a table of its own
}

TEST_CASE("linear layers of an FP8 model lie in memory in FP8, tables in BF16, of a BF16 model all in BF16") {
  Architecture model = v3();
  const auto layer = stage_parameters(model, std::vector{layer_of(model, 3)}, {.ep = 64});
  CHECK(layer.experts_bytes / layer.experts == doctest::Approx(1).epsilon(0.001));
  const auto head = stage_parameters(model, std::vector{Block{BlockKind::head}}, {.ep = 64});
  CHECK(head.replicated_bytes / head.replicated == doctest::Approx(2));
  model.weights = model.expert_weights = Precision::bf16;
  const auto wide = stage_parameters(model, std::vector{layer_of(model, 3)}, {.ep = 64});
  CHECK(wide.experts_bytes / wide.experts == doctest::Approx(2));
}

TEST_CASE("a MoE layer keeps per token what its backward kernels read, term by term") {
  const LayerWork work = work_of(BlockKind::moe_layer);
  const double fp8 = 1 + 4.0 / 128;
  const double attention = 2 * 7168 * 2 + (1536 + 512 + 64) * 2 + 128 * 128 * 1.5 + 128 * 4 + 256 * 4;
  const double shared = 7168 * fp8 + 2 * 2048 * fp8;
  const double expected = 4096 * (attention + shared) + work.load.rows * (7168 * fp8 + 2 * 2048 * fp8);
  CHECK(saved_bytes(work) == doctest::Approx(expected));
  CHECK(saved_bytes(work) / (1 << 30) == doctest::Approx(0.62).epsilon(0.02));  // GiB
}

TEST_CASE("full recomputation keeps the layer's input alone") {
  LayerWork work = work_of(BlockKind::moe_layer);
  work.choices.recompute = Recompute::full;
  CHECK(saved_bytes(work) == 4096 * 7168 * 2);
}

TEST_CASE("what waits for a W are both operands of its GEMMs in FP8, term by term") {
  const LayerWork work = work_of(BlockKind::moe_layer);
  const double fp8 = 1 + 4.0 / 128;
  const double w_o = 7168 + 16384;
  const double w_ukv = 32768 + 512;
  const double w_uq = 24576 + 1536;
  const double w_d = 7168 + 576 + 7168 + 1536 + 64;  // W_DKV and W_DQ, each with x; the rotary key's latent once more
  const double ffn = 7168 + 4096 + 2048 + 7168;      // d(gate_up) and x, SwiGLU's output and dY
  const double expected = (4096 * (w_o + w_ukv + w_uq + w_d + ffn) + work.load.rows * ffn) * fp8;
  CHECK(pending_weight_bytes(work) == doctest::Approx(expected).epsilon(0.001));
  CHECK(pending_weight_bytes(work) > saved_bytes(work));  // more than what B found
}

TEST_CASE("the head keeps its logits until its backward pass") {
  CHECK(saved_bytes(work_of(BlockKind::head)) == 4096.0 * (7168 + 129280) * 2);
  CHECK(saved_bytes(work_of(BlockKind::embedding)) == 0);
}

TEST_CASE("rings pass on (n-1)/n of all bytes, a node's share of that over each NIC and the rest over NVLink") {
  const Operator op = reduce_scatter(1e9, {128, 8, {128, 1}});
  CHECK(op.traffic.nvlink_bytes == doctest::Approx(1e9 * 127 / 128 * 7 / 8));
  CHECK(op.traffic.wire_bytes == doctest::Approx(1e9 * 127 / 128 / 8));
  const Operator apart = all_gather(1e9, {2, 1, {128, 8}});
  CHECK(apart.traffic.nvlink_bytes == 0);
  CHECK(apart.traffic.wire_bytes == doctest::Approx(0.5e9));
  const Operator node = reduce_scatter(1e9, {8, 8, {8, 0}});
  CHECK(node.traffic.wire_bytes == 0);
}

TEST_CASE("choices leave out the kernels that they do without, and nothing else") {
  LayerWork work = work_of(BlockKind::moe_layer);
  const auto count = [&](const char* phase, TrainingChoices choices) {
    work.choices = choices;
    return training_phase(phase, work).size();
  };
  CHECK(count("attn(F)", {}) - count("attn(F)", {.narrow_activations = false}) == 1);  // O in 12 bits
  CHECK(count("mlp(F)", {}) - count("mlp(F)", {.narrow_activations = false}) == 2);    // gate_up outputs
  CHECK(count("mlp(B)", {}) - count("mlp(B)", {.narrow_activations = false}) == 2);
  CHECK(count("mlp(B)", {}) - count("mlp(B)", {.recompute = Recompute::none}) == 2);  // RMSNorm, shared SwiGLU
  CHECK(count("mlp(W)", {}) == count("mlp(W)", {.recompute = Recompute::full}));
  CHECK(count("dispatch(F)", {}) == count("dispatch(F)", {.recompute = Recompute::full}));
}

TEST_CASE("every kind of block has forward phases, and a (B) for each (W) but the embedding's") {
  for (const BlockKind kind :
       {BlockKind::embedding, BlockKind::dense_layer, BlockKind::moe_layer, BlockKind::head, BlockKind::mtp}) {
    CAPTURE(name_of(kind));
    LayerWork work = work_of(kind);
    CHECK_FALSE(forward_phases(kind).empty());
    for (const auto* phases : {&forward_phases(kind), &backward_phases(kind), &weight_phases(kind)}) {
      for (const std::string& phase : *phases) CHECK_FALSE(training_phase(phase, work).empty());
    }
    CHECK((backward_phases(kind).empty()) == (kind == BlockKind::embedding));
  }
}

}  // TEST_SUITE("moe/training_memory")
