// Layers of fused experts: what their kernels compute and move.
#include "moe/fused_experts.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "moe/module_names.hpp"

TEST_SUITE("moe/fused_experts") {

using namespace moeline;

namespace {

// DeepSeek-V3's routed experts on one of eight ranks.
ExpertShape deepseek(double tokens, Precision weights = Precision::fp8, Precision math = Precision::fp8) {
  ExpertShape shape;
  shape.tokens = tokens;
  shape.hidden = 7168;
  shape.width = 2048;
  shape.top_k = 8;
  shape.experts = 256;
  shape.ep = 8;
  shape.weights = weights;
  shape.math = math;
  return shape;
}

ExpertShape laid_out(ExpertShape shape, ExpertLayout layout) {
  shape.layout = layout;
  return shape;
}

double flops_of(const ExpertShape& shape) {
  const std::vector<Operator> ops = fused_experts(shape);
  return std::accumulate(ops.begin(), ops.end(), 0.0, [](double sum, const Operator& op) { return sum + op.flops; });
}

double bytes_of(const ExpertShape& shape) {
  const std::vector<Operator> ops = fused_experts(shape);
  return std::accumulate(ops.begin(), ops.end(), 0.0, [](double sum, const Operator& op) { return sum + op.bytes; });
}

std::vector<ExpertRole> roles_of(const ExpertShape& shape) {
  const std::vector<Operator> ops = fused_experts(shape);
  std::vector<ExpertRole> roles;
  for (const Operator& op : ops) roles.push_back(op.experts.role);
  return roles;
}

}  // namespace

TEST_CASE("a layer of fused experts is six kernels, and fewer where rows arrive permuted") {
  using enum ExpertRole;
  CHECK(roles_of(deepseek(4096)) == std::vector<ExpertRole>{routing, permute, gate_up, activation, down, finalise});
  CHECK(roles_of(laid_out(deepseek(4096), ExpertLayout::contiguous)) ==
        std::vector<ExpertRole>{permute, gate_up, activation, down, finalise});
  CHECK(roles_of(laid_out(deepseek(4096), ExpertLayout::masked)) == std::vector<ExpertRole>{gate_up, activation, down});
}

TEST_CASE("every kernel says which measured layer it is of, and which module") {
  const std::vector<Operator> ops = fused_experts(deepseek(4096));
  for (const Operator& op : ops) {
    CHECK(op.measured_as == "moe_fp8");
    CHECK(op.module.starts_with("routed experts/"));
  }
  CHECK(measured_expert_layer(deepseek(1, Precision::nvfp4, Precision::nvfp4)) == "moe_nvfp4");
  CHECK(measured_expert_layer(deepseek(1, Precision::mxfp4, Precision::bf16)) == "moe_mxfp4");
  CHECK(measured_expert_layer(deepseek(1, Precision::mxfp4, Precision::fp8)) == "moe_mxfp4_fp8");
  CHECK(measured_expert_layer(laid_out(deepseek(1), ExpertLayout::masked)) == "moe_masked_fp8");
  CHECK(measured_expert_layer(laid_out(deepseek(1), ExpertLayout::contiguous)) == "moe_contiguous_fp8");
  ExpertShape plain = deepseek(1, Precision::bf16, Precision::bf16);
  plain.gate = 1;
  CHECK(measured_expert_layer(plain) == "moe_bf16_nongated");
}

TEST_CASE("FLOPs of fused experts are two for each parameter of the experts chosen") {
  const double parameters = 3.0 * 7168 * 2048;  // of an expert
  CHECK(flops_of(deepseek(4096)) == doctest::Approx(2 * parameters * 8 * 4096 / 8));
  CHECK(flops_of(laid_out(deepseek(4096), ExpertLayout::masked)) == doctest::Approx(2 * parameters * 4096));
  ExpertShape plain = deepseek(4096);
  plain.gate = 1;
  CHECK(flops_of(plain) == doctest::Approx(2 * parameters * 4096 * 2 / 3));
}

TEST_CASE("a contiguous layout multiplies whole tiles, and says how much of that is padding") {
  const std::vector<Operator> ops = fused_experts(laid_out(deepseek(4096 + 256), ExpertLayout::contiguous));
  for (const Operator& op : ops) {
    if (!is_gemm(op.family)) continue;
    CHECK(op.m == 32 * 256);  // 136 rows of each of the 32
    CHECK(op.flops - op.padding_flops == doctest::Approx(2 * 4352 * op.n * op.k));
  }
}

TEST_CASE("few tokens read the weights of few experts, as they are stored") {
  const double parameters = 3.0 * 7168 * 2048;
  CHECK(expert_rows(deepseek(1)).hit == 1);
  CHECK(expert_rows(deepseek(16)).hit == 16);
  CHECK(expert_rows(deepseek(64)).hit == 32);
  CHECK(expert_rows(deepseek(64)).each == 2);
  CHECK(bytes_of(deepseek(1)) == doctest::Approx(parameters).epsilon(0.01));
  CHECK(bytes_of(deepseek(16)) == doctest::Approx(16 * parameters).epsilon(0.01));
  CHECK(bytes_of(deepseek(16, Precision::nvfp4, Precision::nvfp4)) ==
        doctest::Approx(16 * parameters * (0.5 + 1.0 / 16)).epsilon(0.01));
  CHECK(bytes_of(deepseek(16, Precision::mxfp4, Precision::bf16)) ==
        doctest::Approx(16 * parameters * (0.5 + 1.0 / 32)).epsilon(0.01));
}

TEST_CASE("the rows and experts that a shape names take the place of balanced ones") {
  ExpertShape shape = deepseek(4096);
  CHECK(expert_rows(shape).rows == 4096);
  shape.rows = 300;
  shape.hit = 3;
  CHECK(expert_rows(shape).hit == 3);
  CHECK(expert_rows(shape).each == 100);
  shape.hit = 1000;  // there are not so many
  CHECK(expert_rows(shape).hit == 32);
}

// Four ranks with three tokens each, which choose two of eight experts. This rank's two get seven rows of five tokens.
TEST_CASE("each kernel walks the tokens of its buffer: all gathered, those received, or those there in a padded one") {
  ExpertShape shape = deepseek(12, Precision::bf16, Precision::bf16);
  shape.top_k = 2;
  shape.experts = 8;
  shape.ep = 4;
  shape.rows = 7;
  shape.hit = 2;
  const auto kernel = [](const ExpertShape& of, ExpertRole role) {
    for (const Operator& op : fused_experts(of)) {
      if (op.experts.role == role) return op;
    }
    return Operator{};
  };
  const auto rows_moved = [&](const ExpertShape& of, ExpertRole role) {
    return kernel(of, role).bytes / (number_bytes(Precision::bf16) * of.hidden);
  };
  const auto rows_multiplied = [&](const ExpertShape& of) { return kernel(of, ExpertRole::down).m; };

  SUBCASE("gathered: every token is read for its choices, and every one is written, with zeroes where it has no row") {
    CHECK(kernel(shape, ExpertRole::routing).items == 12 * 2);
    CHECK(rows_moved(shape, ExpertRole::permute) == 7 + 7);  // no more tokens than rows are read
    CHECK(rows_multiplied(shape) == 7);
    CHECK(rows_moved(shape, ExpertRole::finalise) == 7 + 12);
  }
  SUBCASE("padded: the sort goes through every slot's choices, all else through the tokens that are there") {
    shape.received = 5;
    CHECK(kernel(shape, ExpertRole::routing).items == 12 * 2);
    CHECK(rows_moved(shape, ExpertRole::permute) == 5 + 7);
    CHECK(rows_multiplied(shape) == 7);
    CHECK(rows_moved(shape, ExpertRole::finalise) == 7 + 5);
  }
  SUBCASE("compacted: there is nothing to sort, rows are padded to whole tiles and multiplied") {
    shape.layout = ExpertLayout::contiguous;
    shape.tokens = 5;
    CHECK(kernel(shape, ExpertRole::routing).name.empty());
    CHECK(rows_moved(shape, ExpertRole::permute) == 7 + 7);
    CHECK(rows_multiplied(shape) == 2 * 128);
    CHECK(rows_moved(shape, ExpertRole::finalise) == 7 + 5);
  }
}

TEST_CASE("fused experts multiply in the format that their rows are in") {
  const auto format_of_products = [](const ExpertShape& shape) {
    const std::vector<Operator> ops = fused_experts(shape);
    std::set<Precision> formats;
    for (const Operator& op : ops) {
      if (is_gemm(op.family)) formats.insert(precision_of(op));
    }
    return formats;
  };
  CHECK(format_of_products(deepseek(64)) == std::set{Precision::fp8});
  CHECK(format_of_products(deepseek(64, Precision::nvfp4, Precision::nvfp4)) == std::set{Precision::nvfp4});
  CHECK(format_of_products(deepseek(64, Precision::mxfp4, Precision::fp8)) == std::set{Precision::fp8});
  CHECK(format_of_products(deepseek(64, Precision::int4, Precision::bf16)) == std::set{Precision::bf16});
}

}  // TEST_SUITE("moe/fused_experts")
