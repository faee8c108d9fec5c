// Prices: what they are made of, and how they move with the machine.
#include <doctest/doctest.h>

#include "base/file.hpp"
#include "curves/curve.hpp"
#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"
#include "moe/attention_kernels.hpp"
#include "moe/kernels.hpp"
#include "moe/training.hpp"

TEST_SUITE("hardware/price") {

using namespace moeline;

namespace {

const HardwareProfile& h800() {
  static const HardwareProfile profile = load_profile("h800");
  return profile;
}

Price on(const Operator& op, int sms, const MachineFacts& facts = h800().facts, bool overlapped = true) {
  return price(op, {.sms = sms, .overlapped = overlapped}, facts, h800().kernels("deepseek-2025-02"));
}

Operator w_o() { return kernels::gemm(Family::gemm_fp8, "W_O", 4096, 7168, 16384); }

}  // namespace

TEST_CASE("more SMs never make a kernel slower") {
  for (int sms = 1; sms < 132; ++sms) {
    CHECK(on(w_o(), sms + 1).solo_us <= on(w_o(), sms).solo_us);
    CHECK(on(kernels::cast("cast", 4096, 7168), sms + 1).solo_us <= on(kernels::cast("cast", 4096, 7168), sms).solo_us);
  }
}

// By the fitted constants alone SGLang's GEMM of one row took 6.9 us on 165 SMs, where a cut of k fills them, and 5.7
// on 132.
TEST_CASE("more SMs than a kernel was measured on never make it slower: they may be left idle") {
  const auto us = [](const char* op, int sms) {
    const std::string share = std::to_string(sms / 132.0 * 989);
    const HardwareProfile machine = load_profile("h100", {"sms=" + std::to_string(sms), "bf16_tflops=" + share});
    const RequestedOp requested = parse_op(op, machine.facts);
    const KernelSet kernels = machine.kernels("sglang-0.5.14");
    return price_all(requested.kernels, requested.conditions, machine.facts, kernels).solo_us;
  };
  for (const char* op : {"gemm:m=1,n=1280,k=2048,dtype=bf16", "gqa_decode:batch=136,kv_len=488,heads=8,kv_heads=1"}) {
    CAPTURE(op);
    for (const int sms : {140, 148, 160, 165, 200}) CHECK(us(op, sms) <= us(op, 132) * (1 + 1e-9));
  }
}

TEST_CASE("no kernel beats the roofline of HBM or of the tensor cores, nor takes more than the machine has") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.spread = expected_spread(work.model, 64, 8);
  work.load = balanced_load(work.model, 4096, 64, work.spread);
  const MachineFacts& facts = h800().facts;
  for (const std::string& phase : training_phase_names()) {
    for (const Operator& op : training_phase(phase, work)) {
      const bool communication = is_communication(op.family);
      const Price p = on(op, communication ? 20 : 112);
      CAPTURE(op.name);
      CHECK(p.solo_us >= op.bytes / (facts.hbm_GBps * 1e3) * (1 - 1e-12));
      const bool bf16 = op.family == Family::gemm_bf16 || op.family == Family::attention_forward ||
                        op.family == Family::attention_backward;
      CHECK(p.solo_us >= op.flops / ((bf16 ? facts.bf16_tflops : facts.fp8_tflops) * 1e6));
      CHECK(p.hbm_GBps <= facts.hbm_GBps);
      CHECK(p.nic_GBps <= facts.nic_GBps);
      CHECK(p.nvlink_GBps <= facts.nvlink_GBps);
    }
  }
}

TEST_CASE("a transfer is bound by its SMs when they are few, by the NIC when they are many") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.spread = expected_spread(work.model, 64, 8);
  const Operator dispatch = dispatch_forward(work).back();
  CHECK(on(dispatch, 1).bound_by == "SMs");
  CHECK(on(dispatch, 20).bound_by == "NIC");
  CHECK(on(dispatch, 1).solo_us == doctest::Approx(2 * on(dispatch, 2).solo_us).epsilon(0.01));
  MachineFacts slow = h800().facts;
  slow.nic_GBps /= 4;
  CHECK(on(dispatch, 20, slow).solo_us == doctest::Approx(4 * on(dispatch, 20).solo_us).epsilon(0.1));
}

TEST_CASE("within a node a transfer is bound by NVLink or SMs") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.ep = 8;
  work.spread = expected_spread(work.model, 8, 8);
  CHECK(on(dispatch_forward(work).back(), 64).bound_by == "NVLink");
}

TEST_CASE("compute kernels beside DeepEP's transfers slow them down 1.16 to 1.65 times on 20 SMs, less on more") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.spread = expected_spread(work.model, 64, 8);
  for (const Operator& op :
       {dispatch_forward(work).back(), combine_backward(work).back(), combine_forward(work).back()}) {
    const auto stretch = [&](int sms) { return 1 / on(op, sms).disturbed_speed; };
    CHECK(on(op, 20).solo_us == on(op, 20, h800().facts, false).solo_us);
    CHECK(stretch(20) > 1.15);
    CHECK(stretch(20) < 1.70);
    CHECK(stretch(24) < stretch(20));
    CHECK(stretch(132) == 1);  // by then the wire alone binds
  }
}

TEST_CASE("an elastic kernel priced on fewer SMs wants no more than those") {
  CHECK(on(kernels::cast("cast", 4096, 7168), 66).sms == 66);
}

TEST_CASE("on a machine other than the one measured every price is extrapolated") {
  MachineFacts faster = h800().facts;
  faster.fp8_tflops *= 2;
  CHECK(on(w_o(), 112, faster).provenance == Provenance::extrapolated);
  CHECK(on(w_o(), 112, faster).note.text() == "other machine");
}

// Beside compute DeepEP was measured on 64 ranks and 20 SMs alone, with nothing beside it on 8 to 64 ranks and 24 SMs.
TEST_CASE("a transfer counts as measured on the ranks and SMs that were measured, whatever its bytes") {
  for (const int ep : {16, 32, 64, 128, 256}) {
    LayerWork work;
    work.model = load_architecture("deepseek-v3");
    work.ep = ep;
    work.spread = expected_spread(work.model, ep, 8);
    for (const Operator& op : {dispatch_forward(work).back(), combine_forward(work).back()}) {
      const bool alone_measured = ep <= 64;
      CHECK(on(op, 20).provenance == (ep == 64 ? Provenance::measured : Provenance::extrapolated));
      CHECK(on(op, 24).provenance == Provenance::extrapolated);
      CHECK(on(op, 24, h800().facts, false).provenance ==
            (alone_measured ? Provenance::interpolated : Provenance::extrapolated));
      CHECK(on(op, 20, h800().facts, false).note.text().find("sms 20 < 24") != std::string::npos);
    }
  }
}

TEST_CASE("a price outside the measured range says so") {
  CHECK(on(w_o(), 112).provenance == Provenance::interpolated);
  CHECK(on(w_o(), 112).note.empty());
  CHECK(on(w_o(), 111).provenance == Provenance::extrapolated);  // measured on 112 and 132 SMs
  CHECK(on(w_o(), 111).note.text() == "sms 111 < 112");
  CHECK(on(kernels::gemm(Family::gemm_fp8, "tiny", 16, 128, 128), 112).note.text() ==
        "m 16 < 64, n 128 < 512, k 128 < 512");
}

TEST_CASE("a GEMM of few rows is outside though its FLOPs are those of measured ones") {
  const Operator few_rows = kernels::gemm(Family::gemm_fp8, "W_O", 16, 7168, 16384);
  const Operator measured = kernels::gemm(Family::gemm_fp8, "64x2112x7168", 64, 2112, 7168);  // DeepGEMM's first table
  CHECK(few_rows.flops > measured.flops);
  CHECK(on(measured, 132).provenance == Provenance::interpolated);
  for (const char* set : {"deepseek-2025-02", "open-2025-late"}) {
    const Price p = price(few_rows, {.sms = 132}, h800().facts, h800().kernels(set));
    CHECK(p.provenance == Provenance::extrapolated);
    CHECK(p.note.text() == "m 16 < 64");
  }
}

TEST_CASE("a family that was measured at one place is measured there, and extrapolated anywhere else") {
  const auto prompt = [](double batch, double seq_len) {
    return prefill_core({.batch = batch,
                         .heads = 128,
                         .kv_heads = 128,
                         .query_len = seq_len,
                         .kv_len = seq_len,
                         .qk_dim = 192,
                         .v_dim = 128});
  };
  CHECK(on(prompt(1, 4096), 132).provenance == Provenance::measured);  // the training trace's
  CHECK(on(prompt(1, 4096), 132).note.empty());
  CHECK(on(prompt(2, 4096), 132).note.text() == "batch 2 > 1");
  CHECK(on(prompt(1, 2048), 132).note.text() == "query_len 2048 < 4096, kv_len 2048 < 4096");
  const Price late = price(prompt(1, 4096), {.sms = 132}, h800().facts, h800().kernels("open-2025-late"));
  CHECK(late.provenance == Provenance::interpolated);  // 1024 to 32768
}

TEST_CASE("small kernels are told apart by nothing: a lump of many, never called measured") {
  CHECK(on(kernels::small("fill"), 132).provenance == Provenance::interpolated);
}

TEST_CASE("BF16 GEMMs say whose curve prices them") {
  const Price gate = on(kernels::gemm(Family::gemm_bf16, "gate", 4096, 256, 7168), 132);
  CHECK(gate.provenance == Provenance::extrapolated);
  CHECK(gate.note.text() == "priced as gemm_fp8, n 256 < 512");
}

TEST_CASE("a decode's query rows say whether it was measured: each kernel set has its own") {
  const auto mla = [](double batch, double heads, double query_len) {
    return mla_decode_core({.batch = batch,
                            .heads = heads,
                            .kv_heads = 1,
                            .query_len = query_len,
                            .kv_len = 8192,
                            .qk_dim = 576,
                            .v_dim = 512});
  };
  const auto provenance = [&](const char* set, const Operator& op) {
    return price(op, {.sms = 132}, h800().facts, h800().kernels(set)).provenance;
  };
  // FlashMLA's own two figures
  CHECK(provenance("deepseek-2025-02", mla(128, 128, 2)) == Provenance::interpolated);
  CHECK(provenance("deepseek-2025-02", mla(128, 16, 1)) == Provenance::interpolated);
  CHECK(provenance("deepseek-2025-02", mla(64, 128, 2)) == Provenance::extrapolated);
  CHECK(provenance("deepseek-2025-02", mla(128, 128, 4)) == Provenance::extrapolated);
  // InferSim's table: 128 heads, one query
  CHECK(provenance("open-2025-late", mla(128, 128, 1)) == Provenance::interpolated);
  CHECK(provenance("open-2025-late", mla(128, 128, 2)) == Provenance::extrapolated);
  CHECK(provenance("open-2025-late", mla(128, 16, 1)) == Provenance::extrapolated);
}

TEST_CASE("a family without measurements is priced at the roofline and marked") {
  KernelSet bare = h800().kernels("deepseek-2025-02");
  bare.fits.clear();
  const Price p = price(w_o(), {.sms = 112}, h800().facts, bare);
  CHECK(p.provenance == Provenance::roofline);
  CHECK(p.note.text() == "no measurement");
  CHECK(p.solo_us == doctest::Approx(w_o().flops / (h800().facts.fp8_tflops * 1e6)));
}

TEST_CASE("what a kernel set lacks is borrowed from another and says so") {
  const Operator wgrad = kernels::gemm(Family::gemm_fp8_wgrad, "dW", 7168, 2048, 4096);
  const Price own = on(wgrad, 112);
  const Price borrowed = price(wgrad, {.sms = 112}, h800().facts, h800().kernels("open-2025-late"));
  CHECK(own.kernel_set == "deepseek-2025-02");
  CHECK(borrowed.kernel_set == "deepseek-2025-02");
  CHECK(borrowed.solo_us == own.solo_us);
}

TEST_CASE("what is carried over from another machine is extrapolated, the machine's own tables are not") {
  const HardwareProfile h100 = load_profile("h100");
  const Operator gemm = kernels::gemm(Family::gemm_fp8, "W_O", 4096, 7168, 16384);
  const Price carried = price(gemm, {.sms = 132}, h100.facts, h100.kernels(""));
  CHECK(carried.kernel_set == "h800: open-2025-late");
  CHECK(carried.provenance == Provenance::extrapolated);
  CHECK(carried.note.text() == "other machine");
  CHECK(carried.solo_us == price(gemm, {.sms = 132}, h800().facts, h800().kernels("open-2025-late")).solo_us);
}

TEST_CASE("no kernel is shorter than a small one") {
  const Operator tiny = kernels::cast("cast", 1, 128);
  CHECK(on(tiny, 132).solo_us >= h800().kernels("deepseek-2025-02")[Constant::small]);
}

TEST_CASE("BF16 GEMMs, priced by the FP8 curve, meet the router's in the trace within 30 %") {
  // means of four layers; none of them is fitted
  CHECK(on(kernels::gemm(Family::gemm_bf16, "gate", 4096, 256, 7168), 132).solo_us ==
        doctest::Approx(46.5).epsilon(0.3));
  CHECK(on(kernels::gemm(Family::gemm_bf16, "dgrad", 4096, 7168, 256), 132).solo_us ==
        doctest::Approx(40.3).epsilon(0.3));
}

TEST_CASE("a profile reads back as it was written") {
  CHECK(to_yaml(load_profile("h800")) == read_text(home() / "hwprofiles/h800.yaml"));
}

TEST_CASE("a set carried over can be chosen by name, and is another machine's") {
  const HardwareProfile h100 = load_profile("h100");
  const KernelSet february = h100.kernels("deepseek-2025-02");
  CHECK(february.name == "deepseek-2025-02");
  CHECK(february.fits.at("gemm_fp8").kernel_set == "h800: deepseek-2025-02");
  CHECK(february.fits.at("gemm_fp8").other_machine);
  CHECK(h100.kernels("").name == "sglang-0.5.14");  // its own, and the newest
  CHECK(h100.set_names() == std::vector<std::string>{"open-2025-late", "deepep_v2-2026-04", "trtllm-1.3.0",
                                                     "sglang-0.5.14", "cudnn-9.27.0", "deepseek-2025-02",
                                                     "open-2025-05"});
}

TEST_CASE(
    "in May 2025 DeepEP kept the own node off the NIC in its normal mode alone, and FlashMLA reached 660 TFLOPS") {
  const KernelSet may = h800().kernels("open-2025-05");
  CHECK(may[Constant::normal_own_node] == 0);
  CHECK(may[Constant::low_latency_own_node] == may[Constant::low_latency_nic]);
  const Operator decode = mla_decode_core(
      {.batch = 128, .heads = 128, .kv_heads = 1, .query_len = 2, .kv_len = 8192, .qk_dim = 576, .v_dim = 512});
  const double us = price(decode, {.sms = 132}, h800().facts, may).solo_us;
  CHECK(decode.flops / us / 1e6 == doctest::Approx(660).epsilon(1e-3));
}

TEST_CASE("overheads take clocks of the SMs: on a machine that differs by its clock alone they are shorter") {
  const KernelSet& late = h800().kernels("open-2025-late");
  MachineFacts faster = h800().facts;
  faster.sm_clock_mhz *= 1.1;
  const Operator decode = gqa_decode_core(
      {.batch = 1, .heads = 32, .kv_heads = 4, .query_len = 1, .kv_len = 1024, .qk_dim = 128, .v_dim = 128});
  for (const Operator& op : {kernels::small("small"), decode, kernels::cast("cast", 64, 7168)}) {
    CHECK(price(op, {.sms = 132}, faster, late).solo_us < price(op, {.sms = 132}, h800().facts, late).solo_us);
  }
}

TEST_CASE("prompts that a step has in part cost what part of them there is, not a whole one more") {
  const HardwareProfile h100 = load_profile("h100");
  const auto us = [&](double batch) {
    const Operator core = prefill_core(
        {.batch = batch, .heads = 16, .kv_heads = 1, .query_len = 3004, .kv_len = 4096, .qk_dim = 128, .v_dim = 128});
    return price(core, {.sms = 132}, h100.facts, h100.kernels("sglang")).solo_us;
  };
  CHECK(us(2.25) == doctest::Approx(us(2) + 0.25 * (us(3) - us(2))).epsilon(0.01));
}

TEST_CASE("kernels beside a transfer stretch its copies by as much whatever other links the machine is given") {
  const HardwareProfile a100 = load_profile("a100");
  MachineFacts wider = a100.facts;
  wider.nvlink_GBps *= 1.5;
  const RequestedOp dispatch = parse_op("dispatch:ep=4", a100.facts);
  const auto beside = [&](const MachineFacts& machine) {
    return price(dispatch.kernels.front(), {.sms = 24, .overlapped = true}, machine, a100.kernels("sglang"));
  };
  CHECK(beside(a100.facts).disturbed_speed < 1);
  CHECK(beside(wider).disturbed_speed == beside(a100.facts).disturbed_speed);
}

TEST_CASE("a set by name only is the newest, and neither the default nor a lender") {
  HardwareProfile h100 = load_profile("h100");
  std::erase_if(h100.kernel_sets, [](const KernelSet& set) { return set.known_constants() == 0; });  // of stacks
  REQUIRE(h100.kernel_sets.back().name == "deepep_v2-2026-04");
  REQUIRE(h100.kernel_sets.back().by_name_only);
  for (const char* needed : {"", "sm_copies", "all_to_all", "no such group"}) {
    CHECK(h100.kernels("", needed).name == "open-2025-late");
  }
  const KernelSet february = h100.kernels("deepseek-2025-02");
  CHECK(february.fits.at("sm_copies").kernel_set != "deepep_v2-2026-04");
  HardwareProfile nothing_else = h100;
  nothing_else.carried_over.clear();
  nothing_else.kernel_sets.erase(nothing_else.kernel_sets.begin());
  CHECK_THROWS_WITH_AS((void)nothing_else.kernels(""),
                       doctest::Contains("h100.yaml: has kernel sets by their name only"), SpecError);
  const KernelSet v2 = h100.kernels("deepep_v2-2026-04");
  const auto origin = [&](Constant constant) { return v2.origins[static_cast<std::size_t>(constant)]; };
  CHECK(origin(Constant::normal_nic) == "deepep_v2-2026-04");
  CHECK(origin(Constant::dispatch_copy) == "deepep_v2-2026-04");
  CHECK(origin(Constant::all_to_all_hop) == "open-2025-late");  // what its four figures do not tell
  CHECK(origin(Constant::normal_nvlink) == "open-2025-late");
  CHECK(origin(Constant::low_latency_nic) == "open-2025-late");
}

}  // TEST_SUITE("hardware/price")
