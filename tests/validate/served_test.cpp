// moeline validate with rows of served models: what is scored, what is left out, and bad studies.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("validate/served") {

using namespace moeline::testing;

namespace {

const std::string kHead =
    "id,class,origin,system,model_path,precision,backend,backend_version,mode,concurrency,isl,osl,tp_size,pp_size,"
    "attention_dp_size,moe_tp_size,moe_ep_size,decode_num_workers,decode_tp_size,decode_pp_size,"
    "decode_attention_dp_size,decode_moe_tp_size,decode_moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n";

std::string colocated(const std::string& id, const std::string& version, const std::string& pp = "1") {
  return id + ",B,public,b200_sxm,deepseek,fp8,trtllm," + version + ",agg,16,1024,1024,8," + pp +
         ",1,1,8,,,,,,,300,12\n";
}

std::string disaggregated(const std::string& id) {
  return id + ",B,public,b200_sxm,deepseek,fp8,trtllm,1.2,disagg,16,1024,1024,,,,,,1,8,1,1,1,8,300,12\n";
}

std::string study(const TemporaryFolder& folder) {
  return "about: made up\n"  // 1
         "served: " +
         (folder.path() / "rows.csv").string() +
         "\n"                    // 2
         "status: not fitted\n"  // 3
         "scenario: " +
         source("experiments/studies/served_b200/decode.yaml").string() +
         "\n"                                                                             // 4
         "drawn_length: 0.9\n"                                                            // 5
         "step_tokens: 8192\n"                                                            // 6
         "machines: {b200_sxm: b200}\n"                                                   // 7
         "kernels: {trtllm: trtllm}\n"                                                    // 8
         "models: {v3: {names: [deepseek], precision: fp8, set: [model=deepseek-v3]}}\n"  // 9
         "leave_out: {of one's own: {column: origin, values: [own]}}\n"                   // 10
         "apart: {no version: {column: backend_version, values: [\"\"]}}\n";              // 11
}

struct Validated {
  TemporaryFolder folder;
  Outcome outcome;
  rapidjson::Document json;

  explicit Validated(const std::string& rows) {
    folder.write("rows.csv", kHead + rows);
    outcome = run_moeline({"validate", folder.write("study.yaml", study(folder)), "--format", "json"});
    json = parsed(outcome.out);
  }
  [[nodiscard]] const rapidjson::Value& served() const { return json["served"][0]; }
};

void check_study_refused(const std::string& from, const std::string& to, int line, const std::string& says) {
  const TemporaryFolder folder;
  folder.write("rows.csv", kHead + disaggregated("a"));
  const std::string file = folder.write("study.yaml", replaced(study(folder), from, to));
  check_refused({"validate", file}, file + ":" + std::to_string(line) + ": ", says);
}

}  // namespace

TEST_CASE("a served row's batch keeps Little's law with its measured TTFT and predicted TPOT") {
  const Validated validated(disaggregated("a") + colocated("b", "1.2"));
  REQUIRE(validated.outcome.exit_code == 0);
  REQUIRE(validated.served()["rows"].Size() == 2);
  for (const auto& row : validated.served()["rows"].GetArray()) {
    const double decode_ms = 0.9 * 1024 * row["predicted"].GetDouble();
    CHECK(row["batch"].GetDouble() == doctest::Approx(16 * decode_ms / (300 + decode_ms)).epsilon(0.01));
    CHECK(row["error"].GetDouble() == doctest::Approx(row["predicted"].GetDouble() / 12 - 1).epsilon(1e-3));
  }
}

TEST_CASE("where the same GPUs prefill, tokens take longer, and every prompt that arrives is prefilled") {
  const Validated validated(disaggregated("a") + colocated("b", "1.2"));
  const auto& apart = validated.served()["rows"][0];
  const auto& together = validated.served()["rows"][1];
  CHECK(together["predicted"].GetDouble() > apart["predicted"].GetDouble());
  CHECK(apart["mixed_share"].GetDouble() == 0);
  const double prefilled = together["mixed_share"].GetDouble() * together["chunk_tokens"].GetDouble();  // per step
  CHECK(prefilled == doctest::Approx(together["batch"].GetDouble() * 1024 / 1024).epsilon(0.01));
}

TEST_CASE("rows are left out, scored apart and refused by words, and the rest is scored beside its null model") {
  const Validated validated(disaggregated("a") + disaggregated("b") + colocated("c", "") +
                            replaced(disaggregated("d"), "public", "own") +
                            replaced(disaggregated("e"), "trtllm", "other"));
  std::map<std::string, int> groups;
  for (const auto& group : validated.served()["by_class"].GetArray()) {
    groups[group["group"].GetString()] = group["rows"].GetInt();
  }
  CHECK(groups == std::map<std::string, int>{{"disaggregated B, fp8", 2}, {"colocated B, fp8 (no version)", 1}});
  CHECK(validated.served()["by_class"][1]["null"]["median_abs_error"].GetDouble() == 0);  // the other row is alike
  CHECK(validated.served()["left_out"][0]["why"] == "of one's own");
  CHECK(std::string(validated.served()["refused"][0]["why"].GetString()).find("'other'") != std::string::npos);
}

TEST_CASE("a study of served rows without its table is skipped") {
  const TemporaryFolder folder;
  const Outcome outcome = run_moeline({"validate", folder.write("study.yaml", study(folder))});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("skipped: ") != std::string::npos);
}

TEST_CASE("a bad study of served rows is refused at its line") {
  check_study_refused("drawn_length: 0.9", "drawn_length: 2", 5, "drawn_length");
  check_study_refused("step_tokens", "step_token", 6, "did you mean 'step_tokens'?");
  check_study_refused("status: not fitted", "status: known", 3, "status");
  check_study_refused("column: origin", "column: orgin", 10, "'orgin'");
  check_study_refused("b200}", "b2000}", 7, "unknown hardware 'b2000'");
  check_study_refused("{trtllm: trtllm}", "{trtllm: trtlm}", 8, "'trtlm'");
  check_study_refused("decode.yaml", "nowhere.yaml", 4, "is absent");
  check_study_refused("precision: fp8, ", "", 9, "precision");
}

TEST_CASE("a served row that makes no sense is refused at its line") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string rows = folder.write("rows.csv", kHead + replaced(disaggregated("a"), from, to));
    check_refused({"validate", folder.write("study.yaml", study(folder))}, rows + ":2: ", says);
  };
  check(",300,12", ",300,0", "silicon_tpot_ms");
  check(",disagg,", ",aggg,", "did you mean 'agg'?");
  check(",B,", ",,", "class");
  check(",16,1024", ",1e9,1024", "concurrency");
}

}  // TEST_SUITE("validate/served")
