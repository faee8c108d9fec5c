// Decode by Perplexity's all-to-all: messages as of DeepEP's low-latency mode, over InfiniBand and EFA.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/inference_scenarios.hpp"

TEST_SUITE("schedules/pplx") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Run decode(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"parallelism={ep: 16}", "comm={mode: pplx}", "launch=graph"};
  all.insert(all.end(), more.begin(), more.end());
  return run_text(kDecode, all);
}

double sent_MB(const Run& run, const std::string& link) {
  return carried(run, tasks_of(run, "a2a_dispatch_send_kernel"), link) / 1e3;
}

}  // namespace

TEST_CASE(
    "a token goes once to each of its experts: half of 16 ranks' messages leave the node, seven sixteenths take "
    "NVLink") {
  const Run run = decode({"schedule=sequential", "workload={phase: decode, batch_size: 128, kv_len: 4096}"});
  const Architecture& model = run.setup.model;
  const double messages = 4 * 128.0 * model.num_experts_per_tok;  // four layers of 128 requests
  const double MB = messages * model.hidden_size * (1 + 4.0 / 128) / 1e6;
  CHECK(sent_MB(run, "NIC out") == doctest::Approx(MB / 2).epsilon(0.01));
  CHECK(sent_MB(run, "NVLink out") == doctest::Approx(MB * 7 / 16).epsilon(0.01));
}

TEST_CASE("while messages travel no SM is held, so that another micro-batch computes") {
  const Run two = decode({"schedule=decode-two-batch"});
  int travelling = 0;
  for (const TaskId id : tasks_of(two, "a2a_dispatch_send_kernel")) {
    travelling += two.program.graph.task(id).sms == 0 ? 1 : 0;
  }
  CHECK(travelling > 0);
  CHECK(layer_us(two) < layer_us(decode({"schedule=sequential"})));
}

TEST_CASE("over EFA a step is longer, by more than what its NICs carry less") {
  const Run infiniband = decode({"schedule=sequential"}), efa = decode({"schedule=sequential", "hardware.nic=efa"});
  const double proxies_us = (117.5 - 31.94) + (69.27 - 26.06);  // later starts, out and back
  CHECK(layer_us(efa) - layer_us(infiniband) > proxies_us);
}

TEST_CASE("it does not train, and prefill in two micro-batches needs a transfer on SMs of its own") {
  const std::string train =
      "{schema: 1, model: deepseek-v3, hardware: h800, schedule: dualpipe-chunk, parallelism: {ep: 64}, layers: 2,"
      " workload: {phase: train, seq_len: 4096}, comm: {mode: pplx}}";
  check_refused_with("comm.mode", [&] { (void)read_setup(Spec::parse("scenario.yaml", train), {}); });
  check_refused_with("comm.mode",
                     [&] { (void)read_setup(Spec::parse("scenario.yaml", kPrefill), {"comm={mode: pplx}"}); });
}

}  // TEST_SUITE("schedules/pplx")
