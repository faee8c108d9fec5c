// Replays against programs whose every edge is known: what a change really does is worked out by running the program.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/known_program.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("measured/known_programs") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Question {
  WhatIf what_if;
  Changed changed;
};

const std::vector<Question>& questions() {
  static const std::vector<Question> kAll = {{{{{"kernel:gemm", 0.5}}, {}}, {.gemm = 0.5}},
                                             {{{{"kernel:gemm", 2}}, {}}, {.gemm = 2}},
                                             {{{{"transfer", 0}}, {}}, {.transfer = 0}},
                                             {{{{"kernel:copy", 4}}, {}}, {.copy = 4}},
                                             {{{{"host", 0.5}}, {}}, {.host = 0.5}}};
  return kAll;
}

// Times of a trace are whole nanoseconds.
bool equals(Time replayed, double true_us) { return std::abs(to_us(replayed) - true_us) < 0.05; }

// Of what a program is asked: what it has.
std::optional<Time> answer(const Measured& m, const WhatIf& what_if) {
  try {
    return replayed_span(m, what_if);
  } catch (const SpecError&) {
    return std::nullopt;  // the program has no such kernel
  }
}

struct Score {
  int asked = 0, right = 0, right_unchanged = 0, programs = 0;
  int wrong_and_sure = 0;  // though nothing was inferred, and every wait had a reason
};

bool is_sure(const Measured& m) {
  const bool stated =
      std::ranges::all_of(m.dependencies, [](const Dependency& edge) { return edge.evidence.is_stated(); });
  return stated && unexplained_waits(m, release_times(m)).empty();
}

Score score(bool stated, int count) {
  Score score;
  for (int seed = 0; seed < count; ++seed) {
    KnownProgram program(static_cast<std::uint64_t>(seed) + 1);
    const Measured m = understand(read(program.trace(stated)));
    ++score.programs;
    score.right_unchanged += equals(replayed_span(m), program.span_us({})) ? 1 : 0;
    for (const Question& question : questions()) {
      const std::optional<Time> replayed = answer(m, question.what_if);
      if (!replayed) continue;
      ++score.asked;
      const bool right = equals(*replayed, program.span_us(question.changed));
      score.right += right ? 1 : 0;
      score.wrong_and_sure += !right && is_sure(m) ? 1 : 0;
      if (stated && !right) {
        MESSAGE("program " << seed + 1 << ", " << question.what_if.scales[0].what << ": " << to_us(*replayed)
                           << " us, right " << program.span_us(question.changed));
      }
    }
  }
  return score;
}

}  // namespace

TEST_CASE("where a trace states who waits for whom, replays of a thousand programs are what the programs would do") {
  const int count = kSanitized ? 50 : 1000;
  const Score of = score(true, count);
  CHECK(of.right_unchanged == of.programs);
  CHECK(of.right == of.asked);
  CHECK(of.asked > 4 * of.programs);
}

TEST_CASE("where a trace does not state it, replays without a change are right, and most of those with one") {
  const int count = kSanitized ? 20 : 200;
  const Score of = score(false, count);
  CHECK(of.right_unchanged == of.programs);
  MESSAGE(of.right << " of " << of.asked << " right");
  CHECK(4 * of.right > 3 * of.asked);
  CHECK(of.wrong_and_sure == 0);
}

}  // TEST_SUITE("measured/known_programs")
