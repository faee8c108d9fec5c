// Attention of training by cuDNN, and products that run four at a time.
#include <doctest/doctest.h>

#include "hardware/parse_op.hpp"
#include "hardware/price.hpp"

TEST_SUITE("hardware/cudnn") {

using namespace moeline;

namespace {

Price priced(const char* machine, const std::string& text) {
  const HardwareProfile profile = load_profile(machine);
  const RequestedOp op = parse_op(text, profile.facts);
  return price(op.kernels.front(), op.conditions, profile.facts, profile.kernels(""));
}

const std::string kLatent = "seq=8192,batch=2,heads=128,qk_dim=192,v_dim=128,impl=cudnn";
const std::string kGrouped = "seq=4096,batch=2,heads=64,kv_heads=8,qk_dim=128,v_dim=128,impl=cudnn";

// TFLOP/s as cuDNN's benchmark counts them: of the pairs that the mask leaves.
double tflops(const char* machine, const std::string& text, double products) {
  const double seq = text == kLatent ? 8192 : 4096, heads = text == kLatent ? 128 : 64;
  const double width = products > 2 ? (text == kLatent ? 3 * 192 + 2 * 128 : 5 * 128) : (text == kLatent ? 320 : 256);
  const char* pass = products > 2 ? "attention_backward:" : "attention_forward:";
  return 2 * 2 * heads * seq * seq / 2 * width / priced(machine, pass + text).solo_us / 1e6;
}

}  // namespace

TEST_CASE("published rates come out within 10 %: MLA of 8192 keys and grouped queries of 4096, forward and backward") {
  struct Published {
    const char* machine;
    const std::string& shape;
    double forward, backward;
  };
  for (const Published& each :
       {Published{"gb300-nvl72", kLatent, 1929, 1269}, Published{"gb200-nvl72", kLatent, 1597, 1158},
        Published{"h200", kLatent, 640, 500}, Published{"gb300-nvl72", kGrouped, 1738, 1218},
        Published{"h200", kGrouped, 616, 495}}) {
    CAPTURE(each.machine);
    CHECK(tflops(each.machine, each.shape, 2) == doctest::Approx(each.forward).epsilon(0.1));
    CHECK(tflops(each.machine, each.shape, 5) == doctest::Approx(each.backward).epsilon(0.1));
  }
}

TEST_CASE("where no set of a machine has cuDNN's kernels, they go as FlashAttention's") {
  const std::string shape = "seq=4096,batch=1,heads=64,kv_heads=8,qk_dim=128,v_dim=128";
  for (const char* pass : {"attention_forward:", "attention_backward:"}) {
    CHECK(priced("h800", pass + shape + ",impl=cudnn").solo_us == priced("h800", pass + shape).solo_us);
    CHECK(priced("h200", pass + shape + ",impl=cudnn").solo_us != priced("h200", pass + shape).solo_us);
  }
}

TEST_CASE("a set of one library's kernels is nobody's default") {
  CHECK(load_profile("gb300-nvl72").kernels("").name != "cudnn-9.27.0");
  CHECK(load_profile("h200").kernels("").name == "sglang-0.5.14");
}

TEST_CASE("products that run four at a time take less than one by one, each no less than at the peak") {
  const std::string shape = "gemm:dtype=fp8,m=2048,n=2048,k=768";
  const double alone = priced("b200", shape).solo_us, beside = priced("b200", shape + ",streams=4").solo_us;
  CHECK(beside < 0.75 * alone);
  CHECK(beside > 2.0 * 2048 * 2048 * 768 / 4500e6);
}

}  // TEST_SUITE("hardware/cudnn")
