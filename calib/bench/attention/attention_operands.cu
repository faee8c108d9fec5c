#include "attention_operands.cuh"

namespace moeline::bench {

AttentionCase attention_case(const Case& c) {
  const auto number = [&](const char* name) { return static_cast<int>(c.number(name)); };
  return {{number("batch"), number("heads"), number("kv_heads"), number("query_len"), number("kv_len")},
          number("qk_dim"),
          number("v_dim")};
}

std::int64_t forward_bytes(const AttentionCase& c) {
  return 2 * (c.query_rows() + c.key_rows()) * (c.qk_dim + c.v_dim) + 4 * c.statistics();
}

ForwardOperands::ForwardOperands(const AttentionCase& c, int sets)
    : dims(c),
      query(c.query_rows() * c.qk_dim, sets),
      key(c.key_rows() * c.qk_dim, sets),
      value(c.key_rows() * c.v_dim, sets),
      output(c.query_rows() * c.v_dim, sets),
      log_sum(c.statistics(), sets) {}

void ForwardOperands::fill_inputs(cudaStream_t stream) const {
  fill(query, 1, -1, 1, stream);
  fill(key, 2, -1, 1, stream);
  fill(value, 3, -1, 1, stream);
}

ForwardArguments ForwardOperands::arguments(int turn) const {
  return {dims.shape,           heads_at_once(dims.shape, dims.qk_dim, dims.v_dim),
          bits(query.at(turn)), bits(key.at(turn)),
          bits(value.at(turn)), bits(output.at(turn)),
          log_sum.at(turn)};
}

void allow_forward(const AttentionCase& c, const Device& device) {
  with_dims(c, [&]<int kQkDim, int kVDim>() {
    allow_shared(attention_forward<kQkDim, kVDim>, ForwardTile<kQkDim, kVDim>::kSharedBytes, device);
  });
}

void launch_forward(const ForwardOperands& operands, cudaStream_t stream, int turn) {
  const AttentionShape& shape = operands.dims.shape;
  with_dims(operands.dims, [&]<int kQkDim, int kVDim>() {
    using Tile = ForwardTile<kQkDim, kVDim>;
    const int blocks = shape.batch * shape.heads * divide_up(shape.query_len, Tile::kQueries);
    attention_forward<kQkDim, kVDim>
        <<<static_cast<unsigned>(blocks), Tile::kThreads, Tile::kSharedBytes, stream>>>(operands.arguments(turn));
    CHECK_LAUNCH();
  });
}

HeadRows::HeadRows(const __nv_bfloat16* tensor, int batch, int length, int heads, int head, int dim)
    : dim_(static_cast<std::size_t>(dim)) {
  std::vector<__nv_bfloat16> host(static_cast<std::size_t>(length) * dim_);
  const std::size_t row = sizeof(__nv_bfloat16) * dim_;
  CHECK_STATUS(cudaMemcpy2D(host.data(), row, tensor + offset_of(batch, length, 0, heads, head, dim),
                            row * static_cast<std::size_t>(heads), row, static_cast<std::size_t>(length),
                            cudaMemcpyDeviceToHost));
  values_ = numbers(host);
}

std::vector<double> fetch_row(const __nv_bfloat16* tensor, int batch, int length, int position, int heads, int head,
                              int dim) {
  return numbers(fetch(tensor + offset_of(batch, length, position, heads, head, dim), dim));
}

}  // namespace moeline::bench
