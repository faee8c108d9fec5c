// The files that a scenario names, its profile and model, are refused at their own lines.
#include "tests/support/cli.hpp"
#include "tests/support/inference_scenarios.hpp"

TEST_SUITE("cli/bad_named_files") {

using namespace moeline::testing;

namespace {

// Every line that begins with these words is left out.
std::string without(const std::string& text, const std::string& words) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos || line.compare(at, words.size(), words) != 0) rest += line + "\n";
  }
  return rest;
}

}  // namespace

TEST_CASE("a hardware profile is refused at its own line") {
  check_changes_of_named(
      kScenario, "hardware", installed("hwprofiles/h800.yaml"),
      {
          {"name: h800", "name: h800\nvendor: x", 2, "unknown key 'vendor'; there is: name, extends, facts, kernel_sets"},
          {"name: h800", "", 4, "name is missing"},
          {"  sms:", "  SMs:", 5, "unknown key 'facts.SMs'; did you mean 'facts.sms'?"},
          {"  bf16_tflops: {value: 989.5,", "  bf16_tflops: {", 8, "facts.bf16_tflops.value is missing"},
          {"value: 132", "value: 0", 5, "facts.sms.value must be from 1 to 4096, not 0"},
          {"value: 132", "value: 132.5", 5, "facts.sms.value must be a whole number"},
          {"value: 1979", "value: -1979", 7, "facts.fp8_tflops.value must be from 0"},
          {"value: 1979", "value: .inf", 7, "facts.fp8_tflops.value must be a number, not '.inf'"},
          {"value: 3350", "valeu: 3350", 9, "unknown key 'facts.hbm_GBps.valeu'; did you mean 'facts.hbm_GBps.value'?"},
          {"value: 3350", "value: fast", 9, "facts.hbm_GBps.value must be a number, not 'fast'"},
          {"value: 8, source: \"HGX H800\"", "value: 8", 12, "facts.gpus_per_node.source is missing"},
          {"value: 8, source: \"HGX H800\"", "value: 8, source: {}", 12,
           "source must be a single value, not a mapping"},
      });
}

TEST_CASE("a kernel set or profile that is not there is named") {
  check_changes_of(kDecode,
                   {{"deepseek-2025-02", "deepseek-2025-20", 4, "did you mean 'deepseek-2025-02'?"},
                    {"deepseek-2025-02", "late", 4, "there is: deepseek-2025-02, open-2025-05, open-2025-late"},
                    {"h800", "h80", 3, "names an unknown hardware 'h80'; did you mean 'h800'?"}});
  const std::string profile = installed("hwprofiles/h800.yaml");
  const std::string name = "name: h800\n";
  const auto carried = [&](const std::string& from, const std::string& says) {
    check_named_refused(kDecode, "hardware", replaced(profile, name, name + "carried_over_from: " + from + "\n"), 2,
                        says);
  };
  carried("h80", "carried_over_from names an unknown hardware 'h80'; did you mean 'h800'?");
  carried("./none.yaml", "carried_over_from names an unknown hardware './none.yaml': no such file");
  carried("[h800]", "carried_over_from must be a single value, not a list");
  carried("", "carried_over_from must be a single value, not nothing");
}

TEST_CASE("a part of a group of constants is refused, a whole group absent is said") {
  const std::string profile = installed("hwprofiles/h800.yaml");
  const TemporaryFolder folder;
  const std::string partial = folder.write("partial.yaml", without(profile, "low_latency.startup_us"));
  check_refused({"price", partial, "gemm"}, partial + ":", "constants.low_latency.startup_us is missing");
  const Outcome outcome =
      simulate_text(kDecode, {"--set", "hardware=" + folder.write("less.yaml", without(profile, "launch."))});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("launch: not in the kernel set") != std::string::npos);
}

TEST_CASE("profiles that carry over from each other are refused") {
  const TemporaryFolder folder;
  const std::string profile = installed("hwprofiles/h800.yaml");
  const auto carrying = [&](const std::string& name, const std::string& from) {
    return folder.write(name, replaced(profile, "name: h800\n", "name: h800\ncarried_over_from: " + from + "\n"));
  };
  const std::string self = carrying("self.yaml", "self.yaml");
  check_refused({"price", self, "gemm"}, self + ":2: ", "carried_over_from 'self.yaml' carries over from here");
  const std::string second = carrying("second.yaml", "first.yaml");
  const std::string first = carrying("first.yaml", "second.yaml");
  check_refused({"price", first, "gemm"}, second + ":2: ", "carried_over_from 'first.yaml' carries over from here");
}

TEST_CASE("a kernel set is refused by the path of its key") {
  const ValidScenario valid;
  const std::string text = installed("hwprofiles/h800.yaml");
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string profile = valid.folder.write("profile.yaml", replaced(text, from, to));
    check_refused(valid.with({"--set", "hardware=" + profile}), profile + ":", says);
  };
  refused(
      "small.us:", "smal.us:", ".constants.smal.us'; did you mean 'kernel_sets.deepseek-2025-02.constants.small.us'?");
  refused("small.us:", "small.us: x", ".constants.small.us must be a");
  refused("    constants:", "    constant:", "unknown key 'kernel_sets.deepseek-2025-02.constant'; did you mean");
  refused("tiles: narrow", "tiles: narow",
          "kernel_sets.deepseek-2025-02.tiles has an unknown value 'narow'; did you mean");
  refused("    tiles: narrow", "", "kernel_sets.deepseek-2025-02.tiles is missing");
  refused("{kernels: 2,", "{kernels: 0,", "kernels must be from 1 to");
  refused("mean_error", "main_error", "did you mean 'kernel_sets.deepseek-2025-02.fits.all_to_all_alone.mean_error'?");
  const std::size_t at = text.find("      gemm_fp8.startup_us:");
  REQUIRE(at != std::string::npos);
  refused(text.substr(at, text.find('\n', at) + 1 - at), "", ".constants.gemm_fp8.startup_us is missing");

  const std::string bare = valid.folder.write("bare.yaml", text.substr(0, text.find("\n#")));
  CHECK(run_moeline(valid.with({"--set", "hardware=" + bare})).exit_code == 3);
  const std::string facts_only = valid.folder.write("facts.yaml", text.substr(0, text.find("kernel_sets:")));
  check_refused(valid.with({"--set", "hardware=" + facts_only}), "--set: hardware ", "has no kernel set; `moeline hardware derive` gives it");
}

TEST_CASE("a measured range is refused at its own line") {
  const std::string profile = installed("hwprofiles/h800.yaml");
  const std::size_t at = profile.find("      gemm_fp8: {");
  REQUIRE(at != std::string::npos);
  const auto line =
      static_cast<int>(std::count(profile.begin(), profile.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
  const std::string fit = profile.substr(at, profile.find('\n', at) - at);
  const auto changed = [&](const std::string& from, const std::string& to) { return replaced(fit, from, to); };
  const auto refused = [&](const std::string& to, const char* says) {
    check_changes_of_named(kScenario, "hardware", profile, {{fit.c_str(), to.c_str(), line, says}});
  };
  const std::string key = "kernel_sets.deepseek-2025-02.fits.gemm_fp8.range";
  refused(changed("m: [64, 4096]", "m: [4096, 64]"), (key + ".m must be [LEAST, MOST]: 4096 is above 64").c_str());
  refused(changed("m: [64, 4096]", "m: [64]"), (key + ".m must be [LEAST, MOST]").c_str());
  refused(changed("m: [64, 4096]", "m: 64"), (key + ".m must be a list of numbers").c_str());
  refused(changed("m: [64, 4096]", "m: [64, many]"), (key + ".m must list numbers from 0 to 1e+30; it has").c_str());
  refused(changed("m: [64, 4096]", "m: [-64, 64]"), (key + ".m must list numbers from 0").c_str());
  refused(changed("m: [64, 4096]", "flops: [64, 4096]"), "there is: m, n, k, groups");
  refused(changed("sms: [112", "smss: [112"), ("did you mean '" + key + ".sms'?").c_str());
  refused(changed("range: {", "rang: {"), "did you mean 'kernel_sets.deepseek-2025-02.fits.gemm_fp8.range'?");
}

TEST_CASE("a model is refused at its own line") {
  check_changes_of_named(
      kScenario, "model", installed("model/zoo/deepseek-v3.yaml"),
      {
          {"deepseek_v3", "deepseek_v9", 2, "not modelled: unknown model_type 'deepseek_v9'; did you mean"},
          {"num_hidden_layers: 61", "num_hidden_layers: 0", 3, "num_hidden_layers must be from 1 to 10000, not 0"},
          {"hidden_size: 7168", "hidden_sizes: 7168", 4, "unknown key 'hidden_sizes'; did you mean 'hidden_size'?"},
          {"hidden_size: 7168", "hidden_size: -7168", 4, "hidden_size must be from 1"},
          {"n_routed_experts: 256", "n_routed_experts: 65536", 7, "n_routed_experts must be from 2 to 4096"},
          {"num_experts_per_tok: 8", "num_experts_per_tok: 65", 9, "num_experts_per_tok must be from 1 to 64, not 65"},
          {"n_group: 8", "n_group: 256", 9, "num_experts_per_tok exceeds the experts of"},
          {"first_k_dense_replace: 3", "first_k_dense_replace: 61", 10, "first_k_dense_replace must be from 0 to 60"},
          {"n_group: 8", "n_group: 7", 11, "n_group must divide n_routed_experts"},
          {"topk_group: 4", "topk_group: 9", 12, "topk_group must be from 1 to 8, not 9"},
          {"vocab_size: 129280\n", "", 2, "vocab_size is missing"},
          {"vocab_size: 129280", "vocab_size: many", 19, "vocab_size must be a whole number, not 'many'"},
      });
}

}  // TEST_SUITE("cli/bad_named_files")
