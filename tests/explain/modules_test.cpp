// Modules as a FLOPs profiler prints them: their FLOPs are the model's, their times those of the kernels.
#include "experiments/explain/modules.hpp"

#include <doctest/doctest.h>

#include <map>

#include "architecture/parameters.hpp"
#include "schedules/scenario/fold.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("explain/modules") {

using namespace moeline;
using namespace moeline::testing;

namespace {

ModuleTable table_of(const Run& run) { return module_table(run).value(); }

const ModuleRow& row_of(const ModuleTable& table, const std::string& module) {
  const auto found =
      std::find_if(table.rows.begin(), table.rows.end(), [&](const ModuleRow& row) { return row.module == module; });
  REQUIRE_MESSAGE(found != table.rows.end(), "no module " << module);
  return *found;
}

double flops_per_token(const ModuleTable& table, const std::string& module) {
  return row_of(table, module).use.flops() / table.tokens.value();
}

// Of all roots.
ModuleUse total(const ModuleTable& table) {
  ModuleUse sum;
  for (const ModuleRow& row : table.rows) {
    if (row.depth == 0) sum.add(row.use);
  }
  return sum;
}

// From start to end, of all that is no host work, on average over the ranks.
double kernel_us(const Run& run) {
  double us = 0;
  for (TaskId id = 0; id < run.program.graph.size(); ++id) {
    if (run.program.graph.task_class(id).role == Role::host) continue;
    us += to_us(run.timeline.spans[id].end - run.timeline.spans[id].start);
  }
  return us / run.program.ranks;
}

// attention_core() of the program counts half of a query's own key, train_flops_per_token the whole of it.
double core_flops(const Architecture& model, double seq_len) {
  return attention_core_flops(model, seq_len) * seq_len / (seq_len + 1);
}

void check_trained_flops(const ModuleTable& table, const Architecture& model, double seq_len) {
  for (const Module& module : modules(model)) {
    CAPTURE(module.name);
    const double core = module.name == kAttention ? core_flops(model, seq_len) : 0;
    CHECK(flops_per_token(table, module.name) == doctest::Approx(3 * (module.forward_flops() + core)).epsilon(1e-9));
  }
  const double half_keys = 3 * (attention_core_flops(model, seq_len) - core_flops(model, seq_len));
  CHECK(flops_per_token(table, "model") + half_keys ==
        doctest::Approx(train_flops_per_token(model, seq_len)).epsilon(1e-9));
}

double matrices_of(const Architecture& model, const std::string& name) {
  for (const Module& module : modules(model)) {
    if (module.name == name) return module.forward_flops();
  }
  return 0;
}

}  // namespace

TEST_CASE("a step of training computes for each token what the model needs, in every module") {
  const Run run = run_step({"level=phase"});
  check_trained_flops(table_of(run), run.setup.model, 4096);
}

TEST_CASE("whatever a step repeats, and however it is simulated, the model's FLOPs are the same") {
  const Run usual = run_small("dualpipe");
  for (const char* set : {"training.recompute=full", "training.recompute=none", "level=phase"}) {
    CAPTURE(set);
    const Run other = run_small("dualpipe", {set});
    for (const char* module : {"attention", "routed experts", "model"}) {
      CHECK(flops_per_token(table_of(other), module) ==
            doctest::Approx(flops_per_token(table_of(usual), module)).epsilon(1e-9));
    }
  }
}

TEST_CASE("full recomputation repeats the forward pass but its last transfer, and counts apart") {
  const ModuleTable table = table_of(run_small("1f1b", {"training.recompute=full"}));
  const ModuleUse& experts = row_of(table, "routed experts").use;
  CHECK(experts.recomputed_flops == doctest::Approx(experts.forward_flops));
  CHECK(experts.us[static_cast<std::size_t>(ModelPass::recomputation)] > 0);
  CHECK(row_of(table, "combine").use.us[static_cast<std::size_t>(ModelPass::recomputation)] == 0);
  CHECK(row_of(table, "dispatch").use.us[static_cast<std::size_t>(ModelPass::recomputation)] > 0);
}

TEST_CASE("prefill and decode multiply each token by the matrices that it passes through") {
  for (const char* name : {"deepseek-v3", "deepseek-v2", "kimi-k2", "qwen3-235b-a22b", "glm-4.5", "gpt-oss-120b"}) {
    const std::vector<std::string> set = {std::string("model=") + name, "parallelism={ep: 32, dp: 32}"};
    for (const bool decode : {false, true}) {
      CAPTURE(name);
      CAPTURE(decode);
      const Run run = decode ? run_decode(set) : run_prefill(set);
      const ModuleTable table = table_of(run);
      for (const char* module : {"dense FFN", "router", "routed experts", "shared experts"}) {
        const double expected = matrices_of(run.setup.model, module);
        CAPTURE(module);
        if (expected > 0) CHECK(flops_per_token(table, module) == doctest::Approx(expected).epsilon(1e-9));
      }
      const double core = flops_per_token(table, "attention/core");
      CHECK(flops_per_token(table, "attention") - core ==
            doctest::Approx(matrices_of(run.setup.model, "attention")).epsilon(1e-9));
      if (!decode) {
        CHECK(core / attention_core_flops(run.setup.model, 4096) == doctest::Approx(1).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("the head of a decode computes logits of all tokens, that of a prefill of the last of each prompt") {
  const double each = matrices_of(load_architecture("deepseek-v3"), "LM head");
  CHECK(flops_per_token(table_of(run_decode()), "LM head") == doctest::Approx(each));
  CHECK(flops_per_token(table_of(run_prefill()), "LM head") == doctest::Approx(each / 4096));
}

TEST_CASE("the times of all modules are those of all kernels") {
  for (const Run& run : {run_decode({"layers=8"}), run_prefill({"layers=4"}), run_small("dualpipe"),
                         run_small("zb1p", {"training.recompute=full"}),
                         run_decode({"layers=4", "ranks=all", "parallelism={ep: 16, dp: 16}"})}) {
    CAPTURE(run.setup.scenario.schedule);
    CHECK(total(table_of(run)).total_us() == doctest::Approx(kernel_us(run)).epsilon(1e-9));
  }
}

TEST_CASE("modules of a folded step have the numbers of the whole one") {
  for (const std::vector<std::string>& set : {std::vector<std::string>{}, {"workload.query_len=2"}}) {
    const Setup setup = load_setup(decode_scenario(), set);
    const ModuleTable all = table_of(run_scenario(setup));
    const ModuleTable fewer = table_of(run_scenario(folded(setup)));
    REQUIRE(fewer.rows.size() == all.rows.size());
    for (std::size_t i = 0; i < all.rows.size(); ++i) {
      CAPTURE(all.rows[i].module);
      CHECK(fewer.rows[i].use.flops() == doctest::Approx(all.rows[i].use.flops()).epsilon(1e-9));
      CHECK(fewer.rows[i].use.total_us() == doctest::Approx(all.rows[i].use.total_us()).epsilon(0.01));
    }
  }
}

TEST_CASE("drafted tokens run the MTP module, which stands apart") {
  const ModuleTable table = table_of(run_decode({"workload.query_len=2"}));
  CHECK(row_of(table, "MTP/attention/core").use.total_us() > 0);
  CHECK(row_of(table, "MTP/projection").use.flops() > 0);
  const ModuleTable plain = table_of(run_decode());
  CHECK(std::none_of(plain.rows.begin(), plain.rows.end(),
                     [](const ModuleRow& row) { return row.module.starts_with("MTP"); }));
}

TEST_CASE("what a module is bound by") {
  const ModuleTable decode = table_of(run_decode());
  CHECK(row_of(decode, "attention/o_proj").bound_by() == BoundBy::memory);
  CHECK(row_of(decode, "attention/norms").bound_by() == BoundBy::launch);
  CHECK(row_of(decode, "dispatch").bound_by() == BoundBy::communication);
  const ModuleTable prefill = table_of(run_prefill());
  CHECK(row_of(prefill, "attention/o_proj").bound_by() == BoundBy::compute);
  CHECK(row_of(prefill, "routed experts/activation").bound_by() == BoundBy::memory);
  CHECK_FALSE(row_of(prefill, "dispatch/cast and layout").bound_by().has_value());
}

TEST_CASE("a cut leaves rows out and changes none") {
  const ModuleTable whole = table_of(run_decode({"layers=4"}));
  const ModuleTable shallow = cut(whole, 1);
  std::size_t next = 0;
  for (const ModuleRow& row : whole.rows) {
    if (row.depth > 1) continue;
    REQUIRE(next < shallow.rows.size());
    CHECK(shallow.rows[next].module == row.module);
    CHECK(shallow.rows[next++].use.total_us() == row.use.total_us());
  }
  CHECK(next == shallow.rows.size());
}

TEST_CASE("of the training trace phases and classes tell some modules, and its scenario all of them") {
  if (!present(training_trace())) return;
  const Measured measured = understand(read_trace(training_trace()));
  double sum_us = 0;
  const Analysis analysis = analyze(measured);
  for (const ClassUse& use : analysis.ranks.front().classes) sum_us += to_us(use.sum);

  const ModuleTable alone = module_table(measured, {}, nullptr);
  CHECK(total(alone).total_us() == doctest::Approx(sum_us).epsilon(1e-9));
  CHECK(row_of(alone, "attention/core").use.total_us() == doctest::Approx(20063));
  CHECK_FALSE(row_of(alone, "model").parameters.has_value());
  CHECK_FALSE(row_of(alone, "model").tflops().has_value());
  CHECK_FALSE(row_of(alone, "attention").bound_by().has_value());

  const Setup setup = load_setup(chunk_scenario(), {});
  const ModuleTable known = module_table(measured, {}, &setup);
  CHECK(total(known).total_us() == doctest::Approx(sum_us).epsilon(1e-9));
  CHECK(row_of(known, "model").knows_flops);
  CHECK(row_of(known, "attention/o_proj").tflops().value() == doctest::Approx(760).epsilon(0.01));
  // three kernels that layer 1 does without: fill_tensormaps
  CHECK(row_of(known, "dense FFN + routed experts + shared experts").use.total_us() == doctest::Approx(7));
}

TEST_CASE("a map names the modules of kernels, before anything else does") {
  if (!present(training_trace())) return;
  const Measured measured = understand(read_trace(training_trace()));
  KernelMap map;
  map.modules = {{"flash", "attention/o_proj"}};
  const ModuleTable table = module_table(measured, map, nullptr);
  CHECK(row_of(table, "attention/o_proj").use.total_us() > 20000);
}

}  // TEST_SUITE("explain/modules")
