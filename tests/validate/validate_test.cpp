// moeline validate: what it prints, when it fails, and fact files that it refuses.
#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("validate/validate") {

using namespace moeline::testing;

namespace {

/// Valid facts, one of each method. Line numbers in the cases count from here.
std::string facts() {
  return "about: a few facts\n"                                                             // 1
         "common:\n"                                                                        // 2
         "  unit: us\n"                                                                     // 3
         "  setting: H800\n"                                                                // 4
         "  source: nobody\n"                                                               // 5
         "  how_read: made up\n"                                                            // 6
         "  status: not fitted\n"                                                           // 7
         "facts:\n"                                                                         // 8
         "  size:\n"                                                                        // 9
         "    quantity: parameters\n"                                                       // 10
         "    value: 46.7\n"                                                                // 11
         "    unit: 10^9\n"                                                                 // 12
         "    gate: printed digits\n"                                                       // 13
         "    model: {model: mixtral-8x7b, metric: parameters, times: 1e-9}\n"              // 14
         "  kernel:\n"                                                                      // 15
         "    quantity: time of a GEMM\n"                                                   // 16
         "    value: 640\n"                                                                 // 17
         "    price: {hardware: h800, kernels: open-2025-late, metric: us, ops: [gemm]}\n"  // 18
         "  chunk:\n"                                                                       // 19
         "    quantity: first kernel to last\n"                                             // 20
         "    value: 128\n"                                                                 // 21
         "    gate: 10 %\n"                                                                 // 22
         "    stated_nulls: {copied_mean: 140.8}\n"                                         // 23
         "    simulate:\n"                                                                  // 24
         "      scenario: " +
         chunk_scenario().string() +
         "\n"                         // 25
         "      metric: step_ms\n"    // 26
         "      set: [samples=1]\n";  // 27
}

rapidjson::Document parsed(const Outcome& outcome) { return moeline::testing::parsed(outcome.out); }

Outcome validate(const std::string& content, const Arguments& more = {}) {
  const TemporaryFolder folder;
  Arguments arguments = {"validate", folder.write("made_up.yaml", content)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_moeline(arguments);
}

void check_facts_refused(const std::string& content, int line, const std::string& says) {
  const TemporaryFolder folder;
  const std::string file = folder.write("changed.yaml", content);
  check_refused({"validate", file}, file + ":" + std::to_string(line) + ": ", says);
}

}  // namespace

TEST_CASE("the null models of the training chunk are those of compare") {
  if (!present(training_trace())) return;
  const TemporaryFolder folder;  // of one draw, as compare shows
  std::string facts = content_of(source("tests/published/training_chunk_phases.yaml"));
  const std::string shipped = "{scenario: ../../experiments";
  facts.replace(facts.find(shipped), shipped.size(), "{set: [samples=1], scenario: " + source("experiments").string());
  const std::string phases = folder.write("phases.yaml", facts);
  const rapidjson::Document validated = parsed(run_moeline({"validate", phases, "--format", "json"}));
  const rapidjson::Document compared = parsed(run_moeline(
      {"compare", chunk_scenario().string(), training_trace().string(), "--layers", "2,3", "--format", "json"}));
  const auto& subject = validated["subjects"][0];
  CHECK(subject["mean_abs_error"].GetDouble() == compared["mean_abs_error"].GetDouble());
  CHECK(std::abs(subject["worst_error"].GetDouble()) == compared["worst_abs_error"].GetDouble());
  CHECK(subject["nulls"].MemberCount() == compared["nulls"].MemberCount());
  for (const auto& null : compared["nulls"].GetObject()) {
    const char* name = null.name.GetString();
    CAPTURE(name);
    REQUIRE(subject["nulls"].HasMember(name));
    CHECK(subject["nulls"][name]["mean_abs_error"].GetDouble() == null.value["mean_abs_error"].GetDouble());
  }
}

TEST_CASE("a fact is predicted by the method that it names, beside its null models") {
  const Outcome outcome = validate(facts(), {"--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  const rapidjson::Document result = parsed(outcome);
  REQUIRE(result["facts"].Size() == 3);
  const auto& size = result["facts"][0];
  CHECK(size["id"].GetString() == std::string("made_up.size"));
  CHECK(size["predicted"].GetDouble() == doctest::Approx(46.7028));
  CHECK(size["constants"].GetInt() == 0);
  const auto& kernel = result["facts"][1];
  CHECK(kernel["verdict"].GetString() == std::string("scored"));
  CHECK(kernel["nulls"].HasMember("roofline"));
  CHECK(kernel["constants"].GetInt() == 5);
  CHECK(kernel["fitted_on"][0].GetString() == std::string("open-2025-late"));
  const auto& chunk = result["facts"][2];
  CHECK(chunk["verdict"].GetString() == std::string("passed"));
  CHECK(chunk["constants"].GetInt() == 31);
  CHECK(chunk["nulls"]["copied_mean"]["error"].GetDouble() == doctest::Approx(0.1));
  CHECK(chunk["nulls"].HasMember("communication_free"));
  CHECK(chunk["nulls"].HasMember("everything_serial"));
}

TEST_CASE("a gate that fails exits 1 and says so, one that is no more than shown does not") {
  const Outcome failed = validate(replaced(facts(), "value: 46.7", "value: 46.8"));
  CHECK(failed.exit_code == 1);
  CHECK(failed.out.find("printed digits: FAILED") != std::string::npos);
  CHECK(failed.out.find("gates: 1 passed, 1 failed, 0 skipped") != std::string::npos);
  CHECK(validate(replaced(facts(), "gate: printed digits", "gate: exact")).exit_code == 1);
  CHECK(validate(replaced(facts(), "value: 640", "value: 64")).exit_code == 0);
  CHECK(validate(replaced(facts(), "about: a few facts", "about: a few\nmean_gate: 0.1 %")).exit_code == 1);
  CHECK(validate(replaced(facts(), "about: a few facts", "about: a few\nmean_gate: 50%")).exit_code == 0);
}

TEST_CASE("what constants were fitted to is shown and not scored") {
  const std::string with_status = "value: 64\n    status: fitted\n    fitted: this figure";
  const std::string content = replaced(facts(), "value: 640", with_status);
  CHECK(validate(content).out.find("kernel is no prediction, fitted: this figure") != std::string::npos);
  const Outcome scored = validate(replaced(facts(), "value: 640", "value: 64"), {"--format", "json"});
  CHECK(parsed(scored)["subjects"][0]["facts"].GetInt() == 3);
  CHECK(parsed(validate(content, {"--format", "json"}))["subjects"][0]["facts"].GetInt() == 2);
  const std::string alone =
      content.substr(0, content.find("  size:")) +
      content.substr(content.find("  kernel:"), content.find("  chunk:") - content.find("  kernel:"));
  CHECK(validate(alone).out.find("\nmade_up      0                                     fitted\n") != std::string::npos);
  check_facts_refused(replaced(facts(), "value: 128", "value: 128\n    status: fitted\n    fitted: it"), 24,
                      "facts.chunk.gate cannot be held");
}

TEST_CASE("every fact says whether those who made the constants fitted it, knew it, or did not") {
  const std::string blind = replaced(facts(), "value: 640", "value: 640\n    status: blind");
  const Outcome shown = validate(blind);
  CHECK(shown.out.find("  2 not fitted, 1 blind  ") != std::string::npos);
  const rapidjson::Document result = parsed(validate(blind, {"--format", "json"}));
  CHECK(result["facts"][0]["status"] == "not fitted");
  CHECK(result["facts"][1]["status"] == "blind");
  check_facts_refused(replaced(facts(), "  status: not fitted\n", ""), 9, "facts.size.status is missing");
  check_facts_refused(replaced(facts(), "status: not fitted", "status: blnd"), 7, "did you mean 'blind'?");
  check_facts_refused(replaced(facts(), "value: 640", "value: 640\n    status: fitted"), 16,
                      "facts.kernel.fitted is missing");
  check_facts_refused(replaced(facts(), "value: 640", "value: 640\n    fitted: it"), 18,
                      "facts.kernel.fitted belongs to the status fitted, not 'not fitted'");
}

TEST_CASE("of a whole step, a fact may ask for one rank of the pipeline, that it has") {
  const std::string step = "simulate: {scenario: " + step_scenario().string() + ", metric: weight_ms, rank: ";
  const auto asking = [&](const std::string& rank) {
    return "about: x\nfacts:\n  w: {value: 480, status: not fitted, quantity: q, unit: ms, setting: s, source: o,\n" +
           ("    how_read: r, " + step + rank + ", set: [level=phase]}}\n");
  };
  const auto predicted = [&](const std::string& rank) {
    return parsed(validate(asking(rank), {"--format", "json"}))["facts"][0]["predicted"].GetDouble();
  };
  CHECK(predicted("0") > 2 * predicted("7"));  // 15 slots of W, and 8
  check_facts_refused(asking("16"), 4, "rank must be from 0 to 15, not 16");
  check_facts_refused(replaced(asking("0"), "weight_ms", "step_ms"), 4, "unknown key 'facts.w.simulate.rank'");
  const std::string chunk = replaced(asking("0"), step_scenario().string(), chunk_scenario().string());
  check_facts_refused(replaced(chunk, "level=phase", "samples=1"), 4, "rank does not apply to this scenario");
}

TEST_CASE("a fact whose data is absent is skipped, and fails nothing") {
  const std::string left_out =
      "left_out: {fold: EP16, tables: [" + source("calib/data/deepep_published.csv").string() + "], data: [none.csv]}";
  const std::string content =
      replaced(facts(), "metric: us, ops: [gemm]}", "metric: us, ops: [dispatch], " + left_out + "}\n    gate: 1 %");
  const Outcome outcome = validate(content, {"--format", "json"});
  CHECK(outcome.exit_code == 0);
  const rapidjson::Document result = parsed(outcome);
  const auto& fact = result["facts"][1];
  CHECK(fact["verdict"].GetString() == std::string("skipped"));
  CHECK(fact["predicted"].IsNull());
  CHECK(fact["error"].IsNull());
  CHECK(std::string(fact["skipped"].GetString()).ends_with("none.csv is absent"));
  CHECK(result["gates"]["skipped"].GetInt() == 1);
}

TEST_CASE("bad facts are refused at their line") {
  const std::vector<TextChange> changes = {
      {"about: a few", "abuot: a few", 1, "unknown key 'abuot'; did you mean 'about'?"},
      {"about: a few facts\n", "about: a few\nmean_gate: 4\n", 2, "mean_gate must be a tolerance like 10 %, not '4'"},
      {"  unit: us\n", "  value: 1\n", 3, "unknown key 'common.value'"},
      {"  unit: us\n", "  untis: us\n", 3, "unknown key 'common.untis'"},
      {"    quantity: parameters\n", "", 10, "facts.size.quantity is missing"},
      {"value: 46.7", "value: much", 11, "facts.size.value must be a number, not 'much'"},
      {"value: 46.7", "value: 0", 11, "facts.size.value must be from 1e-30"},
      {"gate: printed digits", "gate: 10", 13,
       "must be a tolerance like 10 %, exact, printed digits or none, not '10'"},
      {"gate: printed digits", "gate: -1 %", 13, "must be a tolerance"},
      {"    model: {", "    modle: {", 14, "unknown key 'facts.size.modle'; did you mean 'facts.size.model'?"},
      {"metric: parameters", "metric: parametres", 14, "did you mean 'parameters'?"},
      {"mixtral-8x7b", "mixtral-8x8b", 14, "facts.size.model.model cannot be used: unknown model 'mixtral-8x8b'"},
      {"times: 1e-9", "seq_len: 4096", 14, "facts.size.model.seq_len applies to train_flops_per_token"},
      {"    model: {", "    simulate: {}\n    model: {", 15, "facts.size.model stands beside simulate"},
      {"    quantity: time of a GEMM\n", "    quantity: [a]\n", 16, "must be a single value"},
      {"hardware: h800", "hardware: h80", 18, "unknown hardware 'h80'; did you mean 'h800'?"},
      {"open-2025-late", "open-2025", 18, "facts.kernel.price.kernels cannot be used: unknown kernel set"},
      {"ops: [gemm]", "ops: [gem]", 18,
       "facts.kernel.price.ops cannot be used: unknown op 'gem'; did you mean 'gemm'?"},
      {"metric: us, ops: [gemm]", "metric: tflops, ops: [dispatch]", 18, "metric does not apply to these kernels"},
      {"ops: [gemm]", "ops: []", 18, "facts.kernel.price.ops must name at least one"},
      {"    price: {", "    prize: {", 18, "unknown key 'facts.kernel.prize'; did you mean 'facts.kernel.price'?"},
      {"copied_mean: 140.8", "copied_mean: x", 23, "facts.chunk.stated_nulls.copied_mean must be a number"},
      {"scenario.yaml", "scenarios.yaml", 25, "facts.chunk.simulate.scenario cannot be used: "},
      {"metric: step_ms", "metric: step_us", 26, "did you mean 'step_ms'?"},
      {"metric: step_ms", "metric: ttft_ms", 26, "facts.chunk.simulate.metric does not apply to this scenario"},
      {"metric: step_ms", "metric: step_ms\n      layers: [2]", 27, "unknown key 'facts.chunk.simulate.layers'"},
      {"metric: step_ms", "metric: layers_us\n      layers: [9]", 27, "layer 9 is not in both"},
      {"metric: step_ms", "metric: phase_us\n      phase: mlp\n      layer: 1", 27, "mlp is none of layer 1"},
      {"metric: step_ms", "metric: slowdown\n      kernels: {class: none}", 27, "selects none"},
      {"set: [samples=1]", "set: [layer=1]", 25, "unknown key 'layer'"}};
  for (const auto& [from, to, line, says] : changes) check_facts_refused(replaced(facts(), from, to), line, says);
}

TEST_CASE("facts that are none are refused, and one bad file refuses all") {
  const std::string begin = facts().substr(0, facts().find("facts:"));
  check_facts_refused(begin, 1, "facts is missing");
  check_facts_refused(begin + "facts: {}\n", 8, "facts must hold at least one");
  check_facts_refused(begin + "facts: {size: 1}\n", 8, "facts.size must be a mapping");
  check_refused({"validate", "no/such.yaml"}, "no/such.yaml: ", "no such file");
  const TemporaryFolder folder;
  check_refused({"validate", folder.write("good.yaml", facts()), folder.write("bad.yaml", "about: x\n")}, "",
                "bad.yaml");
  CHECK(run_moeline({"validate", "--format", "csv"}).exit_code == 2);
}

TEST_CASE("a fold that a table does not have is refused with those there are") {
  const std::filesystem::path normal = data_folder() / "deepep/deepep_v1_h100_normal.csv";
  if (!present(normal)) return;
  const std::string left_out = "left_out: {fold: EP17, tables: [], data: [deepep/deepep_v1_h100_normal.csv]}";
  const std::string content = replaced(facts(), "ops: [gemm]", "ops: [dispatch], " + left_out);
  check_facts_refused(content, 18,
                      "facts.kernel.price.left_out.fold cannot be used: unknown fold 'EP17'; did you mean");
}

TEST_CASE(
    "a whole table of others is predicted part by part, skipped without it, and refused where it has no such rows") {
  const std::string content =
      "about: x\nfacts:\n  all:\n    {value: 1, status: not fitted, quantity: q, unit: x, setting: s, source: o, "
      "how_read: r, gate: 6 %,\n"
      "     cross_validate: {hardware: h100, kernels: open-2025-late, families: [sm_copies], kernel: dispatch,\n"
      "       left_out: SMs, data: [deepep/deepep_v1_h100_normal.csv]}}\n";
  check_facts_refused(replaced(content, "left_out: SMs", "left_out: ranks"), 6,
                      "left_out has an unknown value 'ranks'; there is: EP, SMs, tokens");
  check_facts_refused(replaced(content, "[deepep/deepep_v1_h100_normal.csv]", "[]"), 6,
                      "data cannot be used: there is no table to fit constants to");
  const TemporaryFolder folder;
  const Outcome absent =
      run_moeline({"validate", folder.write("absent.yaml", replaced(content, "h100_normal", "h100_none"))});
  CHECK(absent.exit_code == 0);
  CHECK(absent.out.find("h100_none.csv is absent") != std::string::npos);
  if (!present(data_folder() / "deepep/deepep_v1_h100_normal.csv")) return;
  const Outcome scored = run_moeline({"validate", folder.write("scored.yaml", content)});
  CHECK(scored.exit_code == 0);
  CHECK(scored.out.find("110 rows, worst error") == std::string::npos);  // that of sm_copies alone
  CHECK(scored.out.find("rows, worst error") != std::string::npos);
  CHECK(scored.out.find("each row by a fit without its own: SMs") != std::string::npos);
  check_facts_refused(replaced(content, "kernel: dispatch", "kernel: gemm"), 5,
                      "kernel has no row in these families that was left out of a fit");
}

TEST_CASE("a fact whose scenario leaves the schedule open is predicted by the best, nulls included") {
  const auto chunk = [](const std::string& content) {
    const rapidjson::Document result = parsed(validate(content, {"--format", "json"}));
    const rapidjson::Value& fact = result["facts"][2];
    REQUIRE(std::string(fact["id"].GetString()).ends_with("chunk"));
    return std::pair(fact["predicted"].GetDouble(), fact["nulls"]["everything_serial"]["predicted"].GetDouble());
  };
  CHECK(chunk(replaced(facts(), "[samples=1]", "[samples=1, schedule=auto]")) == chunk(facts()));
}

}  // TEST_SUITE("validate/validate")
