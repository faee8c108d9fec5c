// Whole pipelines: what a scenario must say, what it need not, and what of it is refused where.
#include "tests/support/json.hpp"

TEST_SUITE("cli/bad_pipeline_scenario") {

using namespace moeline::testing;

namespace {

const std::string kPipeline =
    "schema: 1\n"                                                                              // 1
    "schedule: dualpipe\n"                                                                     // 2
    "parallelism: {tp: 1, pp: 8, ep: 64, dp: 64}\n"                                            // 3
    "workload: {phase: train, micro_batch_size: 2, seq_len: 4096, global_batch_size: 2560}\n"  // 4: 20 micro-batches
    "slot_costs_ms:\n"                                                                         // 5
    "  F: 1\n"                                                                                 // 6
    "  B: 2\n"                                                                                 // 7
    "  W: 1\n"                                                                                 // 8
    "  F&B: 3\n";                                                                              // 9

void check_pipeline_changes(const std::vector<TextChange>& changes) {
  for (const auto& [from, to, line, says] : changes) check_scenario_refused(replaced(kPipeline, from, to), line, says);
}

// The valid pipeline as another schedule.
std::string as(const std::string& schedule, const std::string& from = "", const std::string& to = "") {
  return replaced(replaced(kPipeline, "dualpipe", schedule), from, to);
}

rapidjson::Document result_of(const std::string& scenario) {
  const TemporaryFolder folder;
  return in_json({"simulate", folder.write("scenario.yaml", scenario)});
}

}  // namespace

TEST_CASE("a pipeline of given slots needs no model, hardware, comm and routing, and prints what applies to it") {
  const rapidjson::Document json = result_of(kPipeline);
  CHECK(json["metrics"]["step_ms"].GetDouble() == 66);
  CHECK(json["metrics"]["bubble_fraction"].GetDouble() == doctest::Approx(6.0 / 66).epsilon(1e-4));
  CHECK(json["metrics"]["tasks"].GetUint() == json["phases"].Size());
  CHECK(json["metrics"].MemberCount() == 4);
  for (const char* absent : {"classes", "provenance"}) CHECK_FALSE(json.HasMember(absent));
  for (const char* absent : {"model", "hardware", "kernels", "comm", "routing", "layers", "overlap", "launch"}) {
    CHECK_FALSE(json["scenario"].HasMember(absent));
  }
  CHECK(json["scenario"]["slot_costs_ms"]["F&B"].GetDouble() == 3);
  CHECK(json["warnings"].Empty());
}

TEST_CASE("what stands in a pipeline's scenario and does not enter is named in a warning") {
  const rapidjson::Document json = result_of(kPipeline + "model: deepseek-v3\nhardware: h800\ncomm: {num_sms: 20}\n");
  CHECK(json["warnings"][0].GetString() ==
        std::string("with slot_costs_ms, these do not enter: model, hardware, comm"));
  CHECK(json["metrics"]["step_ms"].GetDouble() == 66);
}

TEST_CASE("costs of slots that a schedule does not have may stand, and are absent from its result") {
  const rapidjson::Document json = result_of(as("1f1b"));
  CHECK(json["metrics"]["step_ms"].GetDouble() == 81);
  CHECK(json["scenario"]["slot_costs_ms"].MemberCount() == 2);
}

TEST_CASE("a run folder of a pipeline holds the trace of every rank") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "run").string();
  REQUIRE(run_moeline({"simulate", folder.write("scenario.yaml", kPipeline), "-o", out}).exit_code == 0);
  for (int rank = 0; rank < 8; ++rank) {
    const std::filesystem::path trace =
        std::filesystem::path(out) / "traces" / ("rank_" + std::to_string(rank) + ".json");
    CHECK(std::filesystem::exists(trace));
  }
}

TEST_CASE("slot costs and pipelines belong together") {
  check_pipeline_changes({
      {"schedule: dualpipe", "schedule: sequential", 5, "slot_costs_ms belongs to schedules of whole pipelines"},
      {"slot_costs_ms:\n  F: 1\n  B: 2\n  W: 1\n  F&B: 3\n", "", 1, "model is missing"},
      {"phase: train", "phase: decode", 4, "'decode' does not go with the schedule dualpipe, which is for train"},
      {"schedule: dualpipe", "schedule: dualpipes", 2, "names an unknown schedule 'dualpipes'; did you mean"},
  });
}

TEST_CASE("slot costs that cannot be are refused at their line") {
  check_pipeline_changes({
      {"F: 1", "F: 0", 6, "slot_costs_ms.F must be from 0.001 to 1000000, not 0"},
      {"F: 1", "F: -1", 6, "slot_costs_ms.F must be from 0.001"},
      {"F: 1", "F: .nan", 6, "slot_costs_ms.F must be a number"},
      {"B: 2", "B: [2]", 7, "slot_costs_ms.B must be a single value"},
      {"B: 2\n", "\n", 6, "slot_costs_ms.B is missing"},
      {"W: 1\n", "\n", 6, "slot_costs_ms.W is missing"},
      {"W: 1", "W: 2.5", 8, "slot_costs_ms.W must be at most B, of which it is a part: 2.5 is above 2"},
      {"F&B: 3", "F&B: 1.5", 9, "slot_costs_ms.F&B must be at least F and B, which it overlaps: 1.5 is below 2"},
      {"F&B: 3", "F+B: 3", 9, "unknown key 'slot_costs_ms.F+B'; did you mean 'slot_costs_ms.F&B'?"},
      {"B: 2", "F: 2", 7, "key 'F' is repeated"},
      {"F: 1\n  B: 2", "F: 1e6\n  B: 1e6", 9, "slot_costs_ms.F&B must be at least"},
  });
  check_scenario_refused(as("zb1p", "  W: 1\n", "\n"), 6, "slot_costs_ms.W is missing");
  check_scenario_refused(as("1f1b", "  W: 1\n", "  W: 3\n"), 8, "slot_costs_ms.W must be at most B");
}

TEST_CASE("ranks and micro-batches that a schedule cannot have are refused with the rule") {
  check_pipeline_changes({
      {"pp: 8", "pp: 7", 3, "parallelism.pp must be even for dualpipe"},
      {"pp: 8", "pp: 1", 3, "parallelism.pp must be even for dualpipe"},
      {"pp: 8, ", "", 3, "parallelism.pp is missing"},
      {"pp: 8", "pp: 8192", 3, "parallelism.pp must be from 1 to 4096"},
      {"tp: 1", "tp: 0", 3, "parallelism.tp must be from 1"},
      {"ep: 64", "ep: 48", 3, "parallelism.ep must divide tp x dp: 48 does not divide 64"},
      {"tp: 1", "virtual_pp: 2", 3, "parallelism.virtual_pp belongs to interleaved-1f1b, not to dualpipe"},
      {", global_batch_size: 2560", "", 4, "workload.global_batch_size is needed"},
      {"2560", "2561", 4, "workload.global_batch_size must be a multiple of dp x micro_batch_size = 128: 2561 is not"},
      {"2560", "64", 4, "must be a multiple of dp x micro_batch_size = 128: 64 is not"},
      {"2560", "1792", 4, "workload.global_batch_size gives 14 micro-batches; dualpipe needs at least 2 x pp = 16"},
      {"2560", "2176", 4, "gives 17 micro-batches; dualpipe needs an even number"},
      {"2560", "1073741824", 4, "gives 8388608 micro-batches: more than 1048576 passes through stages, 67108864"},
  });
  check_scenario_refused(as("dualpipev", "2560", "1920"), 4, "15 micro-batches; dualpipev needs at least 2 x pp = 16");
  check_scenario_refused(as("zb1p", "2560", "896"), 4, "gives 7 micro-batches; zb1p needs at least pp = 8");
  check_scenario_refused(as("interleaved-1f1b", "tp: 1", "virtual_pp: 2"), 4,
                         "gives 20 micro-batches; interleaved-1f1b needs a multiple of pp = 8");
  check_scenario_refused(as("interleaved-1f1b", "tp: 1", "virtual_pp: 1"), 3, "virtual_pp must be from 2 to 1024");
  check_scenario_refused(as("interleaved-1f1b"), 3, "parallelism.virtual_pp is missing");
}

TEST_CASE("a step of more than 11 days is refused") {
  std::string scenario = as("1f1b", "2560", "128000");
  scenario = replaced(replaced(scenario, "F: 1\n", "F: 1e6\n"), "F&B: 3\n", "\n");
  check_scenario_refused(scenario, 5, "slot_costs_ms make the step longer than 11 days");
}

TEST_CASE("names and keys that do not enter must still be right") {
  for (const auto& [line, says] : std::vector<std::pair<std::string, std::string>>{
           {"model: deepseek-v33", "did you mean 'deepseek-v3'?"},
           {"hardware: h80", "did you mean 'h800'?"},
           {"comm: {num_sm: 20}", "unknown key 'comm.num_sm'; did you mean 'comm.num_sms'?"},
           {"routing: {row: 1}", "unknown key 'routing.row'; did you mean 'routing.rows'?"},
           {"slots: 1", "unknown key 'slots'"},
           {"training: {foo: 1}", "unknown key 'training.foo'"},
           {"level: zzz", "level has an unknown value 'zzz'"},
           {"hardware: h800\nkernels: late", "names an unknown kernel set of h800 'late'"},
       }) {
    const auto more_lines = static_cast<int>(std::count(line.begin(), line.end(), '\n'));
    check_scenario_refused(kPipeline + line + "\n", 10 + more_lines, says);
  }
}

TEST_CASE("compare refuses whole pipelines") {
  const TemporaryFolder folder;
  const std::string file = folder.write("scenario.yaml", kPipeline);
  check_refused({"compare", file, file}, file, "is a whole pipeline; compare knows the phases of one rank");
}

}  // TEST_SUITE("cli/bad_pipeline_scenario")
