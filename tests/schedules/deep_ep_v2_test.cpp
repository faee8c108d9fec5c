// Prefill, decode, DualPipe's chunk and Megatron's step by DeepEP's second version, beside its first.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/inference_scenarios.hpp"
#include "tests/support/process.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/deep_ep_v2") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Assignments = std::vector<std::string>;

Assignments with(Assignments assignments, const Assignments& more) {
  assignments.insert(assignments.end(), more.begin(), more.end());
  return assignments;
}

// Four layers of DeepSeek-V3, sixteen GPUs of two nodes each.
Run prefill(const Assignments& more = {}) {
  return run_text(kPrefill, with({"parallelism={ep: 16}", "comm={mode: deepep_v2}", "workload.tokens=8192"}, more));
}
Run decode(const Assignments& more = {}) {
  return run_text(kDecode, with({"parallelism={ep: 16}", "comm={mode: deepep_v2}", "launch=graph"}, more));
}

std::filesystem::path chunk_scenario() {
  return source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml");
}

Run chunk(const Assignments& more = {}) { return run_scenario(load_setup(chunk_scenario(), more)); }

std::size_t count(const Run& run, const std::string& kernel) { return tasks_of(run, kernel).size(); }

void check_refused(const Assignments& more, const std::string& says) {
  check_refused_with(says, [&] { (void)read_setup(Spec::parse("scenario.yaml", kPrefill), more); });
}

}  // namespace

TEST_CASE(
    "dispatch, its copy, combine and its sums are kernels of their own: transfers on SMs of their own, epilogues on "
    "all") {
  const Run run = prefill({"schedule=sequential", "comm.num_sms=12"});
  const TaskGraph& graph = run.program.graph;
  for (const char* transfer : {"hybrid_dispatch", "hybrid_combine"}) {
    REQUIRE(count(run, transfer) == 4);
    const Task& task = graph.task(tasks_of(run, transfer).front());
    CHECK(task.sms == 12);
    CHECK(task.hold == Hold::resident);
    CHECK(carried(run, {tasks_of(run, transfer).front()}, "NIC out") > 0);
  }
  for (const char* epilogue : {"dispatch_copy_epilogue", "combine_reduce_epilogue"}) {
    REQUIRE(count(run, epilogue) == 4);
    CHECK(graph.task(tasks_of(run, epilogue).front()).sms == run.setup.machine.facts.sms);
  }
}

TEST_CASE("expanded rows need no permutation, contiguous ones are permuted before and summed up behind the GEMMs") {
  for (const char* kernel : {"expand tokens to rows", "weigh and reduce rows"}) {
    CHECK(count(prefill({"schedule=sequential", "comm.layout=contiguous"}), kernel) == 4);
    CHECK(count(prefill({"schedule=sequential", "comm.layout=expanded"}), kernel) == 0);
  }
}

TEST_CASE("in decode rows are packed into the slabs that a masked GEMM takes") {
  CHECK(count(decode({"schedule=sequential"}), "slab") > 0);
  CHECK(count(decode({"schedule=sequential", "comm={mode: low_latency}"}), "slab") == 0);
}

TEST_CASE("a library that is told how many SMs takes them, and left to itself as many as its formula says") {
  CHECK(prefill({"comm.num_sms=auto"}).setup.scenario.comm.num_sms == 8);
  CHECK(prefill({"comm.num_sms=20"}).setup.scenario.comm.num_sms == 20);
  CHECK(prefill({"parallelism={ep: 64}"}).setup.scenario.comm.num_sms == 4);
}

TEST_CASE(
    "in decode the second version has no transfer without SMs: of two micro-batches each takes SMs from the other") {
  const Run run = decode({"schedule=decode-two-batch"});
  REQUIRE(count(run, "hybrid_dispatch") > 0);
  for (const TaskId id : tasks_of(run, "hybrid_dispatch")) CHECK(run.program.graph.task(id).sms > 0);
}

TEST_CASE("a host that waits for counts launches later, and its buffers need not hold the worst case") {
  const Run waits = prefill({"schedule=sequential", "comm.cpu_sync=true", "launch=stream"});
  const Run does_not = prefill({"schedule=sequential", "comm.cpu_sync=false", "launch=stream"});
  CHECK(waits.timeline.makespan > does_not.timeline.makespan);
  CHECK(waits.inference()->memory.activations < does_not.inference()->memory.activations);
}

TEST_CASE("what it belongs to is said: keys of the second version, hosts that wait, ends of the first") {
  check_refused({"comm.layout=expanded"}, "belongs to deepep_v2, and comm.mode is normal");
  check_refused({"comm={mode: deepep_v2, cpu_sync: true}", "launch=graph"}, "needs a host that waits for counts");
  check_refused({"hardware=a100", "kernels=sglang", "comm={mode: deepep_v2}"}, "needs Hopper or later");
  check_refused({"parallelism={ep: 256}"}, "ends at 160 ranks, and there are 256; there is: deepep_v2");
  check_refused({"parallelism={ep: 256}", "comm={mode: deepep_v2, layout: sorted}"}, "there is: contiguous, expanded");
}

TEST_CASE("256 ranks, and more nodes than the first version's tables have, run by the second") {
  CHECK(prefill({"parallelism={ep: 256}"}).metrics.span > Time{});
}

TEST_CASE("DualPipe's chunk: fewer SMs for transfers are more for the products beside them") {
  const Run first = chunk(), second = chunk({"comm={mode: deepep_v2}"});
  CHECK(second.setup.scenario.comm.num_sms < first.setup.scenario.comm.num_sms);
  const auto products_us = [](const Run& run) { return solo_us(run, tasks_of(run, "fprop")); };
  CHECK(products_us(second) < products_us(first));
}

TEST_CASE("every schedule of whole steps trains by it, DeepSeek's and Megatron's") {
  for (const char* schedule : {"1f1b", "zb1p", "dualpipe", "dualpipev"}) {
    const Run run = run_small(schedule, {"comm={mode: deepep_v2}"});
    CHECK(run.metrics.span > Time{});
    CHECK(count(run, "combine_reduce_epilogue") > 0);
  }
  const std::string megatron =
      "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: 1f1b, parallelism: {pp: 2, ep: 16, dp: 16}, layers: "
      "4,"
      " workload: {phase: train, seq_len: 4096, global_batch_size: 64}, training: {operators: megatron},"
      " comm: {mode: deepep_v2}}";
  CHECK(count(run_text(megatron), "dispatch_copy_epilogue") > 0);
  CHECK(count(run_text(megatron, {"overlap=combined"}), "dispatch_copy_epilogue") > 0);
}

TEST_CASE("between stages it sends without SMs, at the share of the NIC that its transfers reach") {
  const std::string megatron =
      "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: 1f1b, parallelism: {pp: 2, ep: 16, dp: 16}, layers: "
      "4,"
      " workload: {phase: train, seq_len: 4096, global_batch_size: 64}, training: {operators: megatron},"
      " comm: {mode: deepep_v2}}";
  const Run by_nccl = run_text(megatron), by_rdma = run_text(megatron, {"comm.stage_sends=rdma"});
  const auto sent = [](const Run& run, const char* kernel) {
    const std::vector<TaskId> sends = tasks_of(run, kernel);
    REQUIRE(!sends.empty());
    return run.program.graph.task(sends.front());
  };
  const Task first = sent(by_nccl, "ncclDevKernel_SendRecv"), second = sent(by_rdma, "pp_send");
  CHECK(first.sms > 0);
  CHECK(second.sms == 0);
  CHECK(second.hold == Hold::nothing);
  const double bytes = 4096.0 * 2048 * 2;  // a sequence's hidden states in BF16
  CHECK(to_us(second.solo) == doctest::Approx(bytes / (50e3 * 0.917)).epsilon(0.05));
  CHECK(count(by_rdma, "ncclDevKernel_SendRecv") == 0);
}

TEST_CASE("keys of a shared prompt are gathered by copy engines, over the same links without SMs") {
  const Assignments shared = {"parallelism={cp: 4, ep: 32}", "workload.tokens=16384", "schedule=sequential"};
  const Run gathered = prefill(with(shared, {"comm.context=all_gather"}));
  const Run by_engines = prefill(with(shared, {"comm.context=copy_engines"}));
  const std::vector<TaskId> copies = tasks_of(by_engines, "Memcpy PtoP"), kernels = tasks_of(gathered, "AllGather");
  REQUIRE(copies.size() == kernels.size());
  CHECK(by_engines.program.graph.task(copies.front()).sms == 0);
  CHECK(carried(by_engines, copies, "NVLink out") == doctest::Approx(carried(gathered, kernels, "NVLink out")));
}

TEST_CASE("what moves without SMs is refused where nothing is moved, or by another library") {
  check_refused({"comm.stage_sends=rdma"}, "belongs to deepep_v2, and comm.mode is normal");
  check_refused({"comm={mode: deepep_v2, stage_sends: rdma}"}, "belongs to stages, and parallelism.pp is 1");
  check_refused({"parallelism={cp: 4, ep: 32}", "comm.context=copy_engines"}, "belongs to deepep_v2");
  check_refused(
      {"parallelism={cp: 16, ep: 32}", "comm={mode: deepep_v2, context: copy_engines}", "workload.tokens=65536"},
      "stays in an NVLink domain: 16 ranks share a sequence");
}

}  // TEST_SUITE("schedules/deep_ep_v2")
