// Kernels of sparse attention and of hyper-connections: an OP is what the model launches.
#include "moe/attention_kernels.hpp"

#include <fmt/format.h>

#include <doctest/doctest.h>

#include "hardware/parse_op.hpp"
#include "moe/module_names.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("moe/sparse_kernels") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::vector<Operator> attention_of(const std::string& model, const std::string& workload, int layer = 10) {
  const Setup setup = load_setup(served_scenario(), {"model=" + model, "workload=" + workload, "parallelism={ep: 8}"});
  const InferenceWork work = setup.inference_work({0, 1});
  return inference_phase("attn", work, layer_of(work.model, layer));
}

Operator launched(const std::vector<Operator>& ops, const std::string& name) {
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const Operator& op) { return op.name == name; });
  REQUIRE(found != ops.end());
  return *found;
}

Operator asked(const std::string& op) {
  MachineFacts facts;
  facts.sms = 148;
  return parse_op(op, facts).kernels.at(0);
}

void check_same(const Operator& a, const Operator& b) {
  CHECK(a.family == b.family);
  CHECK(a.measured_as == b.measured_as);
  CHECK(a.flops == doctest::Approx(b.flops));
  CHECK(a.bytes == doctest::Approx(b.bytes));
  CHECK(a.items == doctest::Approx(b.items));
  CHECK(a.m == b.m);
  CHECK(a.n == b.n);
  CHECK(a.k == b.k);
  CHECK(a.attention.batch == b.attention.batch);
  CHECK(a.attention.heads == b.attention.heads);
  CHECK(a.attention.query_len == b.attention.query_len);
  CHECK(a.attention.kv_len == b.attention.kv_len);
  CHECK(a.attention.qk_dim == b.attention.qk_dim);
  CHECK(a.attention.v_dim == b.attention.v_dim);
}

const std::string kPrompt = "{phase: prefill, tokens: 8192, prompt_len: 8192}";
const std::string kDecode = "{phase: decode, batch_size: 32, kv_len: 65536}";

}  // namespace

TEST_CASE("OPs of DeepSeek-V3.2's sparse attention are the kernels that its prompts launch") {
  const auto ops = attention_of("deepseek-v3.2", kPrompt);
  check_same(launched(ops, "indexer scores"), asked("index_scores:batch=1,query_len=8192,kv_len=8192"));
  check_same(launched(ops, "top-k of the scores"), asked("index_choice:batch=1,query_len=8192,kv_len=8192"));
  check_same(launched(ops, "sparse attention core"), asked("sparse_attention:batch=1,query_len=8192,kv_len=8192"));
}

TEST_CASE("and those that tokens in decode launch, whose core is dense MLA's over the chosen keys") {
  const auto ops = attention_of("deepseek-v3.2", kDecode);
  check_same(launched(ops, "indexer scores"), asked("index_scores:batch=32,query_len=1,kv_len=65536"));
  check_same(launched(ops, "top-k of the scores"), asked("index_choice:batch=32,query_len=1,kv_len=65536"));
  const Operator core = launched(ops, "sparse attention core");
  const std::string cache = core.attention.cache == Precision::bf16 ? "bf16" : "fp8";
  check_same(core, asked("sparse_attention:phase=decode,batch=32,kv_len=65536,kv_dtype=" + cache));
  const Operator dense = asked("mla_decode:batch=32,kv_len=2048,kv_dtype=" + cache);
  CHECK(core.measured_as == dense.measured_as);
  CHECK(core.flops == dense.flops);
  CHECK(core.bytes == dense.bytes);
}

TEST_CASE("queries that are verified together choose keys apart: each is a sequence of its own") {
  const Operator drafts = asked("sparse_attention:phase=decode,batch=16,query_len=4");
  const Operator single = asked("sparse_attention:phase=decode,batch=64,query_len=1");
  check_same(drafts, single);
}

TEST_CASE("OPs of hyper-connections are the kernels that DeepSeek-V4 launches before and behind attention") {
  const auto ops = attention_of("deepseek-v4-flash", kDecode);
  check_same(launched(ops, "mix hidden states"), asked("hyper_connection:part=pre,tokens=32,hidden=4096"));
  check_same(launched(ops, "add to hidden states"), asked("hyper_connection:part=post,tokens=32,hidden=4096"));
}

TEST_CASE("a choice of blocks, scored in BF16, is another library's kernel, which no table has") {
  const auto ops = attention_of("minimax-m3", kDecode);
  CHECK(launched(ops, "indexer scores").measured_as.empty());
  CHECK(launched(ops, "top-k of the scores").measured_as.empty());
  CHECK(launched(ops, "sparse attention core").measured_as.empty());
}

}  // TEST_SUITE("moe/sparse_kernels")
