// What Megatron's ranks share besides tensor parallel layers: sequences (context parallelism) and experts (expert
// tensor parallelism). Work and messages against closed forms.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "architecture/blocks.hpp"
#include "architecture/checkpoint_format.hpp"
#include "moe/megatron.hpp"

TEST_SUITE("moe/megatron_sharing") {

using namespace moeline;

namespace {

struct Sharing {
  int cp = 1, moe_tp = 1, tp = 1;
  ContextMode context = ContextMode::ring;
  RecomputedModules modules{};
};

// The second MoE layer of a model in BF16, over eight ranks of experts.
LayerWork work_of(const char* model, const Sharing& sharing) {
  LayerWork work;
  work.model = load_architecture(model);
  store_linear_as(Precision::bf16, work.model);
  store_experts_as(Precision::bf16, work.model);
  work.kind = BlockKind::moe_layer;
  work.content = layer_of(work.model, 1).content;
  work.choices.operators = TrainingOperators::megatron;
  work.choices.recompute = Recompute::selective;
  work.choices.modules = sharing.modules;
  work.ep = 8;
  work.tp = sharing.tp;
  work.cp = sharing.cp;
  work.moe_tp = sharing.moe_tp;
  work.context = sharing.context;
  work.mode = CommMode::all_to_all;
  work.spread = expected_spread(work.model, work.ep, work.gpus_per_node);
  work.load = exact_load(work.model, work.own_tokens(), work.ep, work.spread);
  if (work.moe_tp > 1) work.load = scaled(work.load, work.moe_tp, work.local_experts());
  return work;
}

std::vector<Operator> every_phase(const LayerWork& work) {
  std::vector<Operator> ops;
  for (const auto& names : {forward_phases(work.kind), backward_phases(work.kind), weight_phases(work.kind)}) {
    for (const std::string& name : names) {
      for (Operator& op : training_phase(name, work)) ops.push_back(std::move(op));
    }
  }
  return ops;
}

double flops(const std::vector<Operator>& ops) {
  double sum = 0;
  for (const Operator& op : ops) sum += op.flops;
  return sum;
}

// Of sends what they carry, of collectives what a rank holds of the longer side.
double message_bytes(const std::vector<Operator>& ops, Family family) {
  double sum = 0;
  for (const Operator& op : ops) {
    if (op.family == family) sum += family == Family::send ? op.traffic.payload_bytes : op.traffic.message_bytes;
  }
  return sum;
}

// Bytes of keys and values of a sequence of 4096 tokens.
double pair_bytes(const Architecture& model) {
  const LayerAttention& a = model.layers.back().attention;
  const double heads = a.kind == AttentionKind::mla ? a.heads : a.kv_heads;
  return 2 * 4096 * heads * (a.qk_dim + a.v_dim);
}

const std::vector<const char*> kModels = {"qwen3-235b-a22b", "deepseek-v2", "mixtral-8x7b"};

}  // namespace

TEST_CASE("ranks that share sequences have together the work that one has alone") {
  for (const char* model : kModels) {
    const double alone = flops(every_phase(work_of(model, {})));
    for (const ContextMode context : {ContextMode::ring, ContextMode::all_gather}) {
      for (const int cp : {2, 4, 16}) {
        CAPTURE(model);
        CAPTURE(cp);
        // S once more in the backward pass is no work of the model, and is the same.
        CHECK(cp * flops(every_phase(work_of(model, {.cp = cp, .context = context}))) ==
              doctest::Approx(alone).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("in a ring keys and values pass every other rank once forward, and again with their gradients backward") {
  for (const char* model : kModels) {
    for (const int cp : {2, 4, 8}) {
      CAPTURE(model);
      CAPTURE(cp);
      const LayerWork work = work_of(model, {.cp = cp});
      const double once = pair_bytes(work.model) * (cp - 1) / cp;
      CHECK(message_bytes(training_phase("attn(F)", work), Family::send) == doctest::Approx(once));
      CHECK(message_bytes(training_phase("attn(B)", work), Family::send) == doctest::Approx(2 * once));
    }
  }
}

TEST_CASE("gathered keys and values are gathered in both directions, and their gradients scattered") {
  for (const char* model : kModels) {
    CAPTURE(model);
    const LayerWork work = work_of(model, {.cp = 4, .context = ContextMode::all_gather});
    const std::vector<Operator> forward = training_phase("attn(F)", work), backward = training_phase("attn(B)", work);
    CHECK(message_bytes(forward, Family::all_gather) == doctest::Approx(pair_bytes(work.model)));
    CHECK(message_bytes(backward, Family::all_gather) == doctest::Approx(pair_bytes(work.model)));
    CHECK(message_bytes(backward, Family::reduce_scatter) == doctest::Approx(pair_bytes(work.model)));
  }
}

TEST_CASE("a rank has two blocks of keys in a ring, and all of them where they are gathered") {
  for (const char* model : kModels) {
    const double all = pair_bytes(load_architecture(model));
    const LayerWork ring = work_of(model, {.cp = 8}),
                    gathered = work_of(model, {.cp = 8, .context = ContextMode::all_gather});
    CHECK(megatron::exchanged_bytes(ring, false) == doctest::Approx(all / 4));
    CHECK(megatron::exchanged_bytes(gathered, false) == doctest::Approx(all));
    CHECK(megatron::exchanged_bytes(gathered, true) == doctest::Approx(2 * all));
    CHECK(megatron::exchanged_bytes(work_of(model, {}), true) == 0);
  }
}

TEST_CASE("every message of a ring is waited for, where tensor parallelism sends beside it, too") {
  for (const bool again : {false, true}) {
    for (const char* phase : {"attn(F)", "attn(B)"}) {
      CAPTURE(again);
      CAPTURE(phase);
      const LayerWork work = work_of("qwen3-235b-a22b", {.cp = 4, .tp = 2, .modules = {.core_attn = again}});
      std::set<int> awaited;
      int beside = 0, sends = 0;
      for (const Operator& op : training_phase(phase, work)) {
        if (op.beside) ++beside;
        if (op.family == Family::send) ++sends;
        if (op.awaits == 0) continue;
        CHECK(op.awaits <= beside);  // it has been launched
        awaited.insert(op.awaits);
      }
      CHECK(awaited.size() == static_cast<std::size_t>(sends));
      CHECK(sends == (phase == std::string("attn(F)") ? 3 : again ? 7 : 4));
    }
  }
}

TEST_CASE("ranks that share experts do as much as if each had whole ones, and exchange all their rows") {
  const LayerWork whole = work_of("mixtral-8x7b", {}), shared = work_of("mixtral-8x7b", {.moe_tp = 4});
  CHECK(flops(every_phase(shared)) == doctest::Approx(flops(every_phase(whole))).epsilon(1e-9));
  const double rows = 4 * whole.own_tokens() * whole.model.num_experts_per_tok;
  for (const char* phase : {"mlp(F)", "mlp(B)"}) {
    const std::vector<Operator> ops = training_phase(phase, shared);
    CHECK(message_bytes(ops, Family::all_gather) == doctest::Approx(rows * whole.model.hidden_size * 2));
    CHECK(message_bytes(ops, Family::reduce_scatter) == doctest::Approx(rows * whole.model.hidden_size * 2));
    CHECK(message_bytes(training_phase(phase, whole), Family::all_gather) == 0);
  }
}

}  // TEST_SUITE("moe/megatron_sharing")
