// Forms of attention to chosen keys and of hyper-connections: how their curves move with shape and machine.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "calib/fit/fit_form.hpp"
#include "curves/form.hpp"
#include "hardware/parse_op.hpp"

TEST_SUITE("hardware/sparse_form") {

using namespace moeline;

namespace {

MachineFacts hopper() {
  MachineFacts facts;
  facts.sms = 132;
  facts.sm_clock_mhz = 1830;
  facts.fp8_tflops = 1978;
  facts.bf16_tflops = 989;
  facts.hbm_GBps = 4800;
  facts.l2_mb = 50;
  return facts;
}

// Near those of H200.
const std::vector<double>& constants_of(const std::string& form) {
  static const std::vector<double> kScores = {2.8, 0.38, 1.85, 0.6}, kChoice = {3.3, 0.68, 1.4, 1.1, 1, 2, 1.2},
                                   kCore = {6, 1.5, 0.25, 0.5}, kStreams = {1.7, 1.3, 0.84, 0.34};
  if (form == "indexer_scores") return kScores;
  if (form == "indexer_choice") return kChoice;
  return form == "hyper_connection" ? kStreams : kCore;
}

double us_of(const std::string& form, const std::string& op) {
  const RequestedOp parsed = parse_op(op, hopper());
  double us = 0;
  for (const Operator& kernel : parsed.kernels) {
    us += evaluate(form_named(form)->curve(kernel, parsed.conditions.sms, hopper()), constants_of(form)).us;
  }
  return us;
}

struct Kernel {
  std::string form, kind;
};

const std::vector<Kernel>& kernels_over_keys() {
  static const std::vector<Kernel> kKernels = {{"indexer_scores", "index_scores"},
                                               {"indexer_choice", "index_choice"},
                                               {"sparse_prefill", "sparse_attention"},
                                               {"sparse_prefill_sm100", "sparse_attention"}};
  return kKernels;
}

std::string shape(int batch, int query_len, int kv_len) {
  return fmt::format(":batch={},query_len={},kv_len={}", batch, query_len, kv_len);
}

}  // namespace

TEST_CASE("longer caches and more sequences never take less time") {
  for (const Kernel& kernel : kernels_over_keys()) {
    CAPTURE(kernel.form);
    for (const int query_len : {1, 16, 200, 1024, 4096}) {
      for (const int batch : {1, 3, 16, 64}) {
        double before = 0;
        for (int kv_len = 4096; kv_len <= 262144; kv_len = kv_len * 5 / 4) {
          CAPTURE(batch);
          CAPTURE(query_len);
          CAPTURE(kv_len);
          const double us = us_of(kernel.form, kernel.kind + shape(batch, query_len, kv_len));
          CHECK(us >= before);
          CHECK(us_of(kernel.form, kernel.kind + shape(2 * batch, query_len, kv_len)) >= us);
          before = us;
        }
      }
    }
  }
}

TEST_CASE("longer prompts and more tokens never take less time") {
  for (const Kernel& kernel : kernels_over_keys()) {
    double before = 0;
    for (int query_len = 16; query_len <= 16384; query_len *= 2) {
      const double us = us_of(kernel.form, kernel.kind + shape(2, query_len, 16384));
      CHECK(us >= before);
      before = us;
    }
  }
  for (const char* part : {"pre", "post"}) {
    double before = 0;
    for (int tokens = 1; tokens < 100000; tokens = tokens * 3 / 2 + 1) {
      const double us = us_of("hyper_connection", fmt::format("hyper_connection:part={},tokens={}", part, tokens));
      CHECK(us >= before);
      before = us;
    }
  }
}

TEST_CASE("kernels on operands that L2 does not hold never take less time") {
  for (const Kernel& kernel : kernels_over_keys()) {
    for (const int query_len : {16, 1024, 8192}) {
      Operator op = parse_op(kernel.kind + shape(1, query_len, 32768), hopper()).kernels.at(0);
      const auto us = [&](bool hot) {
        op.hot = hot;
        return evaluate(form_named(kernel.form)->curve(op, 132, hopper()), constants_of(kernel.form)).us;
      };
      CHECK(us(false) >= us(true));
    }
  }
  const std::string mixing = "hyper_connection:tokens=256";
  CHECK(us_of("hyper_connection", mixing) >= us_of("hyper_connection", mixing + ",l2=hot"));
}

TEST_CASE("scores of a prompt take the longest walk of one SM, those of a token in decode a share of all") {
  const auto scores = [](int batch, int query_len) {
    return us_of("indexer_scores", "index_scores" + shape(batch, query_len, 131072));
  };
  CHECK(scores(1, 16) ==
        doctest::Approx(scores(4, 16)).epsilon(0.02));  // 32 tiles of 64 heads and two queries, an SM each
  CHECK(scores(1, 1) < scores(1, 16) / 20);
}

TEST_CASE("a query that sees no more keys than it chooses lists them, whatever they are") {
  const auto choice = [](int kv_len) { return us_of("indexer_choice", "index_choice" + shape(8, 256, kv_len)); };
  CHECK(choice(512) == doctest::Approx(choice(2048)));
  CHECK(choice(4096) > choice(2048));
}

TEST_CASE("chosen keys cost as much however many there were, and blocks of 64 heads come in waves") {
  const auto core = [](int query_len, int heads, int kv_len) {
    return us_of("sparse_prefill",
                 "sparse_attention" + shape(1, query_len, kv_len) + fmt::format(",heads={},distinct=2048", heads));
  };
  CHECK(core(132, 64, 8192) == doctest::Approx(core(132, 64, 131072)));
  CHECK(core(66, 128, 8192) == doctest::Approx(core(132, 64, 8192)).epsilon(0.01));
  CHECK(core(133, 64, 8192) > 1.8 * core(132, 64, 8192));
  CHECK(core(132, 8, 8192) == doctest::Approx(core(132, 64, 8192)).epsilon(0.03));  // heads are padded
}

TEST_CASE("a sparse form's fit gives back the times that its constants made") {
  for (const Kernel& kernel : kernels_over_keys()) {
    const Form& form = *form_named(kernel.form);
    std::vector<FormRow> rows;
    for (const int batch : {1, 4, 16}) {
      for (const int query_len : {16, 64, 256, 1024, 4096}) {
        for (const int kv_len : {4096, 16384, 65536, 131072}) {
          const RequestedOp op = parse_op(kernel.kind + shape(batch, query_len, kv_len), hopper());
          FormRow row{{form.curve(op.kernels[0], op.conditions.sms, hopper())}};
          row.measured_us = predict(row, constants_of(kernel.form));
          rows.push_back(std::move(row));
        }
      }
    }
    const std::vector<double> found = fit_form(form, rows);
    for (const FormRow& row : rows) CHECK(predict(row, found) == doctest::Approx(row.measured_us).epsilon(0.02));
  }
}

TEST_CASE("OPs of sparse attention refuse what cannot be") {
  CHECK_THROWS_AS((void)parse_op("index_scores:query_len=64,kv_len=32", hopper()), SpecError);
  CHECK_THROWS_AS((void)parse_op("sparse_attention:phase=decode,distinct=4096", hopper()), SpecError);
  CHECK_THROWS_AS((void)parse_op("hyper_connection:part=middle", hopper()), SpecError);
}

}  // TEST_SUITE("hardware/sparse_form")
