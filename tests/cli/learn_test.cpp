// moeline learn and the same alignment in compare and analyze, as their user meets them.
#include "tests/support/json.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("cli/learn") {

using namespace moeline::testing;

namespace {

// Of a server that names its step: two layers of a dense model, each launched kernel by kernel.
std::string served_step() {
  SmallTrace trace;
  int at = 0;
  const auto add = [&](const char* name, int us) {
    trace.on_gpu("kernel", name, 7, at, at + us);
    at += us;
  };
  add("indexSelectSmallIndex", 5);
  for (int layer = 0; layer < 8; ++layer) {
    add("fused_add_rmsnorm_kernel", 3);
    add("nvjet_sm90_64x64", 20);
    add("fused_rope_store_kernel", 3);
    add("flash_fwd_splitkv_kernel", 15);
    add("nvjet_sm90_64x32", 15);
    add("fused_add_rmsnorm_kernel", 3);
    add("nvjet_sm90_128x64", 40);
    add("act_and_mul_kernel", 4);
    add("nvjet_sm90_128x32", 30);
  }
  add("fused_add_rmsnorm_kernel", 3);
  add("nvjet_sm90_256x64", 50);
  return replaced(trace.text(), "NVIDIA H800", "NVIDIA X1");  // a machine that nobody knows
}

constexpr const char* kModel =
    R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 16,
 "num_key_value_heads": 4, "intermediate_size": 8192, "vocab_size": 32000, "torch_dtype": "bfloat16"})";

struct Inputs {
  TemporaryFolder folder;
  std::string trace = folder.write("t.json", served_step());
  std::string model = folder.write("config.json", kModel);
  std::string out = folder.path() / "out";

  [[nodiscard]] Arguments with(const Arguments& more) const {
    Arguments call = {"learn", trace, "-o", out};
    call.insert(call.end(), more.begin(), more.end());
    return call;
  }
};

}  // namespace

TEST_CASE("what a trace does not tell is asked for by its option") {
  const Inputs inputs;
  check_refused(inputs.with({"--model", inputs.model}), inputs.trace + ": ", "--hardware names the machine");
  check_refused(inputs.with({"--hardware", "h100"}), inputs.trace + ": ", "--model: nothing in it names the model");
  CHECK_FALSE(std::filesystem::exists(inputs.out));
}

TEST_CASE("a guess is marked as one, with what another value would change; a given value is taken") {
  const Inputs inputs;
  const auto report =
      in_json(inputs.with({"--model", inputs.model, "--hardware", "h100", "--set", "workload.batch_size=8"}));
  CHECK(report["assigned"].GetDouble() == doctest::Approx(1));
  for (const auto& setting : report["settings"].GetArray()) {
    const std::string key = setting["key"].GetString(), how = setting["how"].GetString();
    CAPTURE(key);
    if (key == "workload.batch_size") CHECK(how == "given");
    if (key != "workload.kv_len") continue;
    CHECK(how == "guessed");
    CHECK(std::string(setting["tried"].GetString()) == "2048");
    CHECK(setting["change"].GetDouble() > 0);
  }
}

TEST_CASE("a setting that makes no sense is refused by its key, and nothing is written") {
  const Inputs inputs;
  const Arguments known = {"--model", inputs.model, "--hardware", "h100"};
  const auto refused = [&](const char* assignment, const char* says) {
    Arguments more = known;
    more.insert(more.end(), {"--set", assignment});
    check_refused(inputs.with(more), "", says);
  };
  refused("workload.batch_sise=8", "workload.batch_sise");
  refused("workload.batch_size=-1", "workload.batch_size must");
  refused("batch", "write key=value");
  CHECK_FALSE(std::filesystem::exists(inputs.out));
}

TEST_CASE("a damaged trace is refused, and nothing is written") {
  const Inputs inputs;
  const std::string damaged = inputs.folder.write("damaged.json", served_step().substr(0, 2000));
  check_refused({"learn", damaged, "-o", inputs.out}, damaged + ": ", "truncated");
  CHECK_FALSE(std::filesystem::exists(inputs.out));
}

TEST_CASE("a trace of another model has too few operators, which the exit code says") {
  const Inputs inputs;
  std::string text = SmallTrace()
                         .on_gpu("kernel", "nvjet_a", 7, 0, 10)
                         .on_gpu("kernel", "ncclDevKernel_AllGather_RING_LL", 7, 10, 100)
                         .text();
  const std::string other = inputs.folder.write("other.json", text);
  const Outcome outcome = run_moeline(
      {"learn", other, "--model", inputs.model, "--hardware", "h100", "-o", inputs.out, "--set", "parallelism.tp=1"});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("has an operator, less than 90 %") != std::string::npos);
}

TEST_CASE("compare holds a scenario against a step that has none of its phases, operator by operator") {
  const Inputs inputs;
  const std::string scenario =
      inputs.folder.write("s.yaml",
                          "schema: 1\nmodel: config.json\nhardware: h100\nschedule: sequential\nparallelism: {tp: 1}\n"
                          "workload: {phase: decode, batch_size: 16, kv_len: 1024}\n");
  const auto report = in_json({"compare", scenario, inputs.trace});
  double measured = 0;
  for (const auto& op : report["operators"].GetArray()) {
    measured += op["measured_us"].GetDouble();
    if (op.HasMember("error")) {
      CHECK(op["error"].GetDouble() ==
            doctest::Approx(op["predicted_us"].GetDouble() / op["measured_us"].GetDouble() - 1).epsilon(1e-2));
    }
  }
  CHECK(measured == doctest::Approx(report["measured_us"].GetDouble()));
  const Outcome strict = run_moeline({"compare", scenario, inputs.trace, "--fail-above", "1%"});
  CHECK(strict.exit_code == 1);
  check_wrong_usage({"compare", scenario, inputs.trace, "--layers", "2"}, "--layers: is of phases");
  CHECK(run_moeline({"compare", scenario, inputs.trace, "--format", "csv"}).out.starts_with("operator,class,"));
  const auto analysis = in_json({"analyze", inputs.trace, "--scenario", scenario});
  bool has_rate = false;
  for (const auto& each : analysis["ranks"][0]["classes"].GetArray()) has_rate = has_rate || each.HasMember("tflops");
  CHECK(has_rate);
}

}  // TEST_SUITE("cli/learn")
