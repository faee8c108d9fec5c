// The printed flags against Megatron-LM's own rules.
#include "tests/plan_training/stack_rules.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/plan_training/layout.hpp"
#include "experiments/plan_training/megatron_flags.hpp"
#include "experiments/run/slot_level.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("plan_training/stack_rules") {

using namespace moeline;
using namespace moeline::testing;

namespace {

TrainingFacts training_facts(const Setup& setup, int gpus) {
  const Architecture& model = setup.model;
  return {.layers = model.num_hidden_layers,
          .mtp = setup.scenario.training.mtp ? model.num_nextn_predict_layers : 0,
          .experts = model.n_routed_experts,
          .heads = model.num_attention_heads,
          .query_groups = model.is_mla() ? model.num_attention_heads : model.layer(0).attention.kv_heads,
          .mla = model.is_mla(),
          .dense_layers = model.dense_layers() > 0,
          .gpus = gpus};
}

// Of every layout that the job lists and that is a scenario: how many.
int check_every_layout(const std::string& text) {
  const TemporaryFolder folder;
  const TrainingJob job = load_training_job(folder.write("job.yaml", text));
  const Architecture model = load_architecture(job.model);
  int count = 0;
  const auto check = [&](const Layout& layout) {
    std::optional<Setup> setup;
    try {
      setup = setup_of(layout, job);
    } catch (const SpecError&) {
      return;  // whoever searches is told why
    }
    const MegatronFlags flags = megatron_flags(layout, setup->scenario, SlotKinds(*setup).stages());
    const std::string command = fmt::format("{}", fmt::join(flags.flags, " "));
    CAPTURE(describe(layout));
    CAPTURE(command);
    const ReadCommand read = read_command(command, flags.notes);
    const TrainingFacts facts = training_facts(*setup, job.gpus);
    for (const TrainingRule& rule : megatron_rules()) {
      CHECK_MESSAGE(!rule.breaks(read, facts), std::string(rule.says));
    }
    ++count;
  };
  for (const Layout& split : splits_of(job, model, 0)) {
    for (Layout layout : orders_of(split, job, model)) {
      for (const MemorySaving& saving : savings_of(job, model, true)) {
        layout.saving = saving;
        check(layout);
      }
    }
  }
  return count;
}

std::string training_job(const std::string& model, const std::string& search, int gpus = 64,
                         const std::string& set = "precision.linear=bf16") {
  return fmt::format(
      "schema: 1\nmodel: {}\nhardware: {{h100: {{}}}}\n"
      "training: {{gpus: {}, global_batch_size: 512, seq_len: 4096}}\nsearch: {{{}}}\nset: [{}]\n",
      model, gpus, search, set);
}

}  // namespace

TEST_CASE("every rule of Megatron-LM is broken by flags") {
  for (const TrainingRule& rule : megatron_rules()) {
    CAPTURE(rule.says);
    if (rule.broken_by != nullptr) CHECK(rule.breaks(read_command(rule.broken_by), {}));
    CHECK(std::string(rule.source).find(':') != std::string::npos);
  }
  const ReadCommand of_model = read_command(
      "--recompute-granularity selective --recompute-modules mla_up_proj "
      "--overlap-moe-expert-parallel-comm --expert-model-parallel-size 8 "
      "--moe-token-dispatcher-type alltoall --global-batch-size 64");
  const auto broken = [&](const TrainingFacts& facts) {
    return std::count_if(megatron_rules().begin(), megatron_rules().end(), [&](const TrainingRule& rule) {
      return rule.broken_by == nullptr && rule.breaks(of_model, facts);
    });
  };
  CHECK(broken({}) == 0);
  CHECK(broken({.mtp = 2, .mla = false}) == 2);
}

TEST_CASE("a layout is read as Megatron-Core reads it") {
  CHECK(stages_in("Ettt|(tt|)*29,m|L").size() == 32);  // of parse_str_to_list's own example
  CHECK(stages_in("xy(ab|cd|ef)*2,pq") == std::vector<std::string>{"xyab", "cd", "efab", "cd", "efpq"});
  CHECK(stages_in("Et*3|(t*2|)*2mL") == std::vector<std::string>{"Ettt", "tt", "tt", "mL"});
}

TEST_CASE("flags of every layout of small jobs obey Megatron-LM's rules" * doctest::skip(kSanitized)) {
  CHECK(check_every_layout(
            training_job("deepseek-v3", "tp: [1, 2], pp: [4, 8, 16], ep: [4, 8], virtual_pp: [2, 4]", 64)) > 50);
  CHECK(check_every_layout(training_job("deepseek-v3", "tp: [1], pp: [16], ep: [64], micro_batch_size: [1]", 1024)) >
        5);
  CHECK(check_every_layout(training_job(
            "qwen3-30b-a3b", "tp: [1, 4], cp: [1, 2], pp: [1, 2, 4], ep: [1, 8], micro_batch_size: [1, 2]")) > 50);
  CHECK(check_every_layout(training_job("mixtral-8x7b",
                                        "tp: [1, 2, 8], pp: [1, 4, 8], ep: [1, 2, 8], virtual_pp: [2, 4, 8], "
                                        "recompute: [none, full, \"[core_attn, moe_act]\"]")) > 50);
}

TEST_CASE("so do flags with other dispatchers, graphs and offloaded activations") {
  const std::string search = "tp: [1], pp: [2], ep: [8], virtual_pp: [2], micro_batch_size: [1]";
  for (const char* mode : {"normal", "all_to_all", "hybrid_ep", "deepep_v2"}) {
    CAPTURE(mode);
    CHECK(check_every_layout(
              training_job("qwen3-30b-a3b", search, 64, fmt::format("precision.linear=bf16, comm.mode={}", mode))) > 0);
  }
}

}  // TEST_SUITE("plan_training/stack_rules")
