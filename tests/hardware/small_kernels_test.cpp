// Small kernels: a floor of its own for each kind where a trace showed it, else what the kernel's family takes.
#include "moe/small_kernels.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "moe/inference.hpp"

TEST_SUITE("hardware/small_kernels") {

using namespace moeline;

namespace {

Price price_on(const std::string& machine, const std::string& text) {
  const HardwareProfile profile = load_profile(machine);
  const RequestedOp op = parse_op(text, profile.facts);
  return price_all(op.kernels, op.conditions, profile.facts, profile.kernels(profile.set_named("sglang")));
}

double us_on(const std::string& machine, const std::string& kind, double bytes) {
  return price_on(machine, fmt::format("memory:kind={},bytes={:.0f}", kind, bytes)).solo_us;
}

std::vector<std::string> names_in(const std::string& phase, const SmallKernelHabits& habits) {
  InferenceWork work;
  work.model = load_architecture("qwen3-30b-a3b");
  work.decode = {.requests = 16, .kv_len = 512};
  work.mode = CommMode::none;
  work.kernels = habits;
  work.spread = expected_spread(work.model, 1, 8);
  work.load = exact_load(work.model, 16, 1, work.spread);
  std::vector<std::string> names;
  for (const Operator& op : inference_phase(phase, work, layer_of(work.model, 0))) names.push_back(op.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("a small kernel takes its floor, to which bytes at HBM's peak are added") {
  const double few = us_on("b200", "norm", 1e4), more = us_on("b200", "norm", 7.7e6 + 1e4);
  CHECK(few == doctest::Approx(2.4).epsilon(0.1));  // SGLang's decode on B300, 16 rows: 2.43 us
  CHECK(more - few == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("kinds have floors of their own: heads are normed in half the time that a hidden state takes") {
  CHECK(us_on("b300", "head_norm", 294912) < 0.6 * us_on("b300", "norm", 262144));  // 1.31 and 2.43 us in the trace
}

TEST_CASE("the same SMs have one floor, whose set a machine carries over") {
  for (const std::string kind : {"norm", "rotary_store", "token_choice"}) {
    CAPTURE(kind);
    CHECK(us_on("b300", kind, 3e5) == doctest::Approx(us_on("b200", kind, 3e5)).epsilon(0.02));
    CHECK(us_on("gb200-nvl72", kind, 3e5) == doctest::Approx(us_on("b200", kind, 3e5)).epsilon(0.05));
  }
}

TEST_CASE("where no trace showed a kind, it goes as casts do, and so does what carries over from there") {
  CHECK(us_on("h200", "norm", 1e6) == us_on("h200", "rowwise", 1e6));
  CHECK(price_on("h200", "memory:kind=rotary_store,bytes=1e6").family == "rowwise");
  CHECK(us_on("b300", "streaming", 3e5) == doctest::Approx(us_on("b200", "streaming", 3e5)).epsilon(0.05));
}

TEST_CASE("a floor says that it was measured elsewhere, and nothing of sizes") {
  CHECK(price_on("b200", "memory:kind=norm,bytes=1e8").provenance == Provenance::interpolated);
  CHECK(price_on("b300", "memory:kind=norm,bytes=1e8").provenance == Provenance::extrapolated);
}

TEST_CASE("every kind is an OP, and goes by its family where nothing else is known") {
  for (const std::string& name : small_kernel_names()) {
    CAPTURE(name);
    const SmallKernel kind = *small_kernel_named(name);
    const RequestedOp op = parse_op(fmt::format("memory:kind={},bytes=4096", name), load_profile("h800").facts);
    REQUIRE(op.kernels.size() == 1);
    CHECK(op.kernels.front().family == family_of(kind));
    CHECK(op.kernels.front().measured_as == name);
    CHECK(is_small_kernel(op.kernels.front()));
  }
  CHECK(!small_kernel_named("rowwise"));
}

TEST_CASE("one kernel chooses experts and makes their weights add up to 1, where a stack has it") {
  CHECK(has(names_in("attn-1", {}), "normalise weights"));
  CHECK(!has(names_in("attn-1", {.choice_normalises = true}), "normalise weights"));
  CHECK(has(names_in("attn-1", {.choice_normalises = true}), "scores and top-k"));
}

TEST_CASE("heads that are copied out of their product are normed each by itself") {
  const std::vector<std::string> apart = names_in("attn-0", {.copies_heads = true});
  CHECK(names_in("attn-0", {}).size() + 3 == apart.size());  // two copies, and two norms for one
  CHECK(has(apart, "copy k heads"));
}

TEST_CASE("a sampler that takes FP32 has its logits cast by a kernel of its own") {
  CHECK(has(names_in("lm_head", {}), "softmax and sample"));
  const std::vector<std::string> cast = names_in("lm_head", {.casts_logits = true});
  CHECK(has(cast, "logits to FP32"));
  CHECK(has(cast, "choose tokens"));
}

}  // TEST_SUITE("hardware/small_kernels")
