// What a trace says about itself: DeepSeek's training trace against the close reading of it and against what
// HolisticTraceAnalysis computes; small traces worked out by hand.
#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include <map>

#include "tests/support/json.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/analysis") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Time us(double value) { return from_us(value); }

RankAnalysis first_rank(const SmallTrace& trace) { return analyze(trace.understood()).ranks.at(0); }

// Of one cause, how many and how long together.
std::pair<int, Time> gaps_by(const RankAnalysis& rank, GapCause cause) {
  std::pair<int, Time> sum{0, Time::zero()};
  for (const Gap& gap : rank.gaps) {
    if (gap.cause != cause) continue;
    ++sum.first;
    sum.second += gap.length;
  }
  return sum;
}

std::string phase_and_layer(const Measured& m, std::int64_t event) {
  const TracePhase& phase = *phase_of(m, {static_cast<std::uint32_t>(event), false});
  return phase.name + " " + std::to_string(phase.place.layer);
}

// The training trace with its annotations taken for something else.
const Measured& without_annotations() {
  static const Measured measured = [] {
    const std::string text = unpacked(training_trace());
    return understand(read(replace_all(text, R"("cat": "user_annotation")", R"("cat": "x")")));
  }();
  return measured;
}

}  // namespace

TEST_CASE("the training trace has HTA's breakdown, with DeepEP's kernels for communication") {
  if (!present(training_trace())) return;
  const Analysis analysis = analyze(training());
  REQUIRE(analysis.ranks.size() == 1);
  const RankAnalysis& rank = analysis.ranks[0];
  CHECK(rank.rank == 0);
  CHECK(rank.times.span == us(129'012));
  CHECK(rank.times.idle == us(497));
  CHECK(rank.times.compute == us(124'338));
  CHECK(rank.times.non_compute() == us(4'177));
  CHECK(100 * rank.times.overlap_fraction() == doctest::Approx(96.32).epsilon(0.0001));
}

TEST_CASE("the training trace has HTA's breakdown by HTA's own pattern, which takes DeepEP for compute") {
  if (!present(training_trace())) return;
  const Breakdown hta = analyze(training()).ranks[0].hta.times;
  CHECK(hta.span == us(129'012));
  CHECK(hta.idle == us(497));
  CHECK(hta.compute == us(128'500));
  CHECK(hta.non_compute() == us(15));
  CHECK(hta.communication == us(0));
  CHECK(hta.overlap_fraction() == 0);  // HTA itself divides by zero
}

TEST_CASE("every GPU event of the training trace has a phase, and no kernel is unclassified") {
  if (!present(training_trace())) return;
  const Analysis analysis = analyze(training());
  CHECK(analysis.gpu_events == 983);
  CHECK(analysis.attributed == 983);
  CHECK(analysis.ranks[0].phases.size() == 40);
  CHECK(analysis.ranks[0].transfers.size() == 16);
  CHECK(analysis.unclassified.empty());
}

TEST_CASE("the training trace's layers are as long as a close reading found, with their barriers and transfers") {
  if (!present(training_trace())) return;
  const std::vector<LayerWindow> layers = analyze(training()).ranks[0].layers;
  const std::vector<double> window_us = {31'813, 31'304, 32'565, 32'846};
  const std::vector<double> barrier_us = {1008 + 1381 + 753 + 1323, 1315 + 1436 + 1366 + 2186,
                                          2245 + 2562 + 1382 + 3674, 3807 + 3589 + 973 + 3578};
  const std::vector<double> transfer_us = {3320 + 4604 + 6549 + 6002, 3575 + 4154 + 6543 + 6074,
                                           3613 + 4437 + 5889 + 5847, 3113 + 4188 + 6492 + 6052};
  REQUIRE(layers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(layers[i].layer == i);
    CHECK(layers[i].times.span == us(window_us[i]));
    CHECK(layers[i].barrier == us(barrier_us[i]));
    CHECK(layers[i].transfer == us(transfer_us[i]));
  }
}

TEST_CASE("the training trace exposes communication twice, both times in layer 3") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  const RankAnalysis rank = analyze(m).ranks[0];
  CHECK(gaps_by(rank, GapCause::communication) == std::pair(2, us(274 + 1'761)));
  REQUIRE(rank.gaps.size() > 2);
  CHECK(rank.gaps[0].length == us(1'761));
  CHECK(phase_and_layer(m, rank.gaps[0].event) == "attn(B) 3");
  CHECK(phase_and_layer(m, rank.gaps[0].waited_for) == "dispatch(B) 3");
  CHECK(rank.gaps[2].length == us(274));
  CHECK(phase_and_layer(m, rank.gaps[2].event) == "mlp(B) 3");
  CHECK(phase_and_layer(m, rank.gaps[2].waited_for) == "combine(B) 3");
}

TEST_CASE("the training trace's host is behind only in the first attn(F), where the trace begins") {
  if (!present(training_trace())) return;
  const Measured& m = training();
  const RankAnalysis rank = analyze(m).ranks[0];
  for (const Gap& gap : rank.gaps) {
    if (gap.cause == GapCause::launch && gap.length > us(5)) CHECK(phase_and_layer(m, gap.event) == "attn(F) 0");
  }
  const auto [count, sum] = gaps_by(rank, GapCause::launch);
  const Time before_first = us(475);  // its transfers began sooner than its compute
  CHECK(rank.gaps[1].length == before_first);
  CHECK(count == doctest::Approx(1 + 9).epsilon(0.2));  // 9 gaps, 417 us; both readings draw a line somewhere
  CHECK(to_us(sum - before_first) == doctest::Approx(417).epsilon(0.02));
  CHECK(gaps_by(rank, GapCause::unexplained).first == 0);
}

TEST_CASE("without annotations the training trace's kernels repeat four times, in its layers' windows") {
  if (!present(training_trace())) return;
  const RankAnalysis with = analyze(training()).ranks[0];
  const RankAnalysis without = analyze(without_annotations()).ranks[0];
  CHECK(without.phases.empty());
  CHECK(without.layers_by_repetition);
  REQUIRE(without.layers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(without.layers[i].start == with.layers[i].start);
    // A repetition ends where the next one starts, 3 us behind the layer's last kernel.
    CHECK(to_us(without.layers[i].end - with.layers[i].end) <= 5);
  }
  CHECK(without.layers[0].barrier + without.layers[3].barrier > us(0));
  CHECK(without.times.compute == with.times.compute);
}

TEST_CASE("the training trace without annotations replays within 0.5 % of its span") {
  if (!present(training_trace())) return;
  const Measured& m = without_annotations();
  CHECK(std::abs(change(replayed_span(m), measured_span(m.trace))) < 0.005);
}

TEST_CASE("busy, exposed and idle times of two streams add up to the span") {
  const RankAnalysis rank = first_rank(SmallTrace()
                                           .on_gpu("kernel", "sm90_xmma_gemm", 7, 0, 100)
                                           .on_gpu("kernel", kDispatch, 27, 60, 160)
                                           .on_gpu("gpu_memcpy", "Memcpy DtoD", 7, 170, 180)
                                           .on_gpu("kernel", "sm90_xmma_gemm", 7, 200, 250));
  CHECK(rank.times.span == us(250));
  CHECK(rank.times.compute == us(150));
  CHECK(rank.times.communication == us(100));
  CHECK(rank.times.exposed == us(60));
  CHECK(rank.times.idle == us(10 + 20));
  CHECK(rank.times.non_compute() == us(60 + 10));  // the copy is neither
  CHECK(rank.times.overlap_fraction() == doctest::Approx(0.4));
  CHECK(rank.hta.times.compute == us(100 + 60 + 50));
  REQUIRE(rank.streams.size() == 2);
  CHECK(rank.streams[0].stream == 7);
  CHECK(rank.streams[0].events == 3);
  CHECK(rank.streams[1].times.exposed == us(60));  // against the compute of the other stream
  CHECK(rank.streams[1].times.idle == us(150));
}

TEST_CASE("a gap has the cause that bound the kernel which ended it") {
  SmallTrace trace;
  trace.kernel("sm90_xmma_gemm a", 7, 0, 10, 100);
  trace.kernel("sm90_xmma_gemm b", 7, 5, 102, 200);    // the usual pause
  trace.kernel("sm90_xmma_gemm c", 7, 290, 300, 400);  // launched late
  trace.kernel(kDispatch, 27, 292, 310, 500);
  trace.wait_event(294);
  trace.kernel("sm90_xmma_gemm d", 7, 295, 502, 600);  // waited for the dispatch
  trace.kernel("sm90_xmma_gemm e", 7, 297, 800, 900);  // for nothing that the trace shows
  const RankAnalysis rank = first_rank(trace);
  CHECK(gaps_by(rank, GapCause::between) == std::pair(1, us(2)));
  CHECK(gaps_by(rank, GapCause::launch) == std::pair(1, us(100)));
  CHECK(gaps_by(rank, GapCause::communication) == std::pair(1, us(102)));
  CHECK(gaps_by(rank, GapCause::unexplained) == std::pair(1, us(200)));
  CHECK(gaps_by(rank, GapCause::other_stream).first == 0);
  CHECK(rank.gaps[0].length == us(200));
}

TEST_CASE("a gap behind another stream that computes is a gap only where both stand still") {
  SmallTrace trace;
  trace.kernel("sm90_xmma_gemm a", 7, 0, 10, 100);
  trace.kernel("sm90_xmma_gemm aside", 23, 2, 10, 300);
  trace.wait_event(3);
  trace.kernel("sm90_xmma_gemm b", 7, 4, 303, 400);
  const RankAnalysis rank = first_rank(trace);
  CHECK(gaps_by(rank, GapCause::other_stream) == std::pair(1, us(3)));
  CHECK(rank.gaps.size() == 1);
}

TEST_CASE("layers whose phases end with an all-reduce have windows, and the all-reduce in them") {
  SmallTrace trace;
  for (int layer = 0; layer < 2; ++layer) {
    const int start = 200 * layer;
    trace.annotation("attn", start, start + 6);
    trace.kernel("flash_fwd", 7, start, start + 10, start + 110);
    trace.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 7, start + 3, start + 110, start + 140);
  }
  const RankAnalysis rank = first_rank(trace);
  CHECK(rank.transfers.empty());
  REQUIRE(rank.layers.size() == 2);
  for (const LayerWindow& layer : rank.layers) {
    CHECK(layer.times.span == us(130));
    CHECK(layer.times.exposed == us(30));
    CHECK(layer.transfer == us(30));
  }
}

TEST_CASE("rates are of kernels whose shapes the trace states") {
  SmallTrace trace;
  trace.add(slice("cpu_op", "aten::mm", kMainThread, times("0", "5"),
                  R"("External id": 5, "Input Dims": [[4096, 7168], [7168, 256]])"));
  trace.kernel("sm90_xmma_gemm a", 7, 1, 10, 110, R"("External id": 5)");
  trace.kernel("sm90_xmma_gemm b", 7, 3, 112, 212);
  trace.on_gpu("gpu_memcpy", "Memcpy DtoD", 7, 220, 230, R"("bytes": 5000000)");
  std::map<KernelClass, ClassUse> uses;
  for (const ClassUse& use : first_rank(trace).classes) uses[use.kernel_class] = use;
  CHECK(uses[KernelClass::gemm].count == 2);
  CHECK(uses[KernelClass::gemm].flops == 2.0 * 4096 * 7168 * 256);
  CHECK(uses[KernelClass::gemm].flops_time == us(100));
  CHECK(uses[KernelClass::gemm].sum == us(200));
  CHECK(uses[KernelClass::copy].bytes == 2 * 5e6);  // read and written
  CHECK(uses[KernelClass::copy].bytes_time == us(10));
}

TEST_CASE("GB/s of an NCCL phase are its message over its time, and no share of the memory's bandwidth") {
  SmallTrace trace;
  trace.annotation("gather", 0, 4);
  trace.kernel("ncclDevKernel_AllGather_RING_LL", 27, 0, 10, 410,
               R"("In msg nelems": 4194304, "Out msg nelems": 33554432, "Group size": 8, "dtype": "BFloat16")");
  trace.annotation("mlp", 5, 9).kernel("sm90_xmma_gemm", 7, 6, 20, 300);
  const TemporaryFolder folder;
  rapidjson::Document json;
  json.Parse(run_moeline({"analyze", folder.write("t.json", trace.text()), "--format", "json"}).out.c_str());
  REQUIRE_FALSE(json.HasParseError());
  const double expected = 33554432 * 2 / 400e-6 / 1e9;
  REQUIRE(json["ranks"][0]["transfers"].Size() == 1);
  CHECK(json["ranks"][0]["transfers"][0]["GBps"].GetDouble() == doctest::Approx(expected));
  const auto& collective = json["ranks"][0]["classes"][0];
  CHECK(std::string(collective["class"].GetString()) == "collective");
  CHECK(collective["GBps"].GetDouble() == doctest::Approx(expected));
  CHECK_FALSE(collective.HasMember("share_of_memory"));
}

TEST_CASE("exposed_comm_us is communication beside which no kernel computes, as simulate has it, and copies are not") {
  SmallTrace trace;
  trace.on_gpu("kernel", "sm90_xmma_gemm", 7, 0, 100).on_gpu("kernel", "ncclDevKernel_AllReduce", 27, 90, 130);
  trace.on_gpu("gpu_memcpy", "Memcpy DtoD", 7, 140, 147).on_gpu("kernel", "sm90_xmma_gemm", 7, 150, 200);
  const TemporaryFolder folder;
  const rapidjson::Document json = in_json({"analyze", folder.write("t.json", trace.text())});
  const auto& rank = json["ranks"][0];
  CHECK(rank["exposed_comm_us"].GetDouble() == 30);
  CHECK(rank["non_compute_us"].GetDouble() == 37);
  CHECK(rank["idle_us"].GetDouble() == 13);
}

TEST_CASE("each GPU of a file is a rank of its own") {
  SmallTrace trace;
  trace.add(R"({"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 8"}})");
  trace.add(R"({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 9"}})");
  trace.on_gpu("kernel", "sm90_xmma_gemm", 7, 0, 100);
  trace.add(slice("kernel", "mine", R"("pid": 1, "tid": 7)", times("50", "100"), R"("stream": 7)"));
  const Analysis analysis = analyze(trace.understood());
  REQUIRE(analysis.ranks.size() == 2);
  CHECK(analysis.ranks[0].rank == 8);
  CHECK(analysis.ranks[1].rank == 9);
  for (const RankAnalysis& rank : analysis.ranks) {
    CHECK(rank.times.span == us(100));
    CHECK(rank.times.idle == us(0));
  }
  REQUIRE(analysis.unclassified.size() == 1);
  CHECK(analysis.unclassified[0].name == "mine");
  CHECK(analysis.unclassified[0].sum == us(100));
}

TEST_CASE("two GPUs that claim the same rank do not share their phases") {
  SmallTrace trace;
  for (const std::string pid : {"0", "1"}) {
    trace.add(R"({"ph": "M", "name": "process_name", "pid": )" + pid + R"(, "args": {"name": "rank 3"}})");
    const std::string track = R"("pid": )" + pid + R"(, "tid": 7)";
    trace.add(gpu_range("mlp", "0", "100", track));
    trace.add(slice("kernel", "sm90_xmma_gemm", track, times("0", "100"), R"("stream": 7)"));
  }
  const Analysis analysis = analyze(trace.understood());
  REQUIRE(analysis.ranks.size() == 2);
  CHECK(analysis.ranks[0].phases.size() == 1);
  CHECK(analysis.ranks[1].phases.size() == 1);
}

TEST_CASE("of many streams the table has the sixteen busiest, in order, and the JSON all") {
  SmallTrace trace;
  for (int stream = 1; stream <= 20; ++stream) {
    trace.on_gpu("kernel", "sm90_xmma_gemm", stream, 0, stream % 5 == 0 ? 1 : 1000 + stream);
  }
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", trace.text());
  const std::string table = run_moeline({"analyze", file}).out;
  const std::string rows = table.substr(table.find("\n  stream"), table.find("... 4 more") - table.find("\n  stream"));
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 2 + 16);
  CHECK(rows.find("\n       4 ") < rows.find("\n       6 "));
  CHECK(rows.find("\n       5 ") == std::string::npos);
  rapidjson::Document json;
  json.Parse(run_moeline({"analyze", file, "--format", "json"}).out.c_str());
  const auto& streams = json["ranks"][0]["streams"];
  CHECK(streams.Size() == 20);
  CHECK(streams[0].HasMember("exposed_us"));
  CHECK_FALSE(streams[0].HasMember("exposed_comm_us"));  // of ranks, layers and steps
}

TEST_CASE("a run that waits for its host is told what one that takes no time would change") {
  const std::filesystem::path eager = data_folder() / "traces/real/b200_vllm_gpt_oss_120b_tp8_prefill_eager.json.gz";
  if (!present(eager)) return;
  const rapidjson::Document json = in_json({"analyze", eager.string()});
  const auto& c = json["counterfactuals"];
  CHECK(c["no_gaps_us"].GetDouble() == doctest::Approx(c["replay_us"].GetDouble()).epsilon(1e-3));
  CHECK(c["no_host_us"].GetDouble() < 0.2 * c["replay_us"].GetDouble());
}

TEST_CASE("analyze prints the same figures through the program") {
  if (!present(training_trace())) return;
  const Outcome outcome = run_moeline({"analyze", training_trace().string(), "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  REQUIRE_FALSE(json.HasParseError());
  const auto& rank = json["ranks"][0];
  CHECK(rank["span_us"].GetDouble() == 129'012);
  CHECK(rank["idle_us"].GetDouble() == 497);
  CHECK(rank["compute_us"].GetDouble() == 124'338);
  CHECK(rank["non_compute_us"].GetDouble() == 4'177);
  CHECK(rank["exposed_comm_us"].GetDouble() == 4'162);  // 15 us of copies are no communication
  CHECK(rank["overlap_fraction"].GetDouble() == doctest::Approx(0.9632).epsilon(0.0001));
  CHECK(rank["hta"]["compute_us"].GetDouble() == 128'500);
  CHECK(rank["hta"]["non_compute_us"].GetDouble() == 15);
  CHECK(json["gpu_events"].GetInt() == 983);
  CHECK(json["phases"].Size() == 40);
  const Outcome table = run_moeline({"analyze", training_trace().string()});
  CHECK(table.exit_code == 0);
  CHECK(table.err.empty());
  CHECK(table.out.find("The run is bound by compute: without, it takes -") != std::string::npos);
  CHECK(json["flows"]["without_start"].GetInt() == 2853);
  CHECK(table.out.find("note:") == std::string::npos);
}

}  // TEST_SUITE("measured/analysis")
