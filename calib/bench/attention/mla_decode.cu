// MLA's decode attention over the latent cache, with the merge of its splits where there are several.
#include <cmath>
#include <memory>

#include "attention_grid.hpp"
#include "attention_operands.cuh"
#include "compare.hpp"
#include "facts.hpp"
#include "mla_decode_plan.hpp"

namespace moeline::bench {
namespace {

/// DeepSeek-V3's: the scores are those of heads of 128 + 64, before absorption.
const float kScale = 1 / std::sqrt(192.0f);

struct Operands {
  Operands(const DecodeShape& s, const DecodePlan& p, int sets)
      : shape(s),
        plan(p),
        query(rows() * kLatentKeyDim, sets),
        cache(std::int64_t{s.batch} * s.kv_len * kLatentKeyDim, sets),
        output(rows() * kLatentDim, sets),
        split_output(p.splits > 1 ? p.splits * rows() * kLatentDim : 1, 1),
        split_log_sum(p.splits > 1 ? p.splits * rows() : 1, 1) {}

  DecodeShape shape;
  DecodePlan plan;
  Operand<__nv_bfloat16> query, cache, output;
  Operand<float> split_output, split_log_sum;  // one for all turns: what was just written may well be in the L2 cache

  [[nodiscard]] std::int64_t rows() const { return std::int64_t{shape.batch} * shape.query_len * shape.heads; }
};

DecodeShape shape_of(const Case& c) {
  const auto number = [&](const char* name) { return static_cast<int>(c.number(name)); };
  return {number("batch"), number("heads"), number("query_len"), number("kv_len")};
}

std::int64_t bytes_of(const DecodeShape& s) {
  const std::int64_t rows = std::int64_t{s.batch} * s.query_len * s.heads;
  return 2 * (rows * (kLatentKeyDim + kLatentDim) + std::int64_t{s.batch} * s.kv_len * kLatentKeyDim);
}

/// Calls `run` with the rows of a block as template argument.
template <class Run>
void with_rows(const DecodePlan& plan, Run run) {
  if (plan.rows_per_block == 16) return run.template operator()<16>();
  if (plan.rows_per_block == 32) return run.template operator()<32>();
  run.template operator()<64>();
}

void launch(const Operands& o, cudaStream_t stream, int turn) {
  const bool split = o.plan.splits > 1;
  const DecodeArguments arguments{o.shape,
                                  kScale,
                                  o.plan.tiles_per_split,
                                  bits(o.query.at(turn)),
                                  bits(o.cache.at(turn)),
                                  bits(o.output.at(turn)),
                                  split ? o.split_output.at(0) : nullptr,
                                  split ? o.split_log_sum.at(0) : nullptr};
  const dim3 grid(static_cast<unsigned>(o.plan.row_tiles), static_cast<unsigned>(o.plan.splits),
                  static_cast<unsigned>(o.shape.batch));
  with_rows(o.plan, [&]<int kRows>() {
    using Tile = DecodeTile<kRows>;
    mla_decode<kRows><<<grid, Tile::kThreads, Tile::kSharedBytes, stream>>>(arguments);
  });
  if (split) mla_decode_merge<<<static_cast<unsigned>(o.rows()), kMergeThreads, 0, stream>>>(arguments, o.plan.splits);
  CHECK_LAUNCH();
}

void check(const Operands& o, int batch) {
  const DecodeShape& s = o.shape;
  const std::int64_t rows = std::int64_t{s.query_len} * s.heads;
  const auto cache = numbers(
      fetch(o.cache.at(0) + std::int64_t{batch} * s.kv_len * kLatentKeyDim, std::int64_t{s.kv_len} * kLatentKeyDim));
  const Rows keys{cache.data(), kLatentKeyDim, kLatentKeyDim}, values{cache.data(), kLatentKeyDim, kLatentDim};
  for (const auto row : sampled_places(rows, 3)) {
    const std::int64_t place = batch * rows + row, visible = s.kv_len - s.query_len + 1 + row / s.heads;
    const auto query = numbers(fetch(o.query.at(0) + place * kLatentKeyDim, kLatentKeyDim));
    const auto expected =
        attend(query.data(), keys, values, static_cast<std::size_t>(visible), static_cast<double>(kScale));
    require_close(numbers(fetch(o.output.at(0) + place * kLatentDim, kLatentDim)), expected.output,
                  kAttentionTolerance);
  }
}

Kernel prepare(const Bench& bench, const Case& c) {
  const DecodeShape shape = shape_of(c);
  const DecodePlan plan = plan_decode(shape, bench.device.sms);
  with_rows(plan, [&]<int kRows>() { allow_shared(mla_decode<kRows>, DecodeTile<kRows>::kSharedBytes, bench.device); });
  auto o = std::make_shared<Operands>(shape, plan, cold_sets(bench.device, bytes_of(shape)));
  fill(o->query, 1, -1, 1, bench.stream);
  fill(o->cache, 2, -1, 1, bench.stream);
  return {[o](cudaStream_t stream, int turn) { launch(*o, stream, turn); },
          [o](cudaStream_t stream) {
            launch(*o, stream, 0);
            CHECK_STATUS(cudaStreamSynchronize(stream));
            check(*o, o->shape.batch - 1);
          }};
}

}  // namespace

Fact mla_decode_fact() {
  return kernel_fact(
      "mla_decode", needs_ampere, [](const Device&, Preset preset) { return mla_decode_cases(preset); }, prepare);
}

}  // namespace moeline::bench
