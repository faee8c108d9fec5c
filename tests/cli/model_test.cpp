// moeline model: its result on stdout, and bad descriptions refused before anything is printed.
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"

TEST_SUITE("cli/model") {

using namespace moeline::testing;

namespace {

const std::string kConfig =
    "{\n"                                                                              // 1
    "  \"model_type\": \"mixtral\", \"torch_dtype\": \"bfloat16\",\n"                  // 2
    "  \"hidden_size\": 4096, \"intermediate_size\": 14336,\n"                         // 3
    "  \"num_hidden_layers\": 32, \"num_attention_heads\": 32,\n"                      // 4
    "  \"num_key_value_heads\": 8, \"num_local_experts\": 8,\n"                        // 5
    "  \"num_experts_per_tok\": 2, \"sliding_window\": null, \"vocab_size\": 32000\n"  // 6
    "}\n";

}  // namespace

TEST_CASE("moeline model prints one object with the keys of the contract") {
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", kConfig);
  const Outcome outcome = run_moeline({"model", file, "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document result;
  result.Parse(outcome.out.c_str());
  REQUIRE_FALSE(result.HasParseError());
  CHECK(result["parameters"].GetInt64() == 46'702'792'704);
  CHECK(result["active_parameters"].GetInt64() == 46'702'792'704 - 32 * 6 * 176'160'768LL - 32'000 * 4096);
  CHECK(result["schema_version"].GetInt() == 1);
  CHECK(result["weights_gb"].GetDouble() == doctest::Approx(2 * 46.702792704));
  CHECK(result["kv_bytes_per_token"].GetInt64() == 131'072);
  CHECK(result["train_flops_per_token"].GetDouble() == doctest::Approx(79.7e9).epsilon(0.001));
  std::int64_t sum = 0;
  double forward = 0;
  for (const auto& module : result["modules"].GetArray()) {
    CHECK(module["module"].GetStringLength() > 0);
    CHECK(module["count"].GetInt64() > 0);
    sum += module["parameters"].GetInt64();
    forward += module["flops"].GetDouble();
    CHECK(2 * module["macs"].GetDouble() == doctest::Approx(module["flops"].GetDouble()));
  }
  CHECK(3 * forward == doctest::Approx(result["train_flops_per_token"].GetDouble()).epsilon(1e-9));
  CHECK(sum == result["parameters"].GetInt64());
  CHECK_FALSE(result.HasMember("mtp_parameters"));
  CHECK(run_moeline({"model", folder.path(), "--format", "json"}).out.find("46702792704") != std::string::npos);
}

TEST_CASE("moeline model prints a table of modules by default") {
  const Outcome outcome = run_moeline({"model", "deepseek-v3"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* part : {"671.026", "routed experts", "MTP, apart", "70.272 KB per token", "250.5 GFLOP"}) {
    CHECK_MESSAGE(outcome.out.find(part) != std::string::npos, "lacks " << part);
  }
}

TEST_CASE("a longer sequence costs more per token") {
  CHECK(run_moeline({"model", "deepseek-v3", "--seq-len", "32768"}).out.find("tokens") == std::string::npos);
  CHECK(run_moeline({"model", "deepseek-v3", "--seq-len", "32768"}).out.find("in sequences of 32768") !=
        std::string::npos);
  CHECK(run_moeline({"model", "deepseek-v3", "--seq-len", "0"}).exit_code == 2);
}

TEST_CASE("a bad config.json is refused at its line, with what was looked for") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, int line, const std::string& says) {
    const std::string file = folder.write("config.json", replaced(kConfig, from, to));
    check_refused({"model", file}, file + ":" + std::to_string(line) + ": ", says);
  };
  refused("\"num_local_experts\"", "\"number_of_experts\"", 5,
          "not modelled: what an unknown key asks for (number_of_experts)");
  refused("\"num_local_experts\": 8,", "", 1, "n_routed_experts (or num_experts, num_local_experts");
  refused("\"hidden_size\": 4096, \"intermediate_size\": 14336,", "", 1, "hidden_size, intermediate_size are missing");
  refused("4096", "-4096", 3, "hidden_size must be from 1 to 4194304, not -4096");
  refused("4096", "[4096]", 3, "hidden_size must be a single value, not a list");
  refused("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9", 6, "num_experts_per_tok must be from 1 to 8");
  refused("\"vocab_size\": 32000\n}", "\"vocab_size\": 32000\n", 8, "not valid YAML");
  const std::string empty = folder.write("empty.json", "");
  check_refused({"model", empty}, empty + ": ", "is empty");
  check_refused({"model", folder / "absent.json"}, "unknown model", "no such file");
  check_refused({"model", "deepseek-v33"}, "unknown model 'deepseek-v33'", "did you mean 'deepseek-v3'?");
}

}  // TEST_SUITE("cli/model")
