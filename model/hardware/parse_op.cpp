#include "hardware/parse_op.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/names.hpp"
#include "hardware/op_kinds.hpp"

namespace moeline {
namespace {

struct Kind {
  const char* name;
  const char* keys;
  RequestedOp (*parse)(const std::string& text, const MachineFacts& machine);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"gemm", "dtype=fp8|bf16,m=4096,n=7168,k=16384", gemm_op},
      {"grouped_gemm",
       "layout=contiguous|masked,dtype=fp8|bf16,groups=4,m=8192 (masked: 256) rows of each group,n=4096,k=7168",
       grouped_gemm_op},
      {"moe",
       "dtype=fp8|fp8_tensor|bf16|nvfp4|mxfp4|mxfp4_fp8|int4,tokens=4096 of the whole EP "
       "group,hidden=7168,inter=2048,top_k=8,experts=256,ep=1,moe_tp=1,gated=true|false,layout=fused|masked|contiguous,"
       "rows=TOKENS x TOP_K / EP,hit=as many of the rank's experts as get rows of balanced loads,l2=cold|hot",
       moe_op},
      {"mla_decode", "batch=64,kv_len=4096,query_len=1,heads=128,qk_dim=576,v_dim=512", mla_decode_op},
      {"gqa_decode", "batch=64,kv_len=4096,query_len=1,heads=64,kv_heads=4,head_dim=128", gqa_decode_op},
      {"attention_forward", "seq=4096,batch=1,cached_len=0,heads=128,kv_heads=HEADS,qk_dim=192,v_dim=128,window=0",
       attention_forward_op},
      {"memory", "kind=streaming|rowwise|swiglu|cast_transpose|requantize|strided,bytes=117440512", memory_op},
      {"dispatch",
       "mode=normal|low_latency,ep=64,tokens=4096 (low_latency: "
       "128),hidden=7168,top_k=8,gating=model|benchmark,redundant_experts=the fewest with which ep divides them all",
       dispatch_op},
      {"combine", "the same", combine_op},
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
      "OP is KIND or KIND:key=value,...; what is left out is as shown (DeepSeek-V3's). Every OP takes sms=N.\n";
  for (const Kind& kind : kinds()) text += fmt::format("  {}:{}\n", kind.name, kind.keys);
  return text +
         "The nodes and ranks that a token reaches are those of DeepSeek-V3's gating, or with gating=benchmark those "
         "of\n"
         "DeepEP's: one group of experts per node, of which at most four are chosen.";
}

}  // namespace moeline
