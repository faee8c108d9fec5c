// analyze, replay and compare on traces of servers: steps are steps, layers are found in them, and windows hold what
// they say.
#include <doctest/doctest.h>

#include "tests/support/data.hpp"
#include "tests/support/json.hpp"
#include "tests/support/server_trace.hpp"

TEST_SUITE("cli/trace_steps") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Traces {
  TemporaryFolder folder;
  std::string sglang =
      folder.write("sglang.json", server_trace({.steps = {"step[EXTEND bs=1 toks=888]", "step[DECODE bs=32]",
                                                          "step[DECODE bs=32]", "step[DECODE bs=32]"},
                                                .lead_us = 1000}));
  std::string slower =
      folder.write("slower.json", server_trace({.steps = {"step[DECODE bs=32]", "step[DECODE bs=32]"}, .pace = 1.25}));
  std::string vllm = folder.write("vllm.json", server_trace({.steps = {"execute_context_1(888)_generation_0(0)"}}));
  std::string phases = folder.write(
      "phases.json", trace_of(gpu_range("attn", "0", "50") + "," + kernel("0", "40") + "," + kernel("41", "9", 2)));
};

const Traces& traces() {
  static const Traces files;
  return files;
}

}  // namespace

TEST_CASE("analyze lists a server's steps, and 36 layers in each instead of one of its length") {
  const auto json = in_json({"analyze", traces().sglang});
  const auto& rank = json["ranks"][0];
  REQUIRE(rank["steps"].Size() == 4);
  CHECK(std::string(rank["steps"][0]["name"].GetString()) == "step[EXTEND bs=1 toks=888]");
  CHECK(std::string(rank["steps"][3]["kind"].GetString()) == "DECODE bs=32");
  CHECK(rank["steps"][3]["layers"].GetInt() == 36);
  CHECK(rank["layers"].Size() == 4 * 36);
  CHECK(rank["layers"][36]["layer"].GetInt() == 0);
  CHECK(rank["layers"][36]["step"].GetInt() == 1);
  CHECK(rank["layers_by_repetition"].GetBool());
  CHECK(json["phases"].Size() == 0);
  const std::string table = run_moeline({"analyze", traces().sglang}).out;
  CHECK(table.find("0 of them in phases, 4 steps") != std::string::npos);
  CHECK(table.find(", the median of 3 DECODE bs=32, found by repetition:\n") != std::string::npos);
}

TEST_CASE("the times of a step and those between steps are those of the events in it") {
  const auto json = in_json({"analyze", traces().sglang});
  const auto& rank = json["ranks"][0];
  double inside = 0;
  for (const auto& step : rank["steps"].GetArray()) {
    CHECK(step["compute_us"].GetDouble() + step["non_compute_us"].GetDouble() + step["idle_us"].GetDouble() ==
          doctest::Approx(step["span_us"].GetDouble()));
    inside += step["compute_us"].GetDouble();
  }
  const double sampling = 4 * 18.2;  // between the steps
  CHECK(inside + sampling == doctest::Approx(rank["compute_us"].GetDouble()).epsilon(0.002));
}

TEST_CASE("two runs of one server are compared by their kinds of steps, layer by layer") {
  const auto json = in_json({"compare", traces().sglang, traces().slower});
  REQUIRE(json["steps"].Size() == 1);
  CHECK(std::string(json["steps"][0]["kind"].GetString()) == "DECODE bs=32");
  CHECK(json["steps"][0]["a_count"].GetInt() == 3);
  CHECK(json["steps"][0]["b_count"].GetInt() == 2);
  CHECK(std::string(json["steps_only_in_a"][0].GetString()) == "EXTEND bs=1 toks=888");
  CHECK(json["phases"].Size() == 1 + 36 + 1);  // start, layers, end
  CHECK(json["mean_abs_error"].GetDouble() == doctest::Approx(1 - 1 / 1.25).epsilon(0.1));
  CHECK(json["phases"][0]["layer"].GetInt() == 0);
  const std::string table = run_moeline({"compare", traces().sglang, traces().slower}).out;
  CHECK(table.find("\nonly in a: EXTEND bs=1 toks=888\n") != std::string::npos);
  CHECK(table.find("\n    36 DECODE bs=32 ") != std::string::npos);
}

TEST_CASE("the profiler's steps of two runs are compared where nobody names phases, and else the phases") {
  const auto in_step = [](const std::string& annotation) {
    return server_trace({.steps = steps_named(annotation, 3), .layers = 8, .on_gpu = false, .profiler = true});
  };
  const TemporaryFolder folder;
  const std::string bare = folder.write("bare.json", in_step("nccl:x"));
  CHECK(std::string(in_json({"compare", bare, bare})["steps"][0]["kind"].GetString()) == "ProfilerStep");
  const std::string with_phase = R"({"traceEvents": [)" + range("ProfilerStep#1", "0", "100") + "," +
                                 range("attn", "10", "20") + "," + launch("15", 1) + "," + launch("50", 2) + "," +
                                 launch("60", 3) + "," + kernel("200", "5", 1) + "," + kernel("210", "5", 2) + "," +
                                 kernel("220", "5", 3) + "]}";
  const std::string annotated = folder.write("annotated.json", with_phase);
  const auto json = in_json({"compare", annotated, annotated});
  CHECK_FALSE(json.HasMember("steps"));
  CHECK(std::string(json["phases"][0]["phase"].GetString()) == "attn");
}

TEST_CASE("a trace of steps compared with itself differs by nothing") {
  const auto json = in_json({"compare", traces().sglang, traces().sglang});
  CHECK(json["worst_abs_error"].GetDouble() == 0);
  CHECK(json["span_error"].GetDouble() == 0);
}

TEST_CASE("where no kind of step, or no phase, is on both sides, the refusal names what each side has") {
  check_refused({"compare", traces().sglang, traces().vllm}, "the two sides have no kind of step in common: ",
                "a has DECODE bs=32, EXTEND bs=1 toks=888; b has context_1(888)_generation_0(0)");
  check_refused({"compare", traces().phases, traces().vllm},
                "the two sides have no phase in common: ", "a has attn; b has context_1(888)_generation_0(0)");
}

TEST_CASE("--steps holds the steps it names, in analyze, replay and compare") {
  const auto analyzed = in_json({"analyze", traces().sglang, "--steps", "1-2"});
  const auto& steps = analyzed["ranks"][0]["steps"];
  REQUIRE(steps.Size() == 2);
  CHECK(steps[0]["step"].GetInt() == 1);
  const double span = analyzed["ranks"][0]["span_us"].GetDouble();
  CHECK(span == doctest::Approx(steps[1]["end_us"].GetDouble() - steps[0]["start_us"].GetDouble()));
  const auto replayed = in_json({"replay", traces().sglang, "--steps", "1-2"});
  CHECK(replayed["measured_span_us"].GetDouble() == doctest::Approx(span));
  CHECK(replayed["baseline_span_us"].GetDouble() == doctest::Approx(span));
  const auto compared = in_json({"compare", traces().sglang, traces().slower, "--steps", "1"});
  CHECK(compared["steps"][0]["a_count"].GetInt() == 1);
  CHECK(compared["steps"][0]["b_count"].GetInt() == 1);
}

TEST_CASE("--from and --to count from the file's first GPU event, as the table and start_us do, also of a part") {
  const auto whole = in_json({"analyze", traces().sglang});
  const auto& rank = whole["ranks"][0];
  const auto& steps = rank["steps"];
  CHECK(rank["layers"][36]["start_us"].GetDouble() >= steps[1]["start_us"].GetDouble());
  CHECK(rank["layers"][36]["end_us"].GetDouble() <= steps[1]["end_us"].GetDouble());
  const std::string from = std::to_string(steps[2]["start_us"].GetDouble());
  const std::string to = std::to_string(steps[2]["end_us"].GetDouble());
  const auto part = in_json({"analyze", traces().sglang, "--from", from, "--to", to});
  REQUIRE(part["ranks"][0]["steps"].Size() == 1);
  CHECK(part["ranks"][0]["steps"][0]["step"].GetInt() == 2);
  CHECK(part["ranks"][0]["steps"][0]["start_us"].GetDouble() == steps[2]["start_us"].GetDouble());
  CHECK(part["ranks"][0]["span_us"].GetDouble() == doctest::Approx(steps[2]["span_us"].GetDouble()));
  const auto later = in_json({"analyze", traces().sglang, "--from", from});
  CHECK(later["ranks"][0]["steps"].Size() == 2);
}

TEST_CASE("what the host does before the first GPU event does not shift start_us") {
  const TemporaryFolder folder;
  const std::string events = launch("0", 1) + "," + launch("10", 2) + "," + gpu_range("attn", "500", "50") + "," +
                             kernel("500", "50", 1) + "," + gpu_range("mlp", "600", "50") + "," +
                             kernel("600", "50", 2);
  const auto json = in_json({"analyze", folder.write("t.json", trace_of(events))});
  CHECK(json["first_gpu_event_us"].GetDouble() == 500);
  CHECK(json["phases"][0]["start_us"].GetDouble() == 0);
  CHECK(json["phases"][1]["start_us"].GetDouble() == 100);
  CHECK(json["phases"][1]["end_us"].GetDouble() == 150);
}

TEST_CASE("windows outside of the trace are refused with what there is") {
  const std::string& trace = traces().sglang;
  const std::string place = trace + ": ";
  for (const char* command : {"analyze", "replay"}) {
    check_refused({command, trace, "--steps", "2-9"}, place, "--steps 2-9: it has steps 0 to 3");
    check_refused({command, trace, "--from", "1e9"}, place, "--from 1e9: its GPU events start from 0 to ");
    check_refused({command, trace, "--to", "1e9"}, place, "--to 1e9: its GPU events start from 0 to ");
    check_refused({command, trace, "--from", "100", "--to", "200"}, place, "no GPU event starts there");
    check_refused({command, traces().phases, "--steps", "1"}, traces().phases + ": ", "--steps 1: it has no steps");
  }
  check_refused({"compare", trace, traces().slower, "--steps", "0-2"}, traces().slower + ": ",
                "--steps 0-2: it has steps 0 to 1");
}

TEST_CASE("windows that make no sense are wrong usage") {
  const std::string& trace = traces().sglang;
  check_wrong_usage({"analyze", trace, "--steps", "5-2"}, "--steps '5-2': write A-B, such as 3-5");
  check_wrong_usage({"analyze", trace, "--steps", "x"}, "--steps 'x': write A-B, such as 3-5");
  check_wrong_usage({"analyze", trace, "--steps", "-1"}, "write A-B");
  check_wrong_usage({"analyze", trace, "--from", "soon"}, "--from 'soon': write a time in us, such as 1500");
  check_wrong_usage({"analyze", trace, "--to", "-1"}, "--to '-1': write a time in us");
  check_wrong_usage({"analyze", trace, "--from", "9", "--to", "9"}, "--to 9: is not after --from 9");
  check_wrong_usage({"analyze", trace, "--steps", "1", "--from", "9"}, "give one");
  const std::string scenario = source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml").string();
  check_wrong_usage({"compare", scenario, scenario, "--steps", "1"}, "apply to traces, and both sides are scenarios");
}

}  // TEST_SUITE("cli/trace_steps")
