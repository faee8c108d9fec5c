// Ranks that share the tokens of a prompt: each attends with its queries to all keys.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "experiments/run/run_metrics.hpp"
#include "moe/module_names.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/context_parallel") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

Setup setup_of(const std::string& parallelism, Set more = {}) {
  more.insert(more.begin(), {"schedule=sequential", "routing.distribution=exact", "parallelism=" + parallelism,
                             "workload={phase: prefill, tokens: 16384, prompt_len: 20480, cached_len: 4096}"});
  return load_setup(prefill_scenario(), more);
}

struct Sums {
  double flops = 0, payload = 0;
  int count = 0;
};

std::map<std::string, Sums> sums_by_module(const Setup& setup) {
  const InferenceWork work = setup.inference_work({0, 1});
  std::map<std::string, Sums> sums;
  const int last = work.model.num_hidden_layers - 1;
  std::vector<Operator> ops;  // of two layers: where windows alternate, one has them
  for (const int layer : {last - 1, last}) {
    for (Operator& op : inference_phase("attn", work, layer_of(work.model, layer))) ops.push_back(std::move(op));
  }
  for (const Operator& op : ops) {
    Sums& sum = sums[op.module];
    sum.flops += op.flops;
    sum.payload += op.traffic.payload_bytes;
    ++sum.count;
  }
  return sums;
}

const Set kRing = {"comm.context=ring"};

std::string refused(const std::string& parallelism, const Set& more) {
  return refusal_of([&] { (void)setup_of(parallelism, more); });
}

}  // namespace

TEST_CASE("ranks that share prompts do the attention of one together") {
  using namespace module_names;
  for (const char* model : {"deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b"}) {
    const Set of_model = {std::string("model=") + model};
    const auto whole = sums_by_module(setup_of("{ep: 32}", of_model));
    for (const char* context : {"all_gather", "ring"}) {
      CAPTURE(model);
      CAPTURE(context);
      const auto part =
          sums_by_module(setup_of("{cp: 4, ep: 32}", {of_model[0], std::string("comm.context=") + context}));
      for (const char* module : {kCore, kOutput, kRouterGate}) {
        CHECK(4 * part.at(module).flops == doctest::Approx(whole.at(module).flops));
      }
    }
  }
}

TEST_CASE("keys are gathered once as latents, or go round expanded") {
  using namespace module_names;
  const Architecture model = load_architecture("deepseek-v3");
  const double latent = model.kv_lora_rank + model.qk_rope_head_dim, tokens = 16384, keys = 20480;
  const double expanded =
      model.num_attention_heads * (model.qk_nope_head_dim + model.qk_rope_head_dim + 1.0 * model.v_head_dim);
  const auto whole = sums_by_module(setup_of("{ep: 32}"));
  const auto gathered = sums_by_module(setup_of("{cp: 4, ep: 32}"));
  CHECK(gathered.at(kKeyTransfer).payload ==
        doctest::Approx(2 * tokens * latent * 2 * 3 / 4));                    // two layers, all but the own quarter
  CHECK(gathered.at(kUpKv).flops == doctest::Approx(whole.at(kUpKv).flops));  // expanded on every rank
  const auto ring = sums_by_module(setup_of("{cp: 4, ep: 32}", kRing));
  CHECK(ring.at(kKeyTransfer).count == 2 * 3);
  CHECK(ring.at(kKeyTransfer).payload == doctest::Approx(2 * 3 * keys / 4 * expanded * 2));
  CHECK(4 * ring.at(kUpKv).flops == doctest::Approx(whole.at(kUpKv).flops));
}

TEST_CASE("in a ring a block of keys travels while attention works on the one before") {
  const Set eight = {"layers=8", "comm.context=ring"};
  const Run run = run_scenario(setup_of("{cp: 4, ep: 32}", eight));
  const TaskGraph& graph = run.program.graph;
  std::map<std::uint32_t, std::vector<Span>> sends, cores;  // by phase of the graph
  for (TaskId id = 0; id < graph.size(); ++id) {
    const std::string name(graph.task_name(id));
    if (name == "ncclDevKernel_SendRecv") sends[graph.label(id).phase].push_back(run.timeline.spans[id]);
    if (name == "FlashAttention forward") cores[graph.label(id).phase].push_back(run.timeline.spans[id]);
  }
  REQUIRE(sends.size() == 8);
  for (const auto& [phase, blocks] : cores) {
    const std::vector<Span>& messages = sends.at(phase);
    REQUIRE(blocks.size() == 4);
    REQUIRE(messages.size() == 3);
    CHECK(messages.front().start < blocks.front().end);  // beside the first block
    for (std::size_t i = 1; i < blocks.size(); ++i) CHECK(blocks[i].start >= messages[i - 1].end);
  }
}

TEST_CASE("a ring keeps each rank's own keys, a gather all of them on each") {
  const double whole = run_scenario(setup_of("{ep: 32}")).inference()->memory.kv_cache;
  CHECK(run_scenario(setup_of("{cp: 4, ep: 32}")).inference()->memory.kv_cache == doctest::Approx(whole));
  CHECK(4 * run_scenario(setup_of("{cp: 4, ep: 32}", kRing)).inference()->memory.kv_cache == doctest::Approx(whole));
}

TEST_CASE("a prompt's first token comes earlier by nearly as many ranks as share it, at a price per GPU") {
  const Run one = run_scenario(setup_of("{ep: 32}"));
  const Run four = run_scenario(setup_of("{cp: 4, ep: 32}"));
  CHECK(four.setup.scenario.parallelism.world() == 32);
  CHECK(four.inference()->ttft_ms < one.inference()->ttft_ms / 3);
  CHECK(four.inference()->ttft_ms > one.inference()->ttft_ms / 4);
  CHECK(tokens_per_s(four) == doctest::Approx(16384 / (four.inference()->ttft_ms / 1e3) / 4));
  CHECK(tokens_per_s(four) < tokens_per_s(one));
}

TEST_CASE("every rank of a context group simulated gives what one of them does") {
  const Set calm = {"layers=4", "jitter=none", "speed_spread=0"};
  for (const char* parallelism : {"{cp: 4, ep: 8}", "{tp: 2, cp: 2, ep: 8}"}) {
    CAPTURE(parallelism);
    Set all = calm;
    all.emplace_back("ranks=all");
    const double folded = layer_us(run_scenario(setup_of(parallelism, calm)));
    CHECK(layer_us(run_scenario(setup_of(parallelism, all))) == doctest::Approx(folded).epsilon(1e-4));
  }
}

TEST_CASE("context parallelism is refused where it is not modelled, by its key") {
  const Set decode = {"workload={phase: decode, batch_size: 8, kv_len: 4096}"};
  CHECK(says(refused("{cp: 2, ep: 32}", decode), "cp above 1 is modelled in prefill alone"));
  CHECK(says(refused("{ep: 32}", kRing), "comm.context belongs to context parallelism"));
  CHECK(says(refused("{cp: 3, ep: 32, moe_tp: 1}", {}), "x ep must be a multiple of tp x cp"));
  CHECK(says(refused("{cp: 4, ep: 32, dp: 3}", {}), "must divide tp x cp x dp"));
}

TEST_CASE("ranks of a dense model share nothing but a prompt's keys") {
  const Setup dense = load_setup(served_scenario(), {"model=qwen-2.5-72b", "parallelism={cp: 8}", "layers=4",
                                                     "workload={phase: prefill, tokens: 8192, prompt_len: 8192}"});
  CHECK(dense.scenario.comm.mode == CommMode::none);
  std::set<std::string> classes;
  for (const ClassTimes& times : run_scenario(dense).metrics.classes) classes.insert(times.name);
  CHECK(classes.contains("collective"));
  CHECK(!classes.contains("dispatch"));
}

TEST_CASE("a ring goes round beside the all-to-all of another micro-batch") {
  const Run run =
      run_scenario(load_setup(prefill_scenario(), {"parallelism={cp: 4, ep: 32}", "comm.context=ring", "layers=4",
                                                   "workload={phase: prefill, tokens: 65536, prompt_len: 4096}"}));
  CHECK(run.setup.scenario.schedule == "prefill-two-batch");
  CHECK(run.metrics.overlap_fraction() > 0.5);
}

}  // TEST_SUITE("schedules/context_parallel")
