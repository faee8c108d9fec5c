// Figures of accuracy in prose are the output of the program: of validate on the page of accuracy and in the README, of
// analyze on the page of measured traces.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "experiments/cli/output/validate_output.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/validate/baseline.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/json.hpp"
#include "tests/support/markdown.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("cli/accuracy") {

using namespace moeline;
using namespace moeline::testing;

namespace {

bool have_all_facts() {
  return present(data_folder() / "deepep/deepep_v1_h100_normal.csv") && present(data_folder() / "kernels_h800") &&
         present(training_trace());
}

void check_tables(const char* page, const std::string& printed, const std::vector<const char*>& parts) {
  const std::string text = content_of(source(page));
  for (const char* part : parts) {
    const std::string block = indented_block_with(part, printed);
    CHECK_MESSAGE(text.find(block) != std::string::npos, std::string(page) << " does not hold\n" << block);
  }
}

/// An element of a list of objects, by the value of one of their keys.
const rapidjson::Value& named(const rapidjson::Value& list, const char* key, const std::string& value) {
  for (const auto& each : list.GetArray()) {
    if (each[key].GetString() == value) return each;
  }
  FAIL("no " << key << " " << value);
  return list;
}

std::string shown_row(int facts, double mean_abs_error, double worst_error) {
  return fmt::format("| {} | {:.1f} % | {:+.1f} % |", facts, 100 * mean_abs_error, 100 * worst_error);
}

/// What the contract says of the JSON, and what a gate is.
void check_gates(const rapidjson::Document& result) {
  std::set<std::string> ids;
  int gates = 0;
  for (const auto& fact : result["facts"].GetArray()) {
    const std::string id = fact["id"].GetString();
    CAPTURE(id);
    CHECK(ids.insert(id).second);
    for (const char* key : {"predicted", "measured", "unit", "error", "gate", "nulls", "setting", "source", "how_read",
                            "constants", "fitted_on", "verdict", "status"}) {
      CHECK_MESSAGE(fact.HasMember(key), key);
    }
    CHECK((fact["status"] == "fitted") == (fact["verdict"] == "fitted"));
    gates += fact["gate"].GetBool() ? 1 : 0;
    CHECK(fact["measured"].GetDouble() > 0);
    if (fact["predicted"].IsNull()) continue;
    const double error = fact["predicted"].GetDouble() / fact["measured"].GetDouble() - 1;
    CHECK(fact["error"].GetDouble() == doctest::Approx(error).epsilon(1e-3));
    if (fact["gate"].GetBool()) CHECK(std::abs(error) <= fact["tolerance"].GetDouble() + 1e-6);
  }
  CHECK(gates >= 30);
  CHECK(result["gates"]["failed"].GetInt() == 0);
  CHECK(result["subjects"].Size() > 10);
}

// `moeline validate --write-baseline tests/published/accuracy.json` writes what is meant, with the commit that made it.
void check_baseline(const Validation& validation) {
  const Baseline baseline = read_baseline(source("tests/published/accuracy.json"));
  for (const ChangedError& each : difference(baseline.versions.back().errors, errors_of(validation)).worse) {
    FAIL_CHECK(each.id, " is 2 points worse or more: ", each.now, ", and was ", each.was);
  }
}

void check_figures_of_readme(const rapidjson::Document& result) {
  const std::string readme = content_of(source("README.md"));
  const auto holds = [&](const std::string& row) {
    CHECK_MESSAGE(readme.find(row) != std::string::npos, "the README does not hold: " << row);
  };
  const std::vector<std::pair<const char*, const char*>> facts = {
      {"decode throughput, 128 H800", "inference_throughput.decode"},
      {"prefill throughput, 32 H800", "inference_throughput.prefill"},
      {"training, two layers of a chunk, 64 H800", "training_chunk.layers_2_and_3"},
      {"training, a whole step, 2048 H800", "training_step.step"},
      {"exposed communication in the chunk", "exposed_communication.training_chunk"}};
  for (const auto& [label, id] : facts) {
    const rapidjson::Value& fact = named(result["facts"], "id", id);
    const double error = fact["error"].GetDouble();
    CHECK(fact["status"].GetString() == std::string("not fitted"));
    holds(fmt::format("| {} {}", label, shown_row(1, std::abs(error), error)));
  }
  const std::vector<std::pair<const char*, const char*>> subjects = {
      {"parts of that step, and the step", "training_step"},
      {"steps by Megatron", "training_by_megatron"},
      {"small kernels in traces", "small_kernels"},
      {"waits for other ranks in the chunk", "training_chunk_waits"},
      {"the same on rented clusters", "training_on_rented_clusters"},
      {"NCCL between nodes, 15 logs", "nccl_between_nodes"},
      {"FP8 GEMMs, H20: no constant was fitted there", "gemm_h20"}};
  double worst = 0;
  for (const auto& [label, name] : subjects) {
    const rapidjson::Value& subject = named(result["subjects"], "subject", name);
    const double error = subject["worst_error"].GetDouble();
    holds(fmt::format("| {} {}", label,
                      shown_row(subject["facts"].GetInt(), subject["mean_abs_error"].GetDouble(), error)));
    worst = std::max(worst, std::abs(error));
  }
  for (const auto& fact : result["facts"].GetArray()) {
    CAPTURE(fact["id"].GetString());
    CHECK(std::abs(fact["error"].GetDouble()) <= worst);
  }
  CHECK(std::abs(named(result["subjects"], "subject", "small_kernels")["worst_error"].GetDouble()) == worst);
}

}  // namespace

// Once for all that asks of it: to predict every fact takes half a minute, under sanitizers many.
TEST_CASE("all gates of the facts that we ship pass, and the pages and the README show what validate prints" *
          doctest::skip(kSanitized)) {
  const Validation validation = validate(all_fact_files());
  const rapidjson::Document result = parsed(to_json(validation));
  check_gates(result);
  check_baseline(validation);
  if (!have_all_facts()) return;
  check_tables("tests/published/README.md", to_table(validation),
               {"\ninference_throughput: ", "of the best null", "kernels left out of the fit in turn"});
  check_figures_of_readme(result);
}

TEST_CASE("the tables on the page of measured traces are what analyze prints") {
  if (!present(training_trace())) return;
  const Outcome outcome = run_moeline({"analyze", training_trace().string(), "--scenario", chunk_scenario().string()});
  REQUIRE(outcome.exit_code == 0);
  check_tables("model/measured/README.md", outcome.out, {"as HTA counts", "length us"});
}

TEST_CASE("the shares of extrapolated prices on the page of accuracy are those of the two inference facts") {
  const double prefill = extrapolated_share(run_prefill());
  const double decode = extrapolated_share(run_decode({"workload.query_len=2", "workload.mtp_acceptance=0.6"}));
  const std::string shares = fmt::format("(prefill {:.0f} %, decode {:.0f} %)", 100 * prefill, 100 * decode);
  CHECK_MESSAGE(content_of(source("tests/published/README.md")).find(shares) != std::string::npos,
                "the page does not hold " << shares);
}

}  // TEST_SUITE("cli/accuracy")
