// Linear layers whose weights have four bits and are multiplied in BF16.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"

TEST_SUITE("hardware/unpacked_weights") {

using namespace moeline;

namespace {

const MachineFacts& a100() {
  static const MachineFacts kFacts = load_profile("a100").facts;
  return kFacts;
}

// With every start-up and multiple 1.
double us_of(int m, int n, int k, const char* l2 = "cold") {
  const Form& form = *form_named("trtllm_int4_sm80");
  const RequestedOp op = parse_op(fmt::format("linear:dtype=int4,m={},n={},k={},l2={}", m, n, k, l2), a100());
  REQUIRE(op.kernels.size() == 1);
  const std::vector<double> ones(form.parts.size(), 1);
  return evaluate(form.curve(op.kernels[0], op.conditions.sms, a100()), ones).us;
}

}  // namespace

TEST_CASE("weights of four bits are one kernel without a cast, and a family of their own") {
  const RequestedOp op = parse_op("linear:dtype=int4,m=16,n=4096,k=8192", a100());
  REQUIRE(op.kernels.size() == 1);
  CHECK(op.kernels[0].measured_as == "linear_int4");
  CHECK(op.kernels[0].flops == 2.0 * 16 * 4096 * 8192);
  CHECK(op.kernels[0].bytes == 4096.0 * 8192 * bytes_per_weight(Precision::int4) + 2.0 * 16 * (4096 + 8192));
}

TEST_CASE("few rows take what the packed weights take from HBM, many what tensor cores take in BF16") {
  constexpr int kWide = 16384;
  const double weights_us = double{kWide} * kWide * bytes_per_weight(Precision::int4) / (a100().hbm_GBps * 1e3);
  CHECK(us_of(1, kWide, kWide) > weights_us);
  CHECK(us_of(1, kWide, kWide) < 1.5 * weights_us);
  const double math_us = 2.0 * 8192 * kWide * kWide / (a100().bf16_tflops * 1e6);
  CHECK(us_of(8192, kWide, kWide) > math_us);
  CHECK(us_of(8192, kWide, kWide) < 2.5 * math_us);  // the clock under power at its most
}

TEST_CASE("unpacked weights never cost less of more rows, or cold") {
  for (const int n : {256, 4096, 16384}) {
    double before = 0;
    for (const int m : {1, 4, 16, 32, 64, 128, 256, 1024, 8192}) {
      CAPTURE(m);
      CAPTURE(n);
      const double us = us_of(m, n, 4096);
      CHECK(us >= before);
      CHECK(us_of(m, n, 4096, "hot") <= us);
      before = us;
    }
  }
}

}  // TEST_SUITE("hardware/unpacked_weights")
