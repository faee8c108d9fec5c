#include "experiments/learn/kernel_kind.hpp"

#include <array>

#include "moe/small_kernels.hpp"
#include "trace/name_regex.hpp"

namespace moeline {
namespace {

struct NamedKind {
  NameRegex words;
  KernelKind kind;
};

// What passes over memory is told by words; classes know no more than that it does. To know another word, add it.
const auto& named_kinds() {
  using enum KernelKind;
  static const std::array<NamedKind, 10> kinds = {{
      {NameRegex("norm"), norm},
      {NameRegex("rope|rotary|reshape_and_cache|(store|write|update|set|append|concat\\w*)_?(mla_)?(paged_)?kv"),
       rotary},
      {NameRegex("act_and_mul|silu|swiglu|swi_glu|gelu|relu"), activation},
      {NameRegex("quant|to_fp8|fp8_cast|cast_to_f"), quantise},
      {NameRegex("top_?k|routing|router|gating|sort|bitmatrix|align|expert_?(count|offset|map)|finali[sz]e|permute|"
                 "moe_sum|moe_forward|scatter_rows|gather_rows"),
       routing},
      {NameRegex("embedding|indexselect|index_select|vectorized_gather|gather_embed"), embedding},
      {NameRegex("argmax|arg_max|sampl|logits"), token_choice},
      {NameRegex("conv1d|causal_conv|gated_delta|chunk_scan|state_passing"), state},
      {NameRegex("barrier|notify"), barrier},
      {NameRegex("split_?k_?reduce|reduce_segments|attention\\w*_reduce|fmhareduction|merge_attn|splitkv_combine"),
       rest},
  }};
  return kinds;
}

// Those that do what only they do, whatever else their names mention.
KernelKinds of_class(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::gemm:
      return KernelKind::product;
    case KernelClass::grouped_gemm:
      return KernelKind::experts;
    case KernelClass::attention:
      return KernelKind::attention;
    case KernelClass::collective:
      return KernelKind::collective;
    case KernelClass::dispatch:
      return KernelKind::dispatch;
    case KernelClass::combine:
      return KernelKind::combine;
    case KernelClass::barrier:
      return KernelKind::barrier;
    case KernelClass::other:
      return KernelKind::routing;
    case KernelClass::memory:
    case KernelClass::small:
    case KernelClass::copy:
    case KernelClass::unclassified:
      break;
  }
  return {};
}

bool multiplies(KernelClass kernel_class) {
  return kernel_class == KernelClass::gemm || kernel_class == KernelClass::grouped_gemm ||
         kernel_class == KernelClass::attention;
}

KernelKind kind_of_small(SmallKernel kernel) {
  switch (kernel) {
    case SmallKernel::norm:
    case SmallKernel::head_norm:
      return KernelKind::norm;
    case SmallKernel::rotary_store:
      return KernelKind::rotary;
    case SmallKernel::activation:
      return KernelKind::activation;
    case SmallKernel::expert_choice:
      return KernelKind::routing;
    case SmallKernel::embedding_rows:
      return KernelKind::embedding;
    case SmallKernel::token_choice:
      return KernelKind::token_choice;
    case SmallKernel::head_copy:
    case SmallKernel::logits_cast:
      return KernelKind::plain;
  }
  return KernelKind::plain;
}

KernelKind kind_of_expert(ExpertRole role) {
  switch (role) {
    case ExpertRole::routing:
    case ExpertRole::permute:
    case ExpertRole::finalise:
      return KernelKind::routing;
    case ExpertRole::activation:
      return KernelKind::activation;
    case ExpertRole::none:
    case ExpertRole::gate_up:
    case ExpertRole::down:
    case ExpertRole::layer:
      break;
  }
  return KernelKind::experts;
}

KernelKind kind_of_family(Family family) {
  switch (family) {
    case Family::gemm_fp8_grouped:
    case Family::gemm_fp8_masked:
    case Family::gemm_bf16_grouped:
      return KernelKind::experts;
    case Family::rowwise:
    case Family::cast_transpose:
    case Family::requantize:
    case Family::recode_12bit:
      return KernelKind::quantise;
    case Family::swiglu:
      return KernelKind::activation;
    case Family::strided:
      return KernelKind::rotary;
    case Family::routing_scan:
    case Family::count_rows:
    case Family::map_rows:
      return KernelKind::routing;
    case Family::state_scan:
    case Family::state_update:
    case Family::index_scores:
      return KernelKind::attention;
    case Family::notify:
      return KernelKind::barrier;
    case Family::dispatch:
    case Family::dispatch_cached:
    case Family::low_latency_dispatch:
    case Family::nvlink_prepare:
    case Family::nvlink_dispatch:
      return KernelKind::dispatch;
    case Family::combine:
    case Family::low_latency_combine:
    case Family::nvlink_combine:
      return KernelKind::combine;
    default:
      break;
  }
  if (is_gemm(family)) return KernelKind::product;
  if (is_attention(family)) return KernelKind::attention;
  return is_communication(family) ? KernelKind::collective : KernelKind::plain;
}

}  // namespace

KernelKinds kinds_of_name(std::string_view name, KernelClass kernel_class) {
  KernelKinds kinds = of_class(kernel_class);
  for (const NamedKind& named : named_kinds()) {
    const bool counts = !multiplies(kernel_class) || named.kind == KernelKind::rest;
    if (counts && named.words.found_in(name)) kinds |= named.kind;
  }
  return kinds.empty() ? KernelKinds(KernelKind::plain) : kinds;
}

KernelKind kind_of(const Operator& op) {
  if (op.experts.role != ExpertRole::none) return kind_of_expert(op.experts.role);
  if (const auto small = small_kernel_named(op.measured_as)) return kind_of_small(*small);
  const bool norms = op.name.find("RMSNorm") != std::string::npos || op.name.find("LayerNorm") != std::string::npos;
  return norms && is_memory_bound(op.family) ? KernelKind::norm : kind_of_family(op.family);
}

}  // namespace moeline
