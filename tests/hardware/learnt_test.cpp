// Prices of a machine whose kernels take what they took in a trace.
#include <doctest/doctest.h>

#include "base/spec.hpp"
#include "hardware/learnt.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "tests/support/json.hpp"

TEST_SUITE("hardware/learnt") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// W_O of 64 rows took twice as long, other GEMMs 1.2 times, and a norm was part of another kernel.
constexpr const char* kMachine = R"(name: mine
extends: h100
kernel_sets:
  learnt-2026-11:
    date: 2026-11
    source: a trace
    over: sglang-0.5.14
    learnt:
      phase: decode
      classes:
        gemm: {factor: 1.2, kernels: 90, range: {m: [64, 64], n: [4096, 8192], k: [4096, 4096]}}
      operators:
        W_O: {factor: 2, kernels: 30, family: linear_bf16, range: {m: [64, 64], n: [4096, 4096], k: [4096, 4096]}}
        "a norm": {factor: 0, kernels: 1}
)";

struct Machines {
  TemporaryFolder folder;
  HardwareProfile learnt = read_profile(folder.write("machine.yaml", kMachine));
  KernelSet set = learnt.kernels("learnt-2026-11");
  KernelSet below = learnt.kernels("sglang-0.5.14");
};

Operator gemm(const std::string& name, int m, int n = 4096) {
  const std::string op = "gemm:dtype=bf16,m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=4096";
  Operator made = parse_op(op, load_profile("h100").facts).kernels.front();
  made.name = name;
  return made;
}

Price priced(const Operator& op, const Machines& machines, const KernelSet& set) {
  return price(op, {.sms = 132}, machines.learnt.facts, set);
}

// Over the price by the set below.
double ratio_of(const Operator& op, const Machines& machines) {
  return priced(op, machines, machines.set).solo_us / priced(op, machines, machines.below).solo_us;
}

}  // namespace

TEST_CASE("an operator that was seen takes its factor, another of its class the class'") {
  const Machines machines;
  CHECK(ratio_of(gemm("W_O", 64), machines) == doctest::Approx(2));
  CHECK(ratio_of(gemm("W_Q", 64), machines) == doctest::Approx(1.2));
  const Price price = priced(gemm("W_O", 64), machines, machines.set);
  CHECK(price.provenance == Provenance::learnt);
  CHECK(price.kernel_set == "learnt-2026-11");
  CHECK(price.gap == doctest::Approx(2));
}

TEST_CASE("an operator of the same name that is far wider is another model's, and takes the class' factor") {
  const Machines machines;
  CHECK(ratio_of(gemm("W_O", 64, 8192), machines) == doctest::Approx(2));
  CHECK(ratio_of(gemm("W_O", 64, 16384), machines) == doctest::Approx(1.2));
}

TEST_CASE("beyond twice the trace's tokens a price is extrapolated, by the same factor") {
  const Machines machines;
  CHECK(priced(gemm("W_O", 128), machines, machines.set).provenance == Provenance::learnt);
  const Price far = priced(gemm("W_O", 256), machines, machines.set);
  CHECK(far.provenance == Provenance::extrapolated);
  CHECK(far.note.text() == "m 256 > 128");
  for (const int m : {2, 128, 256, 4096}) CHECK(ratio_of(gemm("W_O", m), machines) == doctest::Approx(2));
}

TEST_CASE("in another phase than the trace's the set below counts") {
  const TemporaryFolder folder;
  (void)folder.write("machine.yaml", kMachine);
  const auto kernels_of = [&](const char* workload) {
    const std::string text =
        std::string("schema: 1\nmodel: llama-3.1-405b\nhardware: machine.yaml\nschedule: sequential\n") +
        "parallelism: {tp: 8}\nworkload: " + workload + "\n";
    return std::string(in_json({"simulate", folder.write("s.yaml", text)})["scenario"]["kernels"].GetString());
  };
  CHECK(kernels_of("{phase: decode, batch_size: 64, kv_len: 4096}") == "learnt-2026-11");
  CHECK(kernels_of("{phase: prefill, tokens: 4096, prompt_len: 4096}") == "sglang-0.5.14");
}

TEST_CASE("a kernel that others do along with their work takes no time and nothing of the machine") {
  const Machines machines;
  Operator op = gemm("a norm", 64);
  const Price price = priced(op, machines, machines.set);
  CHECK(price.solo_us == 0);
  CHECK(price.gap == 0);
  CHECK(price.hold == Hold::nothing);
  CHECK(price.hbm_GBps == 0);
  CHECK(is_fused_away(price));
  CHECK_FALSE(is_fused_away(priced(gemm("W_O", 64), machines, machines.set)));
}

TEST_CASE("kernels of which nothing was seen keep their price") {
  const Machines machines;
  const Operator attention = parse_op("gqa_decode:batch=64,kv_len=4096", machines.learnt.facts).kernels.front();
  const Price learnt = priced(attention, machines, machines.set), below = priced(attention, machines, machines.below);
  CHECK(learnt.solo_us == below.solo_us);
  CHECK(learnt.kernel_set == below.kernel_set);
  CHECK(learnt.provenance == below.provenance);
}

TEST_CASE("a learnt set is the machine's default, and its other sets stay what they were") {
  const Machines machines;
  CHECK(machines.learnt.kernels("").name == "learnt-2026-11");
  CHECK(machines.below.name == "sglang-0.5.14");
  CHECK(machines.learnt.facts.hbm_GBps == load_profile("h100").facts.hbm_GBps);
}

TEST_CASE("what is written of a learnt set is read back") {
  const Machines machines;
  const std::string text = to_yaml(machines.set.learnt, 0);
  LearntKernels again = read_learnt(Spec::parse("learnt.yaml", text));
  again.over = machines.set.learnt.over;
  CHECK(to_yaml(again, 0) == text);
  CHECK(again.operators.at("W_O").factor == 2);
  CHECK(again.operators.at("W_O").family == "linear_bf16");
  CHECK(again.classes.at("gemm").range.at(Dimension::n).high == 8192);
}

TEST_CASE("a learnt set over no fitted one, and a machine that extends itself, are refused with the key") {
  const auto refused = [](const std::string& from, const std::string& to, const char* says) {
    const TemporaryFolder folder;
    std::string text = kMachine;
    text.replace(text.find(from), from.size(), to);
    const std::string file = folder.write("machine.yaml", text);
    check_refused({"price", file, "gemm:m=64"}, file + ":", says);
  };
  refused("over: sglang-0.5.14", "over: sglang-0.5.15", "over names an unknown kernel set 'sglang-0.5.15'");
  refused("over: sglang-0.5.14", "over: learnt-2026-11", "over names an unknown kernel set 'learnt-2026-11'");
  refused("factor: 2,", "factor: -2,", "factor must be from 0 to 1000000, not -2");
  refused("extends: h100", "extends: h101", "extends names an unknown hardware 'h101'");
  const TemporaryFolder folder;
  const std::string file = folder.write("machine.yaml", "name: a\nextends: ./machine.yaml\n");
  check_refused({"price", file, "gemm:m=64"}, file + ":2", "extends what is here");
}

}  // TEST_SUITE("hardware/learnt")
