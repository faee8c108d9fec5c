// Kernels of attention with a state: those of the model are those that a table's rows are read as.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hardware/parse_op.hpp"
#include "hardware/profile.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("moe/state_kernels") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kPrompts = "{phase: prefill, tokens: 8192, prompt_len: 4096}";
const std::string kDecode = "{phase: decode, batch_size: 64, kv_len: 4096}";

// Of the first GPU's first layer, with EP 8 and the attention whole.
std::vector<Operator> attention_of(const std::string& model, const std::string& workload, int layer) {
  const Setup setup = load_setup(served_scenario(), {"model=" + model, "workload=" + workload, "parallelism={ep: 8}"});
  const InferenceWork work = setup.inference_work({0, 1});
  return inference_phase("attn", work, layer_of(work.model, layer));
}

Operator of_text(const std::string& text) {
  const RequestedOp op = parse_op(text, load_profile("b200").facts);
  REQUIRE(op.kernels.size() == 1);
  return op.kernels.front();
}

bool same(const Operator& a, const Operator& b) {
  const AttentionShape &p = a.attention, &q = b.attention;
  return a.measured_as == b.measured_as && a.flops == b.flops && a.bytes == b.bytes && a.m == b.m && a.n == b.n &&
         p.batch == q.batch && p.query_len == q.query_len && p.kv_len == q.kv_len && p.heads == q.heads &&
         p.kv_heads == q.kv_heads && p.qk_dim == q.qk_dim && p.v_dim == q.v_dim;
}

// The model's kernel of that family of the tables is the OP's.
void check_emits(const std::vector<Operator>& ops, const std::string& text) {
  CAPTURE(text);
  const Operator asked = of_text(text);
  CAPTURE(asked.measured_as);
  CHECK(std::count_if(ops.begin(), ops.end(), [&](const Operator& op) { return same(op, asked); }) == 1);
}

struct Model {
  const char* name;
  int layer;
  const char* shape;  // of its states
  const char* chunk;
};

}  // namespace

TEST_CASE("an OP of a state is the kernel that the model runs, whatever keeps the state") {
  for (const Model& model : {Model{"qwen3-next-80b-a3b", 0, "kind=delta_net,heads=32,key_heads=16", "64"},
                             Model{"kimi-k3", 1, "kind=kda,heads=96", "64"},
                             Model{"nemotron-3-nano", 0, "kind=mamba,heads=64,key_heads=8,v_dim=64", "128"}}) {
    CAPTURE(model.name);
    const std::vector<Operator> prompts = attention_of(model.name, kPrompts, model.layer);
    check_emits(prompts, fmt::format("state_scan:{},batch=2,seq=4096,chunk={}", model.shape, model.chunk));
    check_emits(prompts, fmt::format("state_convolution:{},phase=prefill,batch=2,seq=4096", model.shape));
    const std::vector<Operator> decode = attention_of(model.name, kDecode, model.layer);
    check_emits(decode, fmt::format("state_update:{},batch=64", model.shape));
    check_emits(decode, fmt::format("state_convolution:{},phase=decode,batch=64", model.shape));
  }
}

TEST_CASE("a state is read once and written after each token, so that drafted ones can be refused") {
  const double state = 8.0 * 32 * 128 * 128 * 4, tensors = 8.0 * (2.0 * 16 * 128 + 2 * 32 * 128) * 2;
  for (const double tokens : {1.0, 2.0, 4.0}) {
    const std::string text = fmt::format("state_update:batch=8,heads=32,key_heads=16,query_len={}", tokens);
    CHECK(of_text(text).bytes == doctest::Approx((1 + tokens) * state + tokens * tensors));
  }
}

TEST_CASE("Kimi's convolutions are kernels of their own, a state's heads share keys evenly, and formats are named") {
  CHECK(of_text("state_convolution:kind=kda").measured_as == "conv_qkv_prefill");
  CHECK(of_text("state_convolution:kind=mamba,phase=decode").measured_as == "conv_decode");
  CHECK(says(refusal_of([] { (void)of_text("state_scan:heads=32,key_heads=5"); }), "must divide heads"));
  CHECK(says(refusal_of([] { (void)of_text("state_update:kind=rwkv"); }), "delta_net"));
}

}  // TEST_SUITE("moe/state_kernels")
