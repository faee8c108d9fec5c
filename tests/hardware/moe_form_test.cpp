// Forms of fused MoE layers: how their curves move with shape, layout and machine.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "curves/form.hpp"
#include "hardware/parse_op.hpp"
#include "routing/drawn_loads.hpp"

TEST_SUITE("hardware/moe_form") {

using namespace moeline;

namespace {

MachineFacts hopper() {
  MachineFacts facts;
  facts.sms = 132;
  facts.sm_clock_mhz = 1830;
  facts.fp8_tflops = 1979;
  facts.bf16_tflops = 989;
  facts.hbm_GBps = 3350;
  facts.l2_mb = 50;
  return facts;
}

MachineFacts blackwell() {
  MachineFacts facts = hopper();
  facts.sms = 148;
  facts.fp4_tflops = 9000;
  facts.fp8_tflops = 4500;
  facts.bf16_tflops = 2250;
  facts.hbm_GBps = 7700;
  facts.l2_mb = 126;
  return facts;
}

// Near the fitted ones: what is tested here holds for any.
const std::vector<double>& constants() {
  static const std::vector<double> kConstants = {20, 10, 0.2, 3, 10, 0.1, 2, 2, 1.1, 1.1};
  return kConstants;
}

double us_of(const std::string& form, const std::string& op, const MachineFacts& machine = hopper(),
             const std::vector<double>& parts = constants()) {
  const RequestedOp layer = parse_op(op, machine);
  double us = 0;
  for (const Operator& kernel : layer.kernels) {
    us += evaluate(form_named(form)->curve(kernel, layer.conditions.sms, machine), parts).us;
  }
  return us;
}

// Of layers that are several kernels.
std::vector<std::string> moe_form_names() {
  std::vector<std::string> names;
  for (const std::string& name : form_names()) {
    if (name.find("_moe") != std::string::npos && name != "mega_moe") names.push_back(name);
  }
  return names;
}

// A layer with one constant alone.
double us_of_part(const char* name, const std::string& op, const std::string& form = "cutlass_moe") {
  std::vector<double> parts;
  for (const FormPart& part : form_named(form)->parts) parts.push_back(part.name == name ? 1 : 0);
  return us_of(form, op, hopper(), parts);
}

}  // namespace

TEST_CASE("forms of fused experts have a constant for each that the tests name") {
  CHECK(moe_form_names().size() == 8);
  for (const std::string& name : moe_form_names()) CHECK(form_named(name)->parts.size() == constants().size());
}

TEST_CASE("a layer's kernels share one start-up, whatever its layout") {
  for (const char* layout : {"fused", "masked", "contiguous,eager=true"}) {
    CHECK(us_of_part("start_us", fmt::format("moe:layout={},l2=hot", layout)) == doctest::Approx(1));
  }
}

TEST_CASE("what launches a contiguous layer costs where the OP says that it is eager, hot or cold") {
  for (const char* l2 : {"hot", "cold"}) {
    CHECK(us_of_part("start_us", fmt::format("moe:layout=contiguous,l2={}", l2)) == 0);
    CHECK(us_of_part("start_us", fmt::format("moe:layout=contiguous,eager=true,l2={}", l2)) == doctest::Approx(1));
  }
  CHECK_THROWS_WITH_AS((void)parse_op("moe:layout=masked,eager=true", hopper()),
                       doctest::Contains("eager is for layout=contiguous"), SpecError);
}

TEST_CASE("hot experts never cost more than cold ones, whatever their layout") {
  for (const std::string& form : moe_form_names()) {
    for (const char* layout : {"fused", "masked", "contiguous", "contiguous,eager=true"}) {
      for (const int tokens : {8, 4096, 65536}) {
        const std::string op = fmt::format("moe:layout={},ep=64,tokens={}", layout, tokens);
        CAPTURE(op);
        CHECK(us_of(form, op + ",l2=hot") <= us_of(form, op + ",l2=cold"));
      }
    }
  }
}

TEST_CASE("more tokens never cost fused experts less") {
  for (const std::string& form : moe_form_names()) {
    for (const char* dtype : {"fp8", "bf16", "int4", "mxfp4_fp8"}) {
      for (const int ep : {1, 8, 64}) {
        double before = 0;
        for (int tokens = 1; tokens <= 65536; tokens += std::max(1, tokens / 8)) {
          CAPTURE(form);
          CAPTURE(tokens);
          const double us = us_of(form, fmt::format("moe:dtype={},tokens={},ep={}", dtype, tokens, ep));
          CHECK(us >= before * (1 - 1e-12));
          before = us;
        }
      }
    }
  }
}

TEST_CASE("fused experts cost no less of more hidden numbers, choices or width, and no more on more SMs") {
  for (const std::string& form : moe_form_names()) {
    CAPTURE(form);
    for (const int tokens : {1, 64, 4096}) {
      const std::string op = fmt::format("moe:tokens={}", tokens);
      CHECK(us_of(form, op + ",hidden=4096") <= us_of(form, op));
      CHECK(us_of(form, op + ",top_k=4") <= us_of(form, op));
      CHECK(us_of(form, op + ",moe_tp=2") <= us_of(form, op));
      CHECK(us_of(form, op) <= us_of(form, op + ",sms=66"));
      CHECK(us_of(form, op, blackwell()) < us_of(form, op));
    }
  }
}

TEST_CASE("experts without a gate cost less, the sorting of choices apart") {
  const std::vector<double> without_sorting = [] {
    std::vector<double> parts = constants();
    parts[1] = 0;
    return parts;
  }();
  for (const int tokens : {1, 64, 4096}) {
    const std::string op = fmt::format("moe:tokens={}", tokens);
    CHECK(us_of("cutlass_moe", op + ",gated=false", hopper(), without_sorting) < us_of("cutlass_moe", op));
  }
}

TEST_CASE("expert layers are no slower hot than cold, and equal where the weights outgrow L2") {
  for (const std::string& form : moe_form_names()) {
    CAPTURE(form);
    const std::string few = "moe:tokens=8,top_k=1,experts=8,hidden=2048,inter=512";
    CHECK(us_of(form, few + ",l2=hot") < us_of(form, few));
    CHECK(us_of(form, "moe:tokens=64,l2=hot") == us_of(form, "moe:tokens=64"));
  }
}

TEST_CASE("decode of fused experts is bound by the weights of the experts hit, which packed formats make less") {
  const double weights_us = 256.0 * 3 * 7168 * 2048 / 3350e3;
  CHECK(us_of_part("memory_roofline_multiple", "moe:tokens=128") == doctest::Approx(weights_us).epsilon(0.02));
  CHECK(us_of_part("memory_roofline_multiple", "moe:tokens=128,dtype=bf16") ==
        doctest::Approx(2 * weights_us).epsilon(0.02));
  CHECK(us_of_part("memory_roofline_multiple", "moe:tokens=128,dtype=mxfp4") ==
        doctest::Approx(weights_us * (0.5 + 1.0 / 32)).epsilon(0.03));
  CHECK(us_of_part("memory_roofline_multiple", "moe:tokens=4") == doctest::Approx(weights_us / 8).epsilon(0.02));
}

TEST_CASE("a large layer of fused experts runs its tiles at the peak") {
  const double peak_us = 2 * 3.0 * 7168 * 2048 * 8 * 65536 / 1979e6;
  CHECK(us_of_part("mainloop_roofline_multiple", "moe:tokens=65536") == doctest::Approx(peak_us).epsilon(0.01));
}

TEST_CASE(
    "experts at a tile's edge need what chance gives them: the mean of draws, expert by expert, with no step there") {
  constexpr int kExperts = 32;
  Operator kernel = parse_op("moe:layout=masked,tokens=256,experts=32,top_k=8", hopper()).kernels[0];
  REQUIRE(kernel.experts.role == ExpertRole::gate_up);
  kernel.expected_rows = 64;
  const std::vector<double> mainloop = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
  const auto tiles_us = [&](double rows, double deviation, const std::vector<int>& of_each) {
    Operator op = kernel;
    op.experts.rows = kExperts * rows;
    op.rows_deviation = deviation;
    op.group_rows = of_each;
    return evaluate(form_named("deepgemm_masked_moe")->curve(op, 132, hopper()), mainloop).us;
  };
  const double alike = tiles_us(64, 0, {}), one_more = tiles_us(65, 0, {});
  CHECK(one_more == doctest::Approx(2 * alike).epsilon(0.1));
  CHECK(tiles_us(64, 0, std::vector<int>(kExperts, 64)) == doctest::Approx(alike));
  double drawn = 0;
  constexpr int kDraws = 2000;
  BriefRandom random(5, 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<int> rows;
    for (int expert = 0; expert < kExperts; ++expert) rows.push_back(drawn_rows(64, 8, random));
    drawn += tiles_us(64, 0, rows) / kDraws;
  }
  CHECK(tiles_us(64, 8, {}) == doctest::Approx(drawn).epsilon(0.02));
  CHECK(tiles_us(63, 8, {}) == doctest::Approx(tiles_us(65, 8, {})).epsilon(0.15));
}

TEST_CASE("TensorRT-LLM's generated kernels pad an expert's width to 128, and pick tiles by all ranks' tokens") {
  const std::string narrow = "moe:dtype=bf16,tokens=1024,inter=2048,moe_tp=";
  CHECK(us_of("trtllm_gen_moe", narrow + "32") == us_of("trtllm_gen_moe", narrow + "16"));
  CHECK(us_of("cutlass_moe", narrow + "32") < us_of("cutlass_moe", narrow + "16"));
  // 64 rows of an expert: a tile of 64, but of 256 where eight ranks' tokens would fill it
  const auto mainloop_us = [](const char* form) {
    return us_of_part("mainloop_roofline_multiple", "moe:tokens=2048,ep=8", form);
  };
  CHECK(mainloop_us("trtllm_gen_moe") > 3 * mainloop_us("cutlass_moe"));
}

TEST_CASE("Triton's kernel untuned takes tiles of 64 rows as soon as there are more tokens than experts") {
  const auto mainloop_us = [](int tokens) {
    return us_of_part("mainloop_roofline_multiple", fmt::format("moe:dtype=bf16,tokens={}", tokens),
                      "triton_moe_default");
  };
  CHECK(mainloop_us(257) == doctest::Approx(4 * mainloop_us(256)).epsilon(0.01));
}

TEST_CASE("a rank whose experts get no row takes what its kernels take to start, and reads no weight") {
  const auto us = [](const std::string& rows) {
    return us_of("deepgemm_masked_moe", "moe:layout=masked,part=gate_up,ep=64,tokens=64" + rows);
  };
  CHECK(us(",rows=0,hit=0") > 0);
  CHECK(us(",rows=0,hit=0") < us(",rows=1,hit=1") / 1.5);
  CHECK(us_of_part("memory_roofline_multiple", "moe:ep=64,tokens=64,rows=0,hit=0") == 0);
  CHECK(us_of_part("mainloop_roofline_multiple", "moe:ep=64,tokens=64,rows=0,hit=0") == 0);
}

TEST_CASE("every rank goes through all choices and writes all tokens, however many ranks share the experts") {
  for (const char* part : {"routing_us_per_1000_choices", "output_roofline_multiple"}) {
    CHECK(us_of_part(part, "moe:tokens=4096,ep=64") == us_of_part(part, "moe:tokens=4096"));
  }
  CHECK(us_of_part("us_per_100_local_experts", "moe:ep=64") == doctest::Approx(0.04));
  CHECK(us_of_part("us_per_100_hit_experts", "moe:tokens=4") == doctest::Approx(0.32));
  CHECK(us_of_part("us_per_10_choices_of_a_token", "moe:") == 0);
  CHECK(us_of_part("us_per_10_choices_of_a_token", "moe:gated=false") == doctest::Approx(0.8));
}

TEST_CASE("what an OP of experts cannot be is refused by the key that says so") {
  const auto message_of = [](const std::string& op) -> std::string {
    try {
      (void)parse_op(op, hopper());
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  const auto names = [&](const char* op, const char* key) {
    CAPTURE(message_of(op));
    return message_of(op).find(key) != std::string::npos;
  };
  CHECK(names("moe:ep=7", "ep"));
  CHECK(names("moe:moe_tp=3", "moe_tp"));
  CHECK(names("moe:moe_tp=32", "moe_tp"));
  CHECK(names("moe:dtype=mxfp4,inter=2880,moe_tp=4", "moe_tp"));
  CHECK(names("moe:dtype=nvfp4,inter=2688,moe_tp=16", "moe_tp"));
  CHECK(names("moe:top_k=9,experts=8", "top_k"));
  CHECK(names("moe:ep=64,hit=5", "hit"));
  CHECK(names("moe:dtype=fp4", "dtype"));
  CHECK(names("moe:rows=100,deviation=11", "deviation"));
  CHECK(names("moe:layout=masked,part=routing", "part"));
  CHECK(names("moe:layout=mega,part=gate_up", "part"));
  CHECK(names("moe:part=gate", "part"));
  CHECK(names("moe:layout=padded", "layout"));
  CHECK(message_of("moe:dtype=bf16,moe_tp=32").empty());
}

TEST_CASE(
    "a layer in one kernel costs no less of more tokens, ranks' bytes, hidden numbers or width, nor on fewer SMs") {
  const std::vector<double> parts = {60, 15, 0.5, 1.3, 1.3};
  REQUIRE(form_named("mega_moe")->parts.size() == parts.size());
  MachineFacts machine = blackwell();
  machine.nvlink_GBps = 900;
  const auto us = [&](const std::string& more) {
    return us_of("mega_moe", "moe:layout=mega,dtype=mxfp4_fp8,ep=8," + more, machine, parts);
  };
  double before = 0;
  for (int tokens = 8; tokens <= 1 << 17; tokens *= 2) {
    const double now = us("tokens=" + std::to_string(tokens));
    CHECK(now >= before);
    before = now;
  }
  for (const char* tokens : {"tokens=64", "tokens=65536"}) {
    CAPTURE(tokens);
    const std::string op = std::string(tokens) + ",";
    CHECK(us(op + "hidden=7168") >= us(op + "hidden=4096"));
    CHECK(us(op + "inter=4096") >= us(op + "inter=2048"));
    CHECK(us(op + "top_k=8") >= us(op + "top_k=4"));
    CHECK(us(op + "sms=74") >= us(op + "sms=148"));
  }
}

TEST_CASE("Marlin's tiles are the first of 8, 16, 32, 48 and 64 rows that an expert's mean fills to less than 0.9") {
  const std::vector<double> products_alone = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
  const auto us = [&](int tokens) {  // each of 384 experts gets a 48th of them
    return us_of("marlin_moe", fmt::format("moe:dtype=int4,experts=384,tokens={}", tokens), hopper(), products_alone);
  };
  CHECK(us(346) == doctest::Approx(16.0 / 8 * us(345)));
  CHECK(us(692) == doctest::Approx(32.0 / 16 * us(691)));
  CHECK(us(1383) == doctest::Approx(48.0 / 32 * us(1382)));
  CHECK(us(2074) == doctest::Approx(64.0 / 48 * us(2073)));
  CHECK(us(3072) == doctest::Approx(us(2074)));
}

}  // TEST_SUITE("hardware/moe_form")
