// Forms of attention with a state: how their curves move with shape and machine.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "calib/fit/fit_form.hpp"
#include "curves/form.hpp"
#include "hardware/parse_op.hpp"

TEST_SUITE("hardware/state_form") {

using namespace moeline;

namespace {

MachineFacts hopper() {
  MachineFacts facts;
  facts.sms = 132;
  facts.sm_clock_mhz = 1830;
  facts.bf16_tflops = 989;
  facts.hbm_GBps = 4800;
  facts.l2_mb = 50;
  return facts;
}

struct Kernel {
  const char* form;
  const char* op;
  std::vector<double> constants;  // near the fitted ones: what is tested here holds for any
  std::vector<int> lengths;
  const char* length;
};

const std::vector<Kernel>& kernels() {
  static const std::vector<int> kPrompts = {1, 7, 8, 63, 64, 65, 512, 4096, 16384}, kTokens = {1, 2, 4, 8};
  static const std::vector<Kernel> kKernels = {
      {"chunked_delta_rule", "state_scan:", {20, 18, 1.3, 5, 5, 5, 0.7}, kPrompts, "seq"},
      {"delta_rule_update", "state_update:", {5.4, 1.9, 0.7, 0.6, 0.6}, kTokens, "query_len"},
      {"causal_convolution", "state_convolution:phase=prefill,", {2, 1.7, 0.13, 0.25, 0.4}, kPrompts, "seq"},
      {"causal_convolution_update", "state_convolution:phase=decode,", {3.7, 1.5, 0.17, 0.1}, kTokens, "seq"},
  };
  return kKernels;
}

std::string text_of(const Kernel& kernel, double batch, double heads, int length, const char* more = "") {
  return fmt::format("{}batch={},heads={},{}={}{}", kernel.op, batch, heads, kernel.length, length, more);
}

double us_of(const Kernel& kernel, const std::string& text) {
  const RequestedOp op = parse_op(text, hopper());
  return evaluate(form_named(kernel.form)->curve(op.kernels.front(), op.conditions.sms, hopper()), kernel.constants).us;
}

}  // namespace

TEST_CASE("forms of states have a constant for each that the tests name") {
  for (const Kernel& kernel : kernels()) CHECK(form_named(kernel.form)->parts.size() == kernel.constants.size());
}

TEST_CASE("more sequences, heads and tokens never cost a state's kernels less, hot or cold") {
  for (const Kernel& kernel : kernels()) {
    for (const char* l2 : {"", ",l2=hot"}) {
      for (const int batch : {1, 2, 16, 64, 512}) {
        for (const int heads : {2, 16, 64}) {
          double shorter = 0;
          for (const int length : kernel.lengths) {
            const std::string text = text_of(kernel, batch, heads, length, l2);
            CAPTURE(text);
            const double us = us_of(kernel, text);
            CHECK(us >= shorter);
            CHECK(us <= us_of(kernel, text_of(kernel, 2 * batch, heads, length, l2)));
            CHECK(us <= us_of(kernel, text_of(kernel, batch, 2 * heads, length, l2)));
            shorter = us;
          }
        }
      }
    }
  }
}

TEST_CASE("states are no slower hot than cold, and equal where they outgrow L2") {
  for (const Kernel& kernel : kernels()) {
    for (const int batch : {1, 8, 64, 4096}) {
      const std::string cold = text_of(kernel, batch, 32, kernel.lengths.back());
      CAPTURE(cold);
      CHECK(us_of(kernel, cold + ",l2=hot") <= us_of(kernel, cold));
      if (batch == 4096) CHECK(us_of(kernel, cold + ",l2=hot") == us_of(kernel, cold));
    }
    const std::string small = text_of(kernel, 16, 16, 1);
    CAPTURE(small);
    CHECK(us_of(kernel, small + ",l2=hot") <= us_of(kernel, small));
  }
}

TEST_CASE("more SMs never make a state's kernel slower") {
  for (const Kernel& kernel : kernels()) {
    for (const int batch : {1, 16, 256}) {
      double fewer = us_of(kernel, text_of(kernel, batch, 16, kernel.lengths.back(), ",sms=16"));
      for (const int sms : {33, 66, 100, 132}) {
        const double us =
            us_of(kernel, text_of(kernel, batch, 16, kernel.lengths.back(), fmt::format(",sms={}", sms).c_str()));
        CHECK(us <= fewer);
        fewer = us;
      }
    }
  }
}

TEST_CASE("one long prompt is a chain of chunks, as many short ones run side by side") {
  const Kernel& scan = kernels().front();
  const double lone = us_of(scan, "state_scan:batch=1,seq=32768,heads=8");
  CHECK(lone > 1.5 * us_of(scan, "state_scan:batch=32,seq=1024,heads=8"));
  CHECK(lone > 0.95 * 512 * 1.3);  // 512 chunks, 1.3 us each
}

TEST_CASE("constants of a state's kernels are found again in the times that they made") {
  for (const Kernel& kernel : kernels()) {
    CAPTURE(kernel.form);
    const Form& form = *form_named(kernel.form);
    std::vector<FormRow> rows;
    for (const int batch : {1, 2, 4, 16, 64, 256, 1024}) {
      for (const int heads : {4, 16, 64, 96}) {
        for (const int length : kernel.lengths) {
          const RequestedOp op = parse_op(text_of(kernel, batch, heads, length, ",l2=hot"), hopper());
          FormRow row{{form.curve(op.kernels.front(), op.conditions.sms, hopper())}};
          row.measured_us = predict(row, kernel.constants);
          rows.push_back(std::move(row));
        }
      }
    }
    const std::vector<double> found = fit_form(form, rows);
    for (const FormRow& row : rows) CHECK(predict(row, found) == doctest::Approx(row.measured_us).epsilon(0.02));
  }
}

}  // TEST_SUITE("hardware/state_form")
