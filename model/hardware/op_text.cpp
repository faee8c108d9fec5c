#include "hardware/op_text.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "hardware/parse_op.hpp"
#include "moe/fused_experts.hpp"

namespace moeline {
namespace {

// "KIND:key=value,..."; what an OP has where the key is absent is left out.
class OpWriter {
 public:
  explicit OpWriter(std::string_view kind) : text_(kind) {}

  template <class Value>
  OpWriter& add(const char* key, const Value& value) {
    text_ += fmt::format("{}{}={}", text_.find(':') == std::string::npos ? ":" : ",", key, value);
    return *this;
  }
  template <class Value>
  OpWriter& add_unless(const Value& usual, const char* key, const Value& value) {
    return value == usual ? *this : add(key, value);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

constexpr std::string_view kLinear = "linear_";  // families of linear layers, by the format of their weights

std::string format_of_linear(const Operator& op) {
  return op.measured_as.starts_with(kLinear) ? op.measured_as.substr(kLinear.size()) : name_of(precision_of(op));
}

OpWriter dense_gemm(const Operator& op) {
  OpWriter writer(op.precision == Precision::int4 ? "linear" : "gemm");
  return writer.add("dtype", format_of_linear(op)).add("m", op.m).add("n", op.n).add("k", op.k);
}

OpWriter batched_gemm(const Operator& op) {
  OpWriter writer("batched_gemm");
  writer.add("dtype", name_of(precision_of(op))).add("heads", op.groups).add("m", op.m / op.groups);
  return writer.add("n", op.n).add("k", op.k);
}

OpWriter experts(const Operator& op) {
  const ExpertShape& e = op.experts;
  const bool by_fp8 = e.weights == Precision::mxfp4 && e.math == Precision::fp8;
  OpWriter writer("moe");
  writer.add("layout", name_of(e.layout)).add_unless(name_of(ExpertRole::layer), "part", name_of(e.role));
  writer.add("dtype", by_fp8 ? "mxfp4_fp8" : name_of(e.weights)).add("tokens", e.tokens).add("hidden", e.hidden);
  writer.add("inter", e.width).add("top_k", e.top_k).add("experts", e.experts).add("ep", e.ep);
  if (e.gate == 1) writer.add("gated", "false");
  if (e.backend == MoeBackend::trtllm_gen) writer.add("backend", "trtllm_gen");
  writer.add_unless(0.0, "rows", e.rows).add_unless(0.0, "hit", e.hit);
  return writer.add_unless(0.0, "deviation", op.rows_deviation).add_unless(0.0, "expected", op.expected_rows);
}

OpWriter latent_decode(const AttentionShape& a) {
  OpWriter writer("mla_decode");
  writer.add("batch", a.batch).add("kv_len", a.kv_len).add("query_len", a.query_len).add("heads", a.heads);
  return writer.add("qk_dim", a.qk_dim).add("v_dim", a.v_dim).add("kv_dtype", name_of(a.cache));
}

OpWriter grouped_decode(const AttentionShape& a) {
  OpWriter writer("gqa_decode");
  writer.add("batch", a.batch).add("kv_len", a.kv_len).add("query_len", a.query_len).add("heads", a.heads);
  writer.add("kv_heads", a.kv_heads).add("head_dim", a.qk_dim).add_unless(0.0, "window", a.window);
  return writer.add("kv_dtype", name_of(a.cache));
}

OpWriter prompt_attention(const Operator& op) {
  const AttentionShape& a = op.attention;
  OpWriter writer(name_of(op.family));
  writer.add("seq", a.query_len).add("batch", a.batch).add_unless(0.0, "cached_len", a.kv_len - a.query_len);
  writer.add("heads", a.heads).add("kv_heads", a.kv_heads).add("qk_dim", a.qk_dim).add("v_dim", a.v_dim);
  writer.add_unless(0.0, "window", a.window);
  return op.family == Family::attention_forward ? writer.add("dtype", name_of(a.math)) : writer;
}

OpWriter collective(const Operator& op) {
  OpWriter writer(name_of(op.family));
  writer.add("ranks", op.traffic.members).add("bytes", op.traffic.message_bytes);
  return op.measured_as == "custom_all_reduce" ? writer.add("impl", "custom") : writer;
}

// Of the kinds that an operator is written as; which of its fields its price goes by, only pricing it again tells.
std::optional<OpWriter> written(const Operator& op) {
  if (op.experts.role != ExpertRole::none) return experts(op);
  switch (row_of(op.family).kind) {
    case FamilyKind::gemm:
      return op.family == Family::gemm_bf16_batched ? batched_gemm(op) : dense_gemm(op);
    case FamilyKind::memory_bound:
      return OpWriter("memory").add("kind", name_of(op.family)).add("bytes", op.bytes);
    case FamilyKind::collective:
      return collective(op);
    case FamilyKind::attention:
      break;
    default:
      return std::nullopt;
  }
  switch (op.family) {
    case Family::mla_decode:
      return latent_decode(op.attention);
    case Family::gqa_decode:
      return grouped_decode(op.attention);
    case Family::attention_forward:
    case Family::attention_backward:
      return prompt_attention(op);
    default:
      return std::nullopt;
  }
}

bool same_price(const Price& one, const Price& other) {
  return one.solo_us == other.solo_us && one.family == other.family && one.provenance == other.provenance &&
         one.kernel_set == other.kernel_set && one.bound_by == other.bound_by;
}

}  // namespace

std::optional<std::string> op_text(const Operator& op, const PriceConditions& conditions, const Price& price,
                                   const MachineFacts& machine, const KernelSet& kernels) {
  std::optional<OpWriter> writer = written(op);
  if (!writer) return std::nullopt;
  writer->add_unless(static_cast<int>(machine.sms), "sms", conditions.sms).add_unless(1.0, "clock", conditions.clock);
  if (op.hot) writer->add("l2", "hot");
  try {
    const RequestedOp asked = parse_op(writer->text(), machine);
    const Price again = price_all(asked.kernels, asked.conditions, machine, kernels);
    if (same_price(again, price)) return writer->text();
  } catch (const SpecError&) {
    return std::nullopt;  // sizes that no OP has, as a fraction of a request
  }
  return std::nullopt;
}

}  // namespace moeline
