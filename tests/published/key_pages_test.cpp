// Every key that a file of ours may have, and every word that one may be given, stands on that file's page. The program
// itself says what it reads: it lists what there is where a name is near to nothing.
#include <doctest/doctest.h>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("published/key_pages") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// What "unknown key 'zzzzzzzz'; there is: a, b, c" offers.
std::vector<std::string> offered(const Outcome& refusal) {
  const std::string list = "there is: ";
  const std::size_t at = refusal.err.find(list);
  CAPTURE(refusal.err);
  REQUIRE(at != std::string::npos);
  std::vector<std::string> names;
  std::istringstream stream(refusal.err.substr(at + list.size()));
  for (std::string name; std::getline(stream >> std::ws, name, ',');) {
    names.push_back(name.substr(0, name.find('\n')));
  }
  return names;
}

void check_page(const char* page, const Arguments& call) {
  CAPTURE(joined(call));
  const std::string text = content_of(source(page));
  for (const std::string& name : offered(run_moeline(call))) {
    CHECK_MESSAGE(text.find("`" + name + "`") != std::string::npos, std::string(page) << " does not have " << name);
  }
}

void check_scenario_page(const std::string& scenario, const std::vector<std::string>& assignments) {
  const std::string file = source("experiments/studies/" + scenario + "/scenario.yaml").string();
  for (const std::string& assignment : assignments) {
    check_page("schedules/scenario/README.md", {"simulate", file, "--set", assignment});
  }
}

// A valid file, with each of its parts replaced in turn by a mapping of a key that no part has.
void check_file_page(const char* page, const Arguments& command, const std::string& file,
                     const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  for (const std::string& part : parts) {
    Arguments call = command;
    call.push_back(folder.write("asked.yaml", replaced(file, part, "{zzzzzzzz: 1}")));
    check_page(page, call);
  }
  Arguments call = command;
  call.push_back(folder.write("asked.yaml", file + "zzzzzzzz: 1\n"));
  check_page(page, call);
}

}  // namespace

TEST_CASE("the page of serving has every key of a workload of requests") {
  const std::string file = source("experiments/studies/serve_requests_h200/scenario.yaml").string();
  for (const char* assignment : {"workload.zzzzzzzz=1", "workload.prompts=zzzzzzzz", "workload.scaling.zzzzzzzz=1",
                                 "workload.loads.zzzzzzzz=1"}) {
    check_page("experiments/serve/README.md", {"simulate", file, "--set", assignment});
  }
}

TEST_CASE("the scenario's page has every key and word of a scenario of inference") {
  check_scenario_page("decode_deepseek_v3_h800_ep128",
                      {"zzzzzzzz=1", "parallelism.zzzzzzzz=1", "workload.zzzzzzzz=1", "comm.zzzzzzzz=1",
                       "routing.zzzzzzzz=1", "schedule=zzzzzzzz", "workload.phase=zzzzzzzz", "comm.mode=zzzzzzzz",
                       "comm.dispatch_dtype=zzzzzzzz", "comm.combine_dtype=zzzzzzzz", "routing.distribution=zzzzzzzz",
                       "routing.placement=zzzzzzzz", "launch=zzzzzzzz", "ranks=zzzzzzzz", "jitter=zzzzzzzz"});
}

TEST_CASE("the scenario's page has every key and word of a scenario of training") {
  check_scenario_page("train_chunk_deepseek_v3_h800", {"routing.rows.zzzzzzzz=1", "routing.distribution=zzzzzzzz",
                                                       "comm.mode=zzzzzzzz", "training.zzzzzzzz=1"});
  check_scenario_page("train_deepseek_v3_2048_h800",
                      {"parallelism.zzzzzzzz=1", "training.zzzzzzzz=1", "training.recompute=zzzzzzzz",
                       "training.activations=zzzzzzzz", "training.operators=zzzzzzzz", "training.gradients=zzzzzzzz",
                       "training.moments=zzzzzzzz", "level=zzzzzzzz", "stages=zzzzzzzz", "slot_costs_ms.zzzzzzzz=1"});
}

TEST_CASE("the page of overlap plans has every key of one") {
  const TemporaryFolder folder;
  const std::string plan = folder.write("plan.yaml", "zzzzzzzz: []\n");
  check_page("schedules/README.md", {"simulate", chunk_scenario().string(), "--set", "overlap=" + plan});
}

TEST_CASE("the page of machines has every fact of one") {
  check_page("hwprofiles/README.md", {"simulate", chunk_scenario().string(), "--set", "hardware.zzzzzzzz=1"});
}

TEST_CASE("the study's page has every key of a study") {
  const std::string study = "schema: 1\nscenario: " + chunk_scenario().string() +
                            "\naxes:\n  seed: {from: 1, to: 2, step: 1}\nmetrics: [step_ms]\n";
  check_file_page("experiments/sweep/README.md", {"sweep"}, study, {"{from: 1, to: 2, step: 1}"});
}

TEST_CASE("the page of plans for training has every key of one") {
  const char* page = "experiments/plan_training/README.md";
  const std::string plan =
      "schema: 1\nmodel: mixtral-8x7b\nhardware: {h100: {usd_per_gpu_hour: 2}}\n"
      "training: {gpus: 8, global_batch_size: 8, seq_len: 4096}\nsearch: {tp: [1]}\n";
  check_file_page(page, {"plan"}, plan, {"{gpus: 8, global_batch_size: 8, seq_len: 4096}", "{tp: [1]}"});
  const TemporaryFolder folder;
  check_page(page, {"plan", folder.write("asked.yaml", replaced(plan, "{tp: [1]}", "{overlap: [zzzzzzzz]}"))});
}

TEST_CASE("the plan's page has every key of a plan") {
  const std::string plan =
      "schema: 1\nmodel: deepseek-v3\nhardware: {h800: {usd_per_gpu_hour: 2}}\n"
      "traffic: {requests_per_s: 100, input: {mean: 2000}, output: {mean: 500}}\n"
      "limits: {ttft_ms: 4000, tpot_ms: 50}\nserving: [colocated]\n"
      "prefill: {ep: [16]}\ndecode: {ep: [32]}\n";
  check_file_page("experiments/plan/README.md", {"plan"}, plan,
                  {"{usd_per_gpu_hour: 2}", "{requests_per_s: 100, input: {mean: 2000}, output: {mean: 500}}",
                   "{mean: 2000}", "{ttft_ms: 4000, tpot_ms: 50}", "{ep: [16]}", "{ep: [32]}"});
  const TemporaryFolder folder;
  check_page("experiments/plan/README.md",
             {"plan", folder.write("asked.yaml", replaced(plan, "[colocated]", "[zzzzzzzz]"))});
}

}  // TEST_SUITE("published/key_pages")
