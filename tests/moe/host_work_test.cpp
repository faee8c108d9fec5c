// What the host of an eager training step does: modules cost it time, not kernels.
#include "moe/host_work.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "moe/module_names.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("moe/host_work") {

using namespace moeline;
using namespace moeline::testing;
using namespace module_names;

namespace {

Operator kernel(const char* module, Family family, const std::string& name) {
  Operator op;
  op.module = module;
  op.family = family;
  op.name = name;
  return op;
}
Operator product(const char* module) { return kernel(module, Family::gemm_bf16, "fprop"); }

double us(const std::string& phase, const std::vector<Operator>& ops) {
  const std::vector<double> each = host_us(phase, ops, std::vector<bool>(ops.size()), 0);
  return std::accumulate(each.begin(), each.end(), 0.0);
}

std::vector<Operator> products(const char* module, std::size_t count) {
  return std::vector<Operator>(count, product(module));
}

}  // namespace

TEST_CASE("a linear layer takes what Transformer Engine's does, 36.6 us, and 1.75 times that backward with its hook") {
  const std::vector<Operator> one = products(kOutput, 1);
  CHECK(us("attn(F)", one) == doctest::Approx(36.6));
  CHECK(us("attn(B)", one) + us("attn(W)", one) == doctest::Approx(1.75 * 36.6 + 17));
}

TEST_CASE("64 experts take as long as Transformer Engine's issue 2897 says, 1.2 ms on a host 2.75 times slower") {
  std::vector<Operator> ops = products(kExpertGateUp, 64);
  for (const Operator& op : products(kExpertDown, 64)) ops.push_back(op);
  CHECK(us("mlp(F)", ops) * 2.75 / 1e3 == doctest::Approx(1.2).epsilon(0.1));
}

TEST_CASE("a module takes its time once, however many kernels it launches") {
  const Operator router = kernel(kRouterChoice, Family::streaming, "scores");
  CHECK(us("attn(F)", {router, router, router}) == us("attn(F)", {router}));
  const Operator core = kernel(kCore, Family::attention_forward, "core");
  CHECK(us("attn(F)", {router, core, router}) == 2 * us("attn(F)", {router}) + us("attn(F)", {core}));
}

TEST_CASE("kernels of a graph are one launch") {
  const std::vector<Operator> ops = products(kOutput, 5);
  const std::vector<double> each = host_us("attn(F)", ops, {true, true, true, false, true}, 0);
  CHECK(each[0] > 0);
  CHECK(each[1] + each[2] == 0);
  CHECK(each[3] > 0);
  CHECK(each[4] > 0);
}

TEST_CASE("what is repeated in the backward pass takes what it took forward, and a checkpoint's own") {
  Operator again = kernel(kCore, Family::attention_forward, "core");
  again.purpose = Purpose::recompute;
  const Operator core = kernel(kCore, Family::attention_forward, "core");
  CHECK(us("attn(B)", {again, core}) > us("attn(F)", {core}) + us("attn(B)", {core}));
}

TEST_CASE("a host of half the speed makes a step that waits for it nearly twice as long, and a graph needs none") {
  const auto ms = [](const std::vector<std::string>& more) {
    const std::string text =
        "schema: 1\nmodel: moonlight-16b-a3b\nhardware: h100\nschedule: 1f1b\nparallelism: {tp: 2, pp: 1, ep: 8, dp: "
        "4}\n"
        "workload: {phase: train, micro_batch_size: 1, seq_len: 4096, global_batch_size: 4}\nlayers: 4\n"
        "routing: {distribution: exact}\ntraining: {operators: megatron, recompute: none}\nlaunch: stream\n";
    return step_ms(run_scenario(read_setup(Spec::parse("scenario.yaml", text), more)));
  };
  CHECK(ms({"hardware.host_speed=0.1"}) == doctest::Approx(2 * ms({"hardware.host_speed=0.2"})).epsilon(0.1));
  CHECK(ms({"launch=graph"}) == ms({"launch=graph", "hardware.host_speed=0.1"}));
  CHECK(ms({"hardware.host_speed=100"}) < 1.1 * ms({"launch=graph"}));
}

TEST_CASE("explain says that a host binds, and what would help") {
  const std::string moonlight = source("experiments/studies/train_megatron/moonlight_h100.yaml").string();
  const auto explained = [&](const std::string& launch) {
    return run_moeline({"explain", moonlight, "--set", "layers=2", "--set", "launch=" + launch}).out;
  };
  CHECK(explained("stream").find("the host binds: a processor twice as fast would save") != std::string::npos);
  CHECK(explained("graph").find("the host binds") == std::string::npos);
}

}  // TEST_SUITE("moe/host_work")
