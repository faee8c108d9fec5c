// A draft model in the place of MTP modules.
#include "architecture/draft.hpp"

#include <doctest/doctest.h>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"

TEST_SUITE("architecture/draft") {

using namespace moeline;

namespace {

double draft_parameters(const Architecture& model) {
  double sum = 0;
  for (const Module& module : mtp_modules(model)) sum += module.parameters();
  return sum;
}

}  // namespace

TEST_CASE("a draft's layers have the model's attention to all keys and a dense network in BF16") {
  const Architecture gpt_oss = with_draft(load_architecture("gpt-oss-120b"), 1);  // windows in every other layer
  CHECK(gpt_oss.mtp_layer.attention.window == 0);
  CHECK(gpt_oss.mtp_layer.attention.heads == 64);
  CHECK_FALSE(gpt_oss.mtp_layer.routed);
  CHECK(gpt_oss.mtp_layer.formats == LayerFormats{});
  const Architecture hybrid = with_draft(load_architecture("qwen3-next-80b-a3b"), 1);
  CHECK(hybrid.mtp_layer.attention.kind == AttentionKind::gqa);
  const Architecture sparse = with_draft(load_architecture("deepseek-v3.2"), 1);
  CHECK(sparse.mtp_layer.attention.selection.heads == 0);
}

TEST_CASE("a draft of two layers has twice the layers of one, and one projection") {
  const Architecture model = load_architecture("llama-3.1-405b");
  const double hidden = 16384, ffn = 53248, kv = 8 * 128;
  const double layer = hidden * (2 * hidden + 2 * kv) + 3 * hidden * ffn + 2 * hidden;
  const double projection = 2 * hidden * hidden;
  const double norms = 3 * hidden;  // of both inputs of the projection, and the one before the head
  CHECK(draft_parameters(with_draft(model, 1)) == layer + projection + norms);
  CHECK(draft_parameters(with_draft(model, 2)) == 2 * layer + projection + norms);
}

TEST_CASE("each drafted token passes through the projection, all layers of the draft and the head") {
  const Architecture model = with_draft(load_architecture("mixtral-8x7b"), 3);
  const std::vector<Block> blocks = blocks_of(model, 2);
  REQUIRE(blocks.size() == 1 + 32 + 1 + 2 * 5);
  const auto at = blocks.begin() + 34;
  for (const int pass : {0, 1}) {
    CHECK(at[pass * 5].kind == BlockKind::mtp);
    for (const int layer : {1, 2, 3}) CHECK(at[pass * 5 + layer].kind == BlockKind::dense_layer);
    CHECK(at[pass * 5 + 4].kind == BlockKind::head);
  }
  CHECK(blocks.back().layer == 32 + 5);
}

}  // TEST_SUITE("architecture/draft")
