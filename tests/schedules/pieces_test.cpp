// Phases in pieces: what each waits for, that together they do the whole's work, and what they cost.
#include <doctest/doctest.h>

#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/pieces") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Decode of one micro-batch on EP64, MoE layers alone, experts with equal rows.
Run run_planned(const std::string& plan, const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  std::vector<std::string> changes = {"schedule=per-expert",        "parallelism.ep=64",
                                      "workload.batch_size=64",     "layers=6",
                                      "routing.distribution=exact", "overlap=" + folder.write("plan.yaml", plan)};
  changes.insert(changes.end(), more.begin(), more.end());
  return run_decode(changes);
}

const std::string kInTurn =
    "compute: [attn-0, attn-1, issue dispatch, shared, [receive dispatch, mlp, issue combine], receive combine]\n";

std::string pieces(int count, const std::string& by) {
  return "pieces: " + std::to_string(count) + "\npieces_by: " + by + "\n" + kInTurn;
}

// Of one kernel of layer 3, piece by piece.
std::vector<Span> spans(const Run& run, const std::string& kernel) {
  std::vector<Span> found;
  for (const TaskId id : tasks_of(run, kernel, 3)) found.push_back(run.timeline.spans[id]);
  return found;
}

double solo_us_of(const Run& run, const std::string& kernel) { return solo_us(run, tasks_of(run, kernel)); }

double sent(const Run& run) { return carried(run, tasks_of(run, ""), "NIC out"); }

bool same_spans(const Run& a, const Run& b) {
  return std::equal(a.timeline.spans.begin(), a.timeline.spans.end(), b.timeline.spans.begin(), b.timeline.spans.end(),
                    [](const Span& x, const Span& y) { return x.start == y.start && x.end == y.end; });
}

}  // namespace

TEST_CASE("one piece is the plan without pieces") {
  const std::string flat =
      "compute: [attn-0, attn-1, issue dispatch, shared, receive dispatch, mlp, issue combine, receive combine]\n";
  for (const char* ranks : {"ranks=folded", "ranks=all"}) {
    const Run whole = run_planned(flat, {ranks});
    CHECK(same_spans(whole, run_planned(pieces(1, "token"), {ranks})));
    CHECK(same_spans(whole, run_planned(pieces(1, "expert"), {ranks})));
  }
}

TEST_CASE("a piece waits for its own piece of the phase before, and the next layer for all of them") {
  for (const char* by : {"token", "expert"}) {
    CAPTURE(by);
    constexpr std::size_t kPieces = 4;
    const Run run = run_planned(pieces(kPieces, by));
    const auto received = spans(run, "dispatch receive"), gate_up = spans(run, "expert gate_up"),
               down = spans(run, "expert down"), issued = spans(run, "combine issue"),
               wires = spans(run, "combine on the wire"), dispatched = spans(run, "dispatch on the wire");
    REQUIRE(received.size() == kPieces);
    REQUIRE(down.size() == kPieces);
    REQUIRE(issued.size() == kPieces);
    for (std::size_t i = 0; i < kPieces; ++i) {
      CHECK(dispatched[i].end <= received[i].start);
      CHECK(received[i].end <= gate_up[i].start);
      CHECK(down[i].end <= issued[i].start);
      CHECK(wires[i].end <= phase(run, "attn-0", 0, 4).start);
    }
    CHECK(gate_up.front().start < received.back().start);  // which the uncut one waits for
    CHECK(wires.front().start < down.back().start);
  }
}

TEST_CASE("a token's sum needs all of its experts: cut by expert, one kernel receives the combine") {
  CHECK(spans(run_planned(pieces(4, "token")), "combine receive").size() == 4);
  const Run run = run_planned(pieces(4, "expert"));
  const std::vector<Span> received = spans(run, "combine receive");
  REQUIRE(received.size() == 1);
  for (const Span& wire : spans(run, "combine on the wire")) CHECK(wire.end <= received.front().start);
}

TEST_CASE("pieces together do the whole's work: FLOPs and bytes on the wire, however they are cut") {
  const Run whole = run_planned(pieces(1, "token"));
  for (const char* by : {"token", "expert"}) {
    for (const int count : {2, 3, 4}) {  // 3 divides neither 64 tokens nor 4 experts
      CAPTURE(by);
      CAPTURE(count);
      const Run cut = run_planned(pieces(count, by));
      CHECK(flops_of(cut) == doctest::Approx(flops_of(whole)).epsilon(1e-3));  // rows of an expert are whole numbers
      CHECK(sent(cut) == doctest::Approx(sent(whole)).epsilon(1e-6));
    }
  }
}

TEST_CASE("each piece pays its own start-up, cut by token weights are read again, and by expert they are not") {
  const Run whole = run_planned(pieces(1, "token")), by_token = run_planned(pieces(4, "token")),
            by_expert = run_planned(pieces(4, "expert"));
  for (const char* kernel : {"dispatch issue", "combine issue", "dispatch on the wire"}) {
    CAPTURE(kernel);
    CHECK(solo_us_of(by_token, kernel) > solo_us_of(whole, kernel));
    CHECK(solo_us_of(by_expert, kernel) == doctest::Approx(solo_us_of(by_token, kernel)).epsilon(1e-6));
  }
  CHECK(solo_us_of(by_token, "expert") > 2.5 * solo_us_of(whole, "expert"));
  CHECK(solo_us_of(by_expert, "expert") < 1.7 * solo_us_of(whole, "expert"));
}

TEST_CASE("two micro-batches may be cut, too, of decode and of prefill") {
  const TemporaryFolder folder;
  const auto cut = [&](const std::string& schedule) {
    return "overlap=" +
           folder.write(schedule + ".yaml", content_of(source("schedules/" + schedule + ".yaml")) + "pieces: 2\n");
  };
  const Run decode = run_decode({"layers=6", cut("decode-two-batch")});
  CHECK(spans(decode, "expert down").size() == 4);  // of two micro-batches
  const Run prefill = run_prefill({"layers=6", cut("prefill-two-batch")});
  CHECK(spans(prefill, "expert down").size() == 4);
  CHECK(phase(prefill, "combine", 1, 3).start < phase(prefill, "mlp", 1, 3).end);
}

TEST_CASE("pieces run on every rank, whose experts differ, and are the same each time") {
  for (const char* by : {"token", "expert"}) {
    const std::vector<std::string> all = {"ranks=all", "parallelism.ep=16", "routing.distribution=balanced"};
    const Run run = run_planned(pieces(3, by), all);
    CHECK(run.program.ranks == 16);
    CHECK(same_spans(run, run_planned(pieces(3, by), all)));
  }
}

TEST_CASE("more pieces than there is to cut are refused by name of the plan") {
  CHECK(says(refusal_of([] { (void)run_planned(pieces(5, "expert")); }),
             "pieces: 5 are more than the 4 experts of a rank"));
  CHECK(says(refusal_of([] { (void)run_planned(pieces(8, "token"), {"workload.batch_size=7"}); }),
             "pieces: 8 are more than the 7 tokens of a micro-batch"));
}

}  // TEST_SUITE("schedules/pieces")
