// What replay changes on request: names, factors, removed edges; and how it refuses what it does not know.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include "measured/replay_text.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/server_trace.hpp"

TEST_SUITE("measured/what_if") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// attn 0-100, then mlp behind the dispatch 50-200 that it waited for, to 300; barrier 20-50.
const Measured& small() {
  static const Measured measured = SmallTrace()
                                       .annotation("attn", 0, 2)
                                       .kernel("flash_fwd", 7, 0, 10, 110)
                                       .annotation("dispatch", 3, 9)
                                       .kernel(kNotify, 27, 3, 30, 60)
                                       .kernel(kDispatch, 27, 6, 60, 210)
                                       .wait_event(10)
                                       .annotation("mlp", 11, 20)
                                       .kernel("sm90_xmma_gemm", 7, 12, 210, 310)
                                       .understood();
  return measured;
}

double span_with(const std::vector<WhatIf::Scale>& scales) { return to_us(replayed_span(small(), {scales, {}})); }

std::string message_of(const WhatIf& what_if) {
  return refusal_of([&] { (void)replay_graph(small(), what_if); });
}

struct TraceFile {
  TemporaryFolder folder;
  std::string path = folder.write("trace.json", SmallTrace()
                                                    .annotation("attn", 0, 2)
                                                    .kernel("flash_fwd", 7, 0, 10, 110)
                                                    .annotation("mlp", 11, 20)
                                                    .kernel("sm90_xmma_gemm", 7, 12, 112, 310)
                                                    .text());
};

rapidjson::Document parsed(const std::string& text) {
  rapidjson::Document document;
  document.Parse(text.c_str());
  REQUIRE_FALSE(document.HasParseError());
  return document;
}

}  // namespace

TEST_CASE("no gaps never make a run longer: what lies before the GPU's first event is none") {
  // The profiler saw the host for 40 ms before a copy that has no launch in the trace, as on servers.
  for (const bool graphs : {true, false}) {
    const Measured m = understand(read(server_trace({.steps = steps_named("step[DECODE bs=32]", 3),
                                                     .layers = 4,
                                                     .graphs = graphs,
                                                     .unrecorded = graphs ? 0 : 4,
                                                     .early_us = 40'000,
                                                     .lead_us = 460'000})));
    CHECK(replayed_span(m) == measured_span(m.trace));
    const double without = change(replayed_span(m, {{{"gaps", 0}}, {}}), replayed_span(m));
    CHECK(without < 0);
    CHECK(without > -0.01);  // the launches stay where they are, and so does what they hold up
  }
}

TEST_CASE("a kernel of which nothing is known that it waited for keeps its distance to the one before it") {
  SmallTrace trace;
  trace.kernel("sm90_xmma_gemm", 7, 100, 110, 210).kernel("sm90_xmma_gemm", 7, 102, 310, 410);
  trace.on_gpu("kernel", "flash_fwd", 23, 330, 430);  // its launch is not in the trace
  const Measured m = trace.understood();
  CHECK(to_us(replayed_span(m)) == 320);
  CHECK(to_us(replayed_span(m, {{{"gaps", 0}}, {}})) == 220);  // 20 us behind the second, which comes 100 us sooner
  CHECK(to_us(replayed_span(m, {{{"kernel:gemm", 0.5}}, {}})) == 270);
}

TEST_CASE("a name is a phase, a class of communication, a class of kernels, the gaps or the host") {
  REQUIRE(edges(small(), Reason::event_wait) == std::vector<std::string>{"dispatch -> mlp"});
  CHECK(span_with({}) == 300);
  CHECK(span_with({{"mlp", 0.5}}) == 250);
  CHECK(span_with({{"kernel:gemm", 2}}) == 400);
  CHECK(span_with({{"transfer", 2}}) == 450);
  CHECK(span_with({{"dispatch", 2}}) == 450);  // the kernels, not the annotation, which holds the barrier too
  CHECK(span_with({{"barrier", 2}}) == 330);
  CHECK(span_with({{"kernel:barrier", 2}}) == 330);
  CHECK(span_with({{"attn", 1.5}}) == 300);  // hidden beside the dispatch
  CHECK(span_with({{"kernel:attention", 3}}) == 400);
}

TEST_CASE("factors of one kernel multiply, and none is lost to order") {
  CHECK(span_with({{"mlp", 0.5}, {"kernel:gemm", 2}}) == 300);
  CHECK(span_with({{"barrier", 0}, {"transfer", 0}}) == span_with({{"transfer", 0}, {"barrier", 0}}));
  CHECK(span_with({{"transfer", 0}, {"barrier", 0}}) == 200);  // attn, then mlp
}

TEST_CASE("removing an edge lets the other phase start without it") {
  const auto removed = [](const std::string& text) {
    return to_us(replayed_span(small(), {{}, {parse_removed(text)}}));
  };
  CHECK(removed("dispatch->mlp") == 200);
  CHECK(removed(" dispatch -> mlp ") == 200);
  CHECK(removed("event_wait") == 200);
}

TEST_CASE("a change that touches nothing is refused with what there is") {
  CHECK(message_of({{{"mpl", 2}}, {}}) == "--scale: unknown name 'mpl'; did you mean 'mlp'?");
  CHECK(message_of({{{"kernel:gem", 2}}, {}}) == "--scale: unknown name 'kernel:gem'; did you mean 'kernel:gemm'?");
  CHECK(message_of({{{"combine", 2}}, {}}) == "--scale: the trace has no combine");
  CHECK(message_of({{}, {{"dispatch", "mpl"}}}) ==
        "--remove: unknown dependency 'dispatch->mpl'; did you mean 'dispatch->mlp'?");
  CHECK(message_of({{}, {{"event_wait", "mlp"}}}).starts_with("--remove: unknown dependency 'event_wait->mlp'"));
  CHECK(message_of({{}, {{"start_time", ""}}}).starts_with("--remove: unknown dependency 'start_time'"));
}

TEST_CASE("a factor is a number from 0 to a million") {
  const auto message = [](const std::string& text) { return refusal_of([&] { (void)parse_scale(text); }); };
  for (const char* text : {"", "mlp", "mlp=", "=2", "mlp=x", "mlp=-1", "mlp=1e7", "mlp=nan", "mlp=inf", "mlp=2x"}) {
    CAPTURE(text);
    CHECK(message(text) == "--scale '" + std::string(text) + "': write NAME=FACTOR, with a factor from 0 to 1000000");
  }
  CHECK(parse_scale("mlp=0").factor == 0);
  CHECK(parse_scale("a=b=1e3").what == "a=b");
  CHECK_THROWS_WITH_AS((void)parse_removed("a->"), "--remove 'a->': write PHASE->PHASE, or the name of a reason",
                       SpecError);
}

TEST_CASE("times that no longer fit after a change are refused") {
  const Measured m = SmallTrace().on_gpu("kernel", "a", 7, 0, 2'000'000'000).understood();  // 33 minutes
  CHECK_THROWS_AS((void)replayed_span(m, {{{"kernel:unclassified", 1e6}}, {}}), SpecError);
  SmallTrace many;
  for (int i = 0; i < 20; ++i) many.on_gpu("kernel", "a", 7, 100'000'000 * i, 100'000'000 * (i + 1));
  CHECK_THROWS_AS((void)replayed_span(many.understood(), {{{"kernel:unclassified", 9'000}}, {}}), SpecError);
}

TEST_CASE("replay prints what the trace was, what it replays to, and what a change makes of it") {
  const TraceFile file;
  const Outcome outcome =
      run_moeline({"replay", file.path, "--scale", "mlp=2", "--scale", "gaps=0", "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  const rapidjson::Document json = parsed(outcome.out);
  CHECK(json["measured_span_us"].GetDouble() == 300);
  CHECK(json["baseline_span_us"].GetDouble() == 300);
  CHECK(json["span_us"].GetDouble() == 496);
  CHECK(json["tasks"].GetInt() == 4);  // two kernels, two launches
  CHECK(json["edges"].GetInt() == 4);  // launch, launch, host's order, stream's order
  CHECK(json["phases"].Size() == 2);
  const Outcome table = run_moeline({"replay", file.path, "--scale", "mlp=2"});
  CHECK(table.out.find("measured span                     0.300 ms") != std::string::npos);
  CHECK(table.out.find("after the change                  0.498 ms   +66.00 % of the replay") != std::string::npos);
}

TEST_CASE("replay refuses unknown names through the program, and writes no graph then") {
  const TraceFile file;
  const std::string graph = file.folder / "graph.json";
  check_refused({"replay", file.path, "--scale", "atn=2", "--graph", graph}, "--scale: ", "did you mean 'attn'?");
  check_wrong_usage({"replay", file.path, "--scale", "attn", "--graph", graph}, "--scale 'attn': write NAME=FACTOR");
  check_wrong_usage({"replay", file.path, "--scale", "=1", "--graph", graph}, "--scale '=1': write NAME=FACTOR");
  check_wrong_usage({"replay", file.path, "--remove", "->", "--graph", graph}, "--remove '->': write PHASE->PHASE");
  check_refused({"replay", file.path, "--remove", "attn->mlp", "--graph", graph}, "--remove: ", "unknown dependency");
  CHECK_FALSE(std::filesystem::exists(graph));
  check_refused({"replay", file.path, "--graph", "/nowhere/graph.json"}, "/nowhere/graph.json", "");
}

TEST_CASE("a factor that makes times too long is refused by its option") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("t.json", SmallTrace().kernel("sm90_xmma_gemm", 7, 0, 10, 2'000'000'000).text());
  check_refused({"replay", file, "--scale", "kernel:gemm=1000000"}, "--scale kernel:gemm=1000000: ", "out of range");
}

TEST_CASE("a replay of a trace without phases has no table of phases") {
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", SmallTrace().kernel("sm90_xmma_gemm", 7, 0, 10, 110).text());
  const Outcome outcome = run_moeline({"replay", file, "--scale", "kernel:gemm=2"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("phase") == std::string::npos);
}

TEST_CASE("the graph as JSON has as many nodes and edges as replay states, and no circle") {
  const TraceFile file;
  const std::string path = file.folder / "graph.json";
  const Outcome outcome = run_moeline({"replay", file.path, "--graph", path, "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  const rapidjson::Document graph = parsed(content_of(path));
  CHECK(static_cast<int>(graph["nodes"].Size()) == parsed(outcome.out)["tasks"].GetInt());
  CHECK(static_cast<int>(graph["edges"].Size()) == parsed(outcome.out)["edges"].GetInt());
}

TEST_CASE("the graph for Graphviz is one that Graphviz draws") {
  const std::string dot = "/usr/bin/dot";
  if (!present(dot)) return;
  const TemporaryFolder folder;
  SmallTrace trace;
  trace.annotation("attn", 0, 2).kernel(R"(void f<\"quoted\">\n\\(int)::{lambda()#1})", 7, 0, 10, 110);
  trace.kernel(kDispatch, 27, 12, 112, 310);
  const std::string graph = folder.write("graph.dot", to_graphviz(trace.understood()));
  const Outcome outcome = run_process({dot, "-Tplain", graph});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.starts_with("graph "));
}

TEST_CASE("our own predicted traces replay to their own span") {
  for (const char* name :
       {"train_chunk_deepseek_v3_h800", "prefill_deepseek_v3_h800_ep32", "decode_deepseek_v3_h800_ep128"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const std::string trace = folder / "trace.json";
    const std::string scenario = (source("experiments/studies") / name / "scenario.yaml").string();
    Arguments simulate = {"simulate", scenario, "--trace", trace};
    if (kSanitized) simulate.insert(simulate.end(), {"--set", "layers=2", "--set", "routing={}"});
    REQUIRE(run_moeline(simulate).exit_code == 0);
    const Outcome outcome = run_moeline({"replay", trace, "--format", "json"});
    REQUIRE(outcome.exit_code == 0);
    const rapidjson::Document json = parsed(outcome.out);
    CHECK(json["baseline_span_us"].GetDouble() ==
          doctest::Approx(json["measured_span_us"].GetDouble()).epsilon(0.0001));
    CHECK(json["worst_phase_start_us"].GetDouble() < 1);
  }
}

}  // TEST_SUITE("measured/what_if")
