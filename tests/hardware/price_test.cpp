// Prices: what they are made of, and how they move with the machine.
#include <doctest/doctest.h>

#include "calib/fit/deepep_observations.hpp"
#include "hardware/curve.hpp"
#include "hardware/price.hpp"
#include "moe/kernels.hpp"
#include "moe/training.hpp"

using namespace moeline;

namespace {

const HardwareProfile& h800() {
  static const HardwareProfile profile = load_profile("h800");
  return profile;
}

Price on(const Operator& op, int sms, const MachineFacts& facts = h800().facts, bool overlapped = true) {
  return price(op, {.sms = sms, .overlapped = overlapped}, facts, h800().kernels(""));
}

Operator w_o() { return kernels::gemm(Family::gemm_fp8, "W_O", 4096, 7168, 16384); }

}  // namespace

TEST_CASE("a persistent GEMM costs whole waves: one tile more than a wave costs a wave more") {
  const auto columns = [](double n) { return kernels::gemm(Family::gemm_fp8, "g", 1024, n, 7168); };
  const double wave = 14 * 128;  // 8 x 14 tiles on 112 SMs
  CHECK(on(columns(wave), 112).solo_us == on(columns(wave / 2), 112).solo_us);
  CHECK(on(columns(wave + 1), 112).solo_us == doctest::Approx(2 * on(columns(wave), 112).solo_us));
}

TEST_CASE("more SMs never make a kernel slower") {
  for (int sms = 1; sms < 132; ++sms) {
    CHECK(on(w_o(), sms + 1).solo_us <= on(w_o(), sms).solo_us);
    CHECK(on(kernels::cast("cast", 4096, 7168), sms + 1).solo_us <= on(kernels::cast("cast", 4096, 7168), sms).solo_us);
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
      const bool communication = op.family >= Family::notify;
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
  CHECK(on(dispatch, 1).solo_us == doctest::Approx(2 * on(dispatch, 2).solo_us));
  MachineFacts slow = h800().facts;
  slow.nic_GBps /= 4;
  CHECK(on(dispatch, 20, slow).solo_us == doctest::Approx(4 * on(dispatch, 20).solo_us));
}

TEST_CASE("within a node a transfer is bound by NVLink or SMs") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.ep = 8;
  work.spread = expected_spread(work.model, 8, 8);
  CHECK(on(dispatch_forward(work).back(), 64).bound_by == "NVLink");
}

TEST_CASE("DeepEP alone is faster than inside an overlapped chunk, by 1.16 to 1.65") {
  LayerWork work;
  work.model = load_architecture("deepseek-v3");
  work.spread = expected_spread(work.model, 64, 8);
  for (const Operator& op :
       {dispatch_forward(work).back(), combine_backward(work).back(), combine_forward(work).back()}) {
    const double inflation = on(op, 20).solo_us / on(op, 20, h800().facts, false).solo_us;
    CHECK(inflation > 1.15);
    CHECK(inflation < 1.70);
  }
}

TEST_CASE("fitted on EP64 alone, DeepEP's February bandwidths at EP16 and EP32 are met within 7 %") {
  struct Row {
    int ep;
    double dispatch_GBps, combine_GBps;  // logical: the own node's tokens count
  };
  for (const Row& row : {Row{16, 43, 43}, Row{32, 44, 47}}) {
    LayerWork work;
    work.model = benchmark_gating(load_architecture("deepseek-v3"), row.ep / 8);
    work.ep = row.ep;
    work.spread = expected_spread(work.model, row.ep, 8);
    const Operator dispatch = dispatch_forward(work).back();
    const Operator combine = combine_forward(work).back();
    const auto GBps = [&](const Operator& op) {
      return op.traffic.rdma_bytes / on(op, 24, h800().facts, false).solo_us / 1e3;
    };
    CHECK(GBps(dispatch) == doctest::Approx(row.dispatch_GBps).epsilon(0.07));
    CHECK(GBps(combine) == doctest::Approx(row.combine_GBps).epsilon(0.07));
  }
}

TEST_CASE("an elastic kernel priced on fewer SMs wants no more than those") {
  CHECK(on(kernels::cast("cast", 4096, 7168), 66).sms == 66);
}

TEST_CASE("on a machine other than the one measured every price is extrapolated") {
  MachineFacts faster = h800().facts;
  faster.fp8_tflops *= 2;
  CHECK(on(w_o(), 112, faster).provenance == Provenance::extrapolated);
}

TEST_CASE("only the number of ranks that was measured counts as measured, whatever the bytes") {
  for (const int ep : {16, 32, 64, 128, 256}) {
    LayerWork work;
    work.model = load_architecture("deepseek-v3");
    work.ep = ep;
    work.spread = expected_spread(work.model, ep, 8);
    for (const Operator& op : {dispatch_forward(work).back(), combine_forward(work).back()}) {
      const Provenance expected = ep == 64 ? Provenance::interpolated : Provenance::extrapolated;
      CHECK(on(op, 20).provenance == expected);
      CHECK(on(op, 20, h800().facts, false).provenance == expected);
    }
  }
}

TEST_CASE("a price outside the measured range says so") {
  CHECK(on(w_o(), 112).provenance == Provenance::interpolated);
  CHECK(on(w_o(), 132).provenance == Provenance::extrapolated);  // measured on 112 SMs only
  CHECK(on(kernels::gemm(Family::gemm_fp8, "tiny", 16, 128, 128), 112).provenance == Provenance::extrapolated);
}

TEST_CASE("a family without measurements is priced at the roofline and marked") {
  KernelSet bare = h800().kernels("");
  bare.fits.clear();
  const Price p = price(w_o(), {.sms = 112}, h800().facts, bare);
  CHECK(p.provenance == Provenance::roofline);
  CHECK(p.solo_us == doctest::Approx(w_o().flops / (h800().facts.fp8_tflops * 1e6)));
}

TEST_CASE("a profile reads back as it was written") {
  CHECK(load_profile("h800").kernels("deepseek-2025-02").constants == h800().kernels("").constants);
  CHECK(h800().kernel_sets.front().constants.size() <= 30);
}
