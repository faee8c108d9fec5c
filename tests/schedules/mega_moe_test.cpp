// Experts that are one kernel with their transfers in it (DeepGEMM's MegaMoE).
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/mega_moe") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kScenario =
    "schema: 1\nmodel: deepseek-v4-flash\nhardware: gb200-nvl72\nkernels: sglang\nschedule: sequential\n"
    "parallelism: {ep: 8}\nworkload: {phase: decode, batch_size: 64, kv_len: 4096}\ncomm: {mode: fused}\nlayers: 6\n";

Setup mega_setup(const std::vector<std::string>& more = {}) {
  return read_setup(Spec::parse("scenario.yaml", kScenario), more);
}

std::vector<TaskId> mega_kernels(const Run& run) { return tasks_of(run, "mega_moe"); }

double gib_communicated(const Run& run) { return gib(run.inference()->memory.communication); }

void check_refused(const std::vector<std::string>& more, const std::string& says) {
  check_refused_with(says, [&] { (void)mega_setup(more); });
}

}  // namespace

TEST_CASE("a layer is attention, shared experts and one kernel that holds all SMs and sends over NVLink meanwhile") {
  const Run run = run_scenario(mega_setup());
  CHECK(run.setup.layer_phases() == std::vector<std::string>{"attn-0", "attn-1", "shared", "mlp"});
  const std::vector<TaskId> kernels = mega_kernels(run);
  REQUIRE(kernels.size() == 6);
  const TaskGraph& graph = run.program.graph;
  CHECK(graph.task(kernels[0]).hold == Hold::resident);
  CHECK(graph.task(kernels[0]).sms == run.setup.machine.facts.sms);
  const double sent = carried(run, {kernels[0]}, "NVLink out") * 1e3;
  const Architecture& model = run.setup.model;
  const double rows = 64.0 * model.num_experts_per_tok;  // of this rank's experts; seven eighths come from others
  CHECK(sent == doctest::Approx(rows * 7 / 8 * model.hidden_size * (1 + 2)).epsilon(0.05));
}

TEST_CASE("the kernel starts once all ranks have come to it, on every rank at the same time") {
  const Run run = run_scenario(mega_setup({"ranks=all"}));
  const std::vector<TaskId> kernels = mega_kernels(run);
  REQUIRE(kernels.size() == 8 * 6);
  for (std::size_t layer = 0; layer < 6; ++layer) {
    for (std::size_t rank = 1; rank < 8; ++rank) {
      CHECK(run.timeline.spans[kernels[rank * 6 + layer]].start == run.timeline.spans[kernels[layer]].start);
    }
  }
  CHECK(layer_us(run) == doctest::Approx(layer_us(run_scenario(mega_setup()))).epsilon(0.03));
}

TEST_CASE("weights bind few tokens, products many, and it grows with both") {
  double before = 0;
  for (const char* batch : {"1", "8", "64", "512", "4096"}) {
    const Run run = run_scenario(mega_setup({std::string("workload.batch_size=") + batch, "workload.kv_len=64"}));
    const double us = to_us(run.program.graph.task(mega_kernels(run).front()).solo);
    CHECK(us >= before);
    before = us;
  }
  CHECK(to_us(run_scenario(mega_setup()).timeline.makespan) > 0);
}

TEST_CASE("buffers hold a token, and what each of its experts sends back") {
  const auto gib_of = [](const char* mode) {
    return gib_communicated(
        run_scenario(mega_setup({std::string("comm.mode=") + mode, "layers=all", "workload.batch_size=512"})));
  };
  CHECK(gib_of("fused") > gib_of("all_gather"));
}

TEST_CASE("it is refused where nobody measured it, and where it does not reach") {
  check_refused({"model=deepseek-v3"}, "comm.mode fused, no kernels of gb200-nvl72 have fp8 experts by it");
  check_refused({"hardware=h200"}, "no kernels of h200 have mxfp4 experts by it");
  check_refused({"parallelism={tp: 2, ep: 8}"}, "takes each GPU's own tokens to whole experts");
  check_refused({"hardware=b200", "parallelism.ep=16"}, "stays in an NVLink domain: 16 ranks are more than its 8 GPUs");
  check_refused({"parallelism.ep=1"}, "has nobody to send to");
  check_refused({"schedule=decode-two-batch"}, "comm.mode 'fused' is not modelled");
  check_refused({"moe_backend=usual"}, "moe_backend does not apply");
}

}  // TEST_SUITE("schedules/mega_moe")
