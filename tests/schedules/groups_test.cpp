// Ranks in groups: attention, experts, and who waits for whom.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/groups") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

Set on_b200(const std::string& parallelism, const Set& more) {
  Set set = {"kernels=sglang", "workload.batch_size=32", "parallelism=" + parallelism};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

Setup setup_of(const std::string& parallelism, const Set& more = {}) {
  return load_setup(served_scenario(), on_b200(parallelism, more));
}

Run run_on_b200(const std::string& parallelism, const Set& more = {}) {
  return run_scenario(setup_of(parallelism, more));
}

CommMode mode_of(const std::string& parallelism, const Set& more = {}) {
  return setup_of(parallelism, more).scenario.comm.mode;
}

std::string refused(const std::string& parallelism, const Set& more = {}) {
  return refusal_of([&] { (void)setup_of(parallelism, more); });
}

std::set<std::string> phases_of(const Run& run) {
  std::set<std::string> names;
  for (const PhaseTimes& phase : run.phases) names.insert(phase.phase);
  return names;
}

const Set kEightLayers = {"layers=8"};

}  // namespace

TEST_CASE("how tokens reach experts follows from who has them") {
  CHECK(mode_of("{ep: 1}", {"model=mixtral-8x7b"}) == CommMode::none);
  CHECK(mode_of("{tp: 8, ep: 8}") == CommMode::all_reduce);
  CHECK(mode_of("{tp: 8}") == CommMode::all_reduce);
  CHECK(mode_of("{ep: 4, moe_tp: 2}") == CommMode::all_gather);
  CHECK(mode_of("{ep: 8}") == CommMode::low_latency);
  CHECK(mode_of("{ep: 8}", {"workload={phase: prefill, tokens: 4096, prompt_len: 2048}"}) == CommMode::normal);
  const std::string domain = "hardware=gb200-nvl72", four_bits = "precision.experts=nvfp4";
  CHECK(mode_of("{ep: 16}", {domain, "kernels=trtllm"}) == CommMode::nvlink);
  CHECK(mode_of("{ep: 16}", {domain, "kernels=sglang", four_bits}) == CommMode::nvlink);
  CHECK(mode_of("{ep: 16}", {domain, "kernels=sglang"}) == CommMode::low_latency);
  CHECK(mode_of("{ep: 144}", {domain, "kernels=sglang", four_bits, "routing.redundant_experts=32"}) ==
        CommMode::low_latency);
  CHECK(mode_of("{ep: 8}", {"kernels=trtllm"}) == CommMode::all_gather);
  CHECK(mode_of("{tp: 8}", {"model=llama-3.1-405b"}) == CommMode::all_reduce);
  CHECK(mode_of("{}", {"model=qwen-2.5-72b"}) == CommMode::none);
}

TEST_CASE("tokens travel as the stack that sends them quantises them") {
  const auto dispatch_of = [](const Set& more) { return setup_of("{ep: 8}", more).scenario.comm.dispatch; };
  CHECK(dispatch_of({}) == Precision::fp8);
  CHECK(dispatch_of({"kernels=trtllm"}) == Precision::bf16);
  CHECK(dispatch_of({"kernels=trtllm", "precision.experts=nvfp4"}) == Precision::nvfp4);
  CHECK(dispatch_of({"kernels=trtllm", "comm.dispatch_dtype=fp8"}) == Precision::fp8);
  CHECK(says(refused("{ep: 8}", {"comm.dispatch_dtype=nvfp4"}), "dispatch_dtype"));
}

TEST_CASE("what the split leaves open is the least that goes together") {
  const auto split = [](const std::string& parallelism, const Set& more = {}) {
    return setup_of(parallelism, more).scenario.parallelism;
  };
  CHECK(split("{tp: 8}").moe_tp == 8);
  CHECK(split("{tp: 8, ep: 2}").moe_tp == 4);
  CHECK(split("{tp: 2, ep: 8}").dp == 4);
  CHECK(split("{tp: 2, ep: 8}").attention_groups() == 4);
  CHECK(split("{ep: 8, dp: 32}").world() == 32);
  CHECK(split("{tp: 4}", {"model=llama-3.1-405b"}).world() == 4);
}

TEST_CASE("which experts' kernels run follows from the stack and from who shares attention") {
  const auto backend_of = [](const std::string& parallelism, const Set& more) {
    return setup_of(parallelism, more).scenario.moe_backend;
  };
  CHECK(backend_of("{tp: 8}", {"kernels=trtllm"}) == MoeBackend::trtllm_gen);
  CHECK(backend_of("{ep: 8}", {"kernels=trtllm"}) == MoeBackend::deepgemm);
  CHECK(backend_of("{ep: 8}", {"kernels=trtllm", "moe_backend=trtllm_gen"}) == MoeBackend::trtllm_gen);
  CHECK(backend_of("{tp: 8}", {"kernels=sglang"}) == MoeBackend::trtllm_gen);  // its usual ones
  CHECK(backend_of("{tp: 8}", {"kernels=trtllm", "hardware=h200"}) == MoeBackend::cutlass);
  CHECK(says(refused("{tp: 8}", {"hardware=h200", "moe_backend=trtllm_gen"}), "no kernels of h200"));
  CHECK(says(refused("{ep: 8}", {"kernels=sglang", "moe_backend=usual"}), "does not apply"));
  CHECK(says(refused("{tp: 8}", {"moe_backend=trtlm_gen"}), "did you mean 'trtllm_gen'"));
}

TEST_CASE(
    "shared experts run beside routed ones in the stacks' decode of few tokens, where those are one fused layer") {
  const auto order_of = [](const std::string& parallelism, const Set& more) {
    return setup_of(parallelism, more).scenario.shared_experts;
  };
  const char* const kPrefill = "workload={phase: prefill, tokens: 512, prompt_len: 512}";
  CHECK(order_of("{tp: 8}", {}) == SharedExperts::beside);
  CHECK(order_of("{ep: 8}", {"comm.mode=all_gather"}) == SharedExperts::beside);
  CHECK(order_of("{ep: 8}", {"comm.mode=low_latency"}) == SharedExperts::in_turn);
  CHECK(order_of("{tp: 8}", {"workload.batch_size=2048"}) == SharedExperts::in_turn);
  CHECK(order_of("{tp: 8}", {"launch=stream"}) == SharedExperts::in_turn);
  CHECK(order_of("{tp: 8}", {kPrefill}) == SharedExperts::in_turn);
  CHECK(order_of("{tp: 8}", {kPrefill, "shared_experts=beside"}) == SharedExperts::beside);
  CHECK(order_of("{tp: 8}", {"model=qwen3-235b-a22b"}) == SharedExperts::in_turn);  // which has none
  CHECK(says(refused("{ep: 8}", {"comm.mode=low_latency", "shared_experts=beside"}), "one fused layer"));
  CHECK(says(refused("{tp: 8}", {"model=qwen3-235b-a22b", "shared_experts=beside"}), "there are none"));
}

TEST_CASE("shared experts beside routed ones cost less than in turn, and not nothing") {
  const Set exact = {"routing.distribution=exact", "layers=8"};
  const auto layer = [&](const char* order) {
    Set more = exact;
    more.emplace_back(order);
    return run_on_b200("{tp: 8}", more);
  };
  const Run beside = layer("shared_experts=beside"), in_turn = layer("shared_experts=in_turn");
  const auto span = [](const Run& run, const std::string& name) { return to_us(phase(run, name, 0, 4).span()); };
  const double gain = layer_us(in_turn) - layer_us(beside);
  CHECK(gain > 0.3 * span(in_turn, "shared"));
  CHECK(gain < span(in_turn, "shared"));
  CHECK(phase(beside, "shared", 0, 4).start < phase(beside, "mlp", 0, 4).end);
  CHECK(phase(beside, "combine", 0, 4).start >= phase(beside, "shared", 0, 4).end);
}

TEST_CASE("a kernel that another stack has as well is priced by its table") {
  const Run run = run_on_b200("{tp: 8}", {"kernels=trtllm", "layers=2"});
  bool borrowed = false;
  for (const ProvenanceUse& use : run.program.provenance) borrowed = borrowed || use.kernel_set == "sglang-0.5.14";
  CHECK(borrowed);
}

TEST_CASE("phases are those that the mode has") {
  CHECK(phases_of(run_on_b200("{tp: 8, ep: 8}", kEightLayers)) ==
        std::set<std::string>{"attn-0", "attn-1", "shared", "mlp", "combine"});
  CHECK(phases_of(run_on_b200("{ep: 8}", {"layers=8", "comm.mode=all_gather"})) ==
        std::set<std::string>{"attn-0", "attn-1", "dispatch", "shared", "mlp", "combine"});
  CHECK(phases_of(run_on_b200("{tp: 4}", {"model=llama-3.1-405b", "layers=8"})) ==
        std::set<std::string>{"attn-0", "attn-1", "mlp"});
}

TEST_CASE("folded ranks wait as long as simulated ones do") {
  for (const char* parallelism : {"{tp: 8, ep: 8}", "{tp: 4, ep: 8}", "{tp: 2, ep: 4, moe_tp: 2}"}) {
    CAPTURE(parallelism);
    const Set set = {"layers=16", "speed_spread=0.02"};
    Set all = set;
    all.emplace_back("ranks=all");
    const double folded = layer_us(run_on_b200(parallelism, set));
    CHECK(layer_us(run_on_b200(parallelism, all)) == doctest::Approx(folded).epsilon(0.03));
  }
}

TEST_CASE("without anything that differs nobody waits, however ranks are simulated") {
  const Set exact = {"layers=8", "speed_spread=0", "jitter=none", "routing.distribution=exact"};
  Set all = exact;
  all.emplace_back("ranks=all");
  for (const char* parallelism : {"{tp: 8, ep: 8}", "{tp: 2, ep: 8}", "{ep: 4, moe_tp: 2}"}) {
    CAPTURE(parallelism);
    const Run folded = run_on_b200(parallelism, exact);
    CHECK(folded.program.waits_us == doctest::Approx(0));
    CHECK(layer_us(run_on_b200(parallelism, all)) == doctest::Approx(layer_us(folded)).epsilon(1e-6));
  }
}

TEST_CASE("ranks of an attention group share the requests that each GPU's rate counts") {
  const Run alone = run_on_b200("{ep: 8}");
  const Run shared = run_on_b200("{tp: 8, ep: 8}");
  CHECK(tokens_per_s(alone) == doctest::Approx(32 / (to_us(alone.metrics.span) / 1e6)));
  CHECK(tokens_per_s(shared) == doctest::Approx(4 / (to_us(shared.metrics.span) / 1e6)));
}

TEST_CASE("ordinary splits inside a node or NVLink domain rest on measured kernels") {
  for (const char* parallelism : {"{tp: 8, ep: 8}", "{tp: 8}", "{tp: 2, ep: 8}"}) {
    CAPTURE(parallelism);
    CHECK(all_measured(run_on_b200(parallelism)));
  }
  CHECK(all_measured(run_on_b200("{ep: 8}", {"comm.mode=all_gather"})));
  CHECK(all_measured(run_on_b200("{ep: 16}", {"hardware=gb200-nvl72", "kernels=trtllm"})));
  CHECK(all_measured(run_on_b200("{tp: 8}", {"model=llama-3.1-405b"})));
}

TEST_CASE("four nodes of H100 decode by whole measured transfers, and split them where work runs beside the wire") {
  const Set h100 = {"hardware=h100", "workload.batch_size=128"};
  CHECK(all_measured(run_on_b200("{ep: 32}", h100)));
  CHECK(!all_measured(run_on_b200("{ep: 32}", {h100[0], h100[1], "schedule=decode-two-batch"})));
}

TEST_CASE("splits that cannot be name the nearest ones that can") {
  CHECK(says(refused("{tp: 3, ep: 3}"),
             "parallelism.tp must divide the 128 attention heads: 3 does not; possible near "
             "it: 2, 4"));
  CHECK(says(refused("{tp: 8, ep: 2, moe_tp: 2}"), "parallelism.moe_tp x ep must be a multiple of tp"));
  CHECK(says(refused("{tp: 8}", {"model=qwen3-235b-a22b", "precision={experts: fp8}"}),
             "parallelism.moe_tp must divide the 1536 of an expert's FFN, in blocks of 128 for fp8: 8 does not"));
  CHECK(refused("{tp: 4}", {"model=qwen3-235b-a22b", "precision={experts: fp8}"}) == "");
  CHECK(says(refused("{ep: 8}", {"model=llama-3.1-405b"}), "parallelism.ep does not apply: 'llama-3.1-405b' has no"));
  CHECK(says(refused("{ep: 8}", {"comm.mode=none"}), "comm.mode none, needs one rank, and 8 share the layers"));
  CHECK(says(refused("{ep: 8}", {"comm.mode=all_reduce"}), "needs tp = ep x moe_tp"));
  CHECK(says(refused("{tp: 8, ep: 8}", {"comm.mode=all_gather"}), "there is: all_reduce"));
  CHECK(says(refused("{ep: 16}", {"comm.mode=nvlink"}), "more than its 8 GPUs"));
  CHECK(says(refused("{ep: 4, moe_tp: 2}", {"comm.mode=low_latency"}), "sends each token to whole experts"));
  CHECK(says(refused("{tp: 8, ep: 8}", {"comm.dispatch_dtype=fp8"}), "comm.dispatch_dtype does not apply"));
  CHECK(says(refused("{tp: 8, ep: 8, cp: 2}"), "parallelism.cp above 1 is modelled in prefill alone"));
  CHECK(says(refused("{tp: 8, ep: 8, dp: 3, moe_tp: 2}"), "parallelism.ep x moe_tp must divide tp x dp"));
}

}  // TEST_SUITE("schedules/groups")
