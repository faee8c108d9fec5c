#include "hardware/parse_op.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/names.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/attention_kernels.hpp"
#include "moe/fused_experts.hpp"
#include "moe/small_kernels.hpp"

namespace moeline {
namespace {

struct Kind {
  const char* name;
  const char* keys;
  RequestedOp (*parse)(const std::string& text, const MachineFacts& machine);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"linear",
       "dtype=fp8|bf16|fp8_tensor|fp8_static|nvfp4|int4,m=4096,n=7168,k=16384: GEMM, and below BF16 the cast of its "
       "input (int4: "
       "of "
       "weights alone, without)",
       linear_op},
      {"gemm",
       "dtype=fp8|bf16|fp8_tensor|fp8_static|nvfp4,m=4096,n=7168,k=16384,streams=1 of so many alike that run at a time",
       gemm_op},
      {"batched_gemm", "dtype=bf16|fp8,heads=128,m=64 rows of each head,n=512,k=128", batched_gemm_op},
      {"grouped_gemm",
       "layout=contiguous|masked,dtype=fp8|bf16,groups=4,m=8192 (masked: 256) rows of each group,n=4096,k=7168: of "
       "gated "
       "experts, 8 of 256 for each token",
       grouped_gemm_op},
      {"moe",
       "dtype=fp8|fp8_tensor|bf16|nvfp4|mxfp4|mxfp4_fp8|int4,tokens=4096 of the whole EP "
       "group,hidden=7168,inter=2048,top_k=8,experts=256,ep=1,moe_tp=1,pad=1 that a rank's width and hidden are "
       "rounded up to,gated=true|false,layout=fused|masked|contiguous|"
       "mega (with its transfers),received=TOKENS: those of them that an all-to-all brought into a buffer for all,"
       "rows=TOKENS x TOP_K / EP,hit=as many of the rank's experts as get rows of balanced "
       "loads,eager=false|true "
       "(contiguous: with its host),part=layer|routing|permute|gate_up|activation|down|finalise: all of it or one "
       "kernel,deviation=0 rows by which an expert's scatter,expected=0 that tiles are chosen for (both: by the mean)",
       moe_op},
      {"mla_decode", "batch=64,kv_len=4096,query_len=1,heads=128,qk_dim=576,v_dim=512,kv_dtype=bf16|fp8",
       mla_decode_op},
      {"gqa_decode", "batch=64,kv_len=4096,query_len=1,heads=64,kv_heads=4,head_dim=128,kv_dtype=bf16|fp8,window=0",
       gqa_decode_op},
      {"attention_forward",
       "seq=4096,batch=1,cached_len=0,heads=128,kv_heads=HEADS,qk_dim=192,v_dim=128,window=0,dtype=bf16|fp8,impl=flash_"
       "attention|cudnn",
       attention_forward_op},
      {"attention_backward",
       "seq=4096,batch=1,cached_len=0,heads=128,kv_heads=HEADS,qk_dim=192,v_dim=128,window=0,impl=flash_attention|"
       "cudnn",
       attention_backward_op},
      {"state_scan",
       "kind=delta_net|kda|mamba|lightning,batch=1,seq=4096,heads=32,key_heads=HEADS,qk_dim=128,v_dim=128,chunk=64,"
       "state_bytes=4: prompts through linear attention",
       state_scan_op},
      {"state_update",
       "kind=delta_net|kda|mamba|lightning,batch=64,query_len=1,heads=32,key_heads=HEADS,qk_dim=128,v_dim=128,"
       "state_bytes=4",
       state_update_op},
      {"state_convolution",
       "phase=prefill|decode,kind=delta_net|kda|mamba,batch=1 (decode: 64),seq=4096 (decode: 1),heads=32,"
       "key_heads=HEADS,qk_dim=128,v_dim=128,width=4",
       state_convolution_op},
      {"index_scores", "batch=1,query_len=4096,kv_len=16384,heads=64,head_dim=128,dtype=fp8|bf16: keys by an indexer",
       index_scores_op},
      {"index_choice", "batch=1,query_len=4096,kv_len=16384,top_k=2048: the best of the scores, hot", index_choice_op},
      {"sparse_attention",
       "phase=prefill|decode,batch=1 (decode: 64),query_len=4096 (decode: 1),kv_len=16384,heads=128,top_k=2048,"
       "qk_dim=576,v_dim=512,distinct=BATCH x KV_LEN keys that some query chose,kv_dtype=bf16|fp8: to chosen latents",
       sparse_attention_op},
      {"hyper_connection", "part=pre|post,tokens=4096,hidden=7168,streams=4,times=1 one after the other",
       hyper_connection_op},
      {"memory",
       "kind=streaming|rowwise|swiglu|cast_transpose|requantize|strided|norm|head_norm|head_copy|rotary_store|"
       "activation|expert_choice|embedding_rows|logits_cast|token_choice,bytes=117440512",
       memory_op},
      {"all_reduce", "ranks=8,gpus_per_node=THE MACHINE'S,bytes=58720256 of a rank's message,impl=nccl|custom",
       all_reduce_op},
      {"all_gather", "ranks=8,gpus_per_node=THE MACHINE'S,bytes=58720256 gathered,impl=nccl", all_gather_op},
      {"reduce_scatter", "ranks=8,gpus_per_node=THE MACHINE'S,bytes=58720256 before the scatter,impl=nccl",
       reduce_scatter_op},
      {"all_to_all", "ranks=8,gpus_per_node=THE MACHINE'S,bytes=58720256 of a rank to all,impl=nccl", all_to_all_op},
      {"send", "bytes=58720256,to=node|gpu: one message, to the next node or beside", send_op},
      {"dispatch",
       "mode=normal|low_latency|nvlink|hybrid_ep|deepep_v2|pplx,ep=64,tokens=4096 (low_latency, pplx: "
       "128),hidden=7168,top_k=8,"
       "experts=256 (given: chosen without groups),gating=model|benchmark|distinct,"
       "redundant_experts=the fewest with which ep divides them all,dtype=fp8 (nvlink: fp8|bf16|nvfp4, hybrid_ep: "
       "bf16|fp8, deepep_v2, pplx: fp8|bf16),"
       "part=transfer (nvlink: transfer|prepare, deepep_v2: all|transfer|epilogue),l2=cold|hot; deepep_v2: "
       "topology=hybrid|direct,layout=contiguous|expanded,gpus_per_node=THE MACHINE'S",
       dispatch_op},
      {"combine", "the same, dtype=bf16 (nvlink: bf16|nvfp4)", combine_op},
  };
  return kKinds;
}

}  // namespace

RequestedOp parse_op(const std::string& text, const MachineFacts& machine) {
  const std::string name = text.substr(0, text.find(':'));
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (same_but_for_case(name, kind.name)) return kind.parse(kind.name + text.substr(name.size()), machine);
    names.emplace_back(kind.name);
  }
  throw SpecError(unknown_name("op", name, names));
}

std::string op_help() {
  std::string text =
      "OP is KIND or KIND:key=value,...; what is left out is as shown (DeepSeek-V3's). Every OP takes sms=N\n"
      "(collectives to no effect) and clock=1, of the SMs over their highest; those that compute l2=cold|hot: whether "
      "L2\n"
      "holds their operands, as it does where a benchmark repeats them. `moeline explain SCENARIO --kernels` lists the "
      "OPs\n"
      "of a step.\n";
  for (const Kind& kind : kinds()) text += fmt::format("  {}:{}\n", kind.name, kind.keys);
  return text +
         "The nodes and ranks that a token reaches are those of DeepSeek-V3's gating, or with gating=benchmark those "
         "of\n"
         "DeepEP's: one group of experts per node, of which at most four are chosen; with gating=distinct a token's "
         "experts\nlie on as many ranks as they can.";
}

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
  OpWriter& add_if_given(const char* key, const std::optional<double>& value) {
    return value ? add(key, *value) : *this;
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
  writer.add("dtype", format_of_linear(op)).add("m", op.m).add("n", op.n).add("k", op.k);
  return writer.add_unless(1, "streams", op.streams);
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
  writer.add_unless(0.0, "received", e.received).add_if_given("rows", e.rows).add_if_given("hit", e.hit);
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
  if (is_by_cudnn(op)) writer.add("impl", "cudnn");
  return op.family == Family::attention_forward ? writer.add("dtype", name_of(a.math)) : writer;
}

OpWriter collective(const Operator& op) {
  OpWriter writer(name_of(op.family));
  const bool leaves_node = op.traffic.wire_bytes > 0;
  if (op.family == Family::send) return writer.add("bytes", op.bytes).add("to", leaves_node ? "node" : "gpu");
  writer.add("ranks", op.traffic.members);
  if (leaves_node) writer.add("gpus_per_node", op.traffic.members_per_node);
  writer.add("bytes", op.traffic.message_bytes);
  return op.measured_as == "custom_all_reduce" ? writer.add("impl", "custom") : writer;
}

OpWriter small_kernel_op(const Operator& op) {
  return OpWriter("memory").add("kind", op.measured_as).add("bytes", op.passed_bytes());
}

// Of the kinds that an operator is written as; which of its fields its price goes by, only pricing it again tells.
std::optional<OpWriter> written(const Operator& op) {
  if (op.experts.role != ExpertRole::none) return experts(op);
  if (is_small_kernel(op)) return small_kernel_op(op);
  switch (row_of(op.family).kind) {
    case FamilyKind::gemm:
      return op.family == Family::gemm_bf16_batched ? batched_gemm(op) : dense_gemm(op);
    case FamilyKind::memory_bound:
      return OpWriter("memory").add("kind", name_of(op.family)).add("bytes", op.bytes);
    case FamilyKind::collective:
      if (op.without_sms) return std::nullopt;
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
