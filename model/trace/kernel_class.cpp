#include "trace/kernel_class.hpp"

#include <fmt/format.h>

#include <re2/re2.h>

#include <algorithm>

#include "base/error.hpp"
#include "trace/kernel_name.hpp"

namespace moeline {
namespace {

// Longer names are templates in templates: what they are about stands in front.
constexpr std::size_t kSearched = 1000;

// Searched in the subject of a name, in this order. The order is the point: FlashAttention's pre- and postprocessing is
// no attention, nor are writing the cache and norms of queries and keys; a notify kernel is no dispatch;
// dpsk::grouped_gemm holds dense GEMMs and transposes too; FlashInfer is more than attention; Inductor's generated
// kernels are named after all they replace. TensorRT-LLM calls an expert GEMM bmm, with the size of its batch dynamic.
const std::vector<NamePattern>& built_in() {
  static const std::vector<NamePattern> patterns = {
      {"^triton_(poi|red|per)_fused", "memory"},
      // whole phases, as our traces of phases name them: dispatch(F)
      {"^dispatch$", "dispatch"},
      {"^combine$", "combine"},
      {"^(send|receive|reduce-scatter|all-gather|gradient norm)$", "collective"},
      {"get_dispatch_layout|mla_metadata", "other"},
      {"notify_dispatch|cached_notify|notify_combine|clean_low_latency|(deep_ep|ep|nvshmem).*barrier|barrier_all",
       "barrier"},
      {R"((deep_ep|dpsk::ep|internode|intranode|internode_ll|pplx|a2a|all_?to_?all).*dispatch|\bdispatchKernel)",
       "dispatch"},
      {R"((deep_ep|dpsk::ep|internode|intranode|internode_ll|pplx|a2a|all_?to_?all).*combine|\bcombineKernel)",
       "combine"},
      {R"(^(_Z\d+)?(n|r)ccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem|symm_mem|)"
       "cross_device_reduce|lamport",
       "collective"},
      {"preprocess|postprocess|dot_do_o|convert_?dq|convert_?dkv|clear_dkv|merge_?(attn_)?states?|combine_kernel|"
       "and_cache_|append_?paged|splitkreduce|::utils::|fwd_kernel_stage2|(attn|attention|mla).*norm|norm.*(attn|mla)|"
       "gemma.*norm",
       "memory"},
      {"flash([^i]|$)|fmha|attention|attn|mla|sdpa|(batch|single)(decode|prefill)|paged_kv|compute_attn_ws|"
       "fwd_(grouped_)?kernel_stage1",
       "attention"},
      {"m_grouped|group(ed)?_?gemm_kernel|groupproblemshape|fused_moe|mega_moe|moe_?gemm|group_gemm|^bmm_.*(swiglu|"
       "dynbatch)",
       "grouped_gemm"},
      {"gemm|nvjet|xmma|cublas|gemv|matmul|wgmma|triton_tem|cijk_|^bmm_", "gemm"},
      {"top_?k|sampling|group_indices|count_expert|fused_mapping|aux_fi|moe_align|moe.*routing|sort|arange|with_index",
       "other"},
      {"elementwise|copy|cast|transpose|norm|ln_(fwd|bwd)|swiglu|silu|gelu|act_and_mul|rotary|rope|reduce|expand|"
       "permute|scatter|gather|fill|softmax|concat|cat_|quant|embedding|index|triton_|fill_tensormaps|distribution|"
       "scan|multi_tensor_apply",
       "memory"},
  };
  return patterns;
}

const NameMatcher& built_in_matcher() {
  static const NameMatcher matcher(built_in());
  return matcher;
}

// DeepGEMM has one kernel for all layouts and says which in a template argument; CUTLASS in the problem's shape.
bool is_grouped_by_argument(std::string_view name) {
  static const NameMatcher matcher(
      std::vector<NamePattern>{{R"(GemmType(\)|E)[123]|GroupedContiguous|GroupedMasked|GroupProblemShape)", "yes"}});
  return matcher.find(name) != nullptr;
}

std::vector<NamePattern> checked(const std::vector<NamePattern>& classes) {
  for (const NamePattern& each : classes) {
    if (!class_named(each.meaning)) {
      throw SpecError(unknown_name("kernel class", each.meaning, kernel_class_names()));
    }
  }
  return classes;
}

}  // namespace

const std::vector<std::string>& kernel_class_names() {
  static const std::vector<std::string> names = {"attention", "gemm",       "grouped_gemm", "memory",
                                                 "small",     "other",      "dispatch",     "combine",
                                                 "barrier",   "collective", "copy",         "unclassified"};
  return names;
}

const std::string& name_of(KernelClass kernel_class) {
  return kernel_class_names()[static_cast<std::size_t>(kernel_class)];
}

std::optional<KernelClass> class_named(std::string_view name) {
  const std::vector<std::string>& names = kernel_class_names();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<KernelClass>(found - names.begin()));
}

bool is_transfer(KernelClass kernel_class) {
  return kernel_class == KernelClass::dispatch || kernel_class == KernelClass::combine;
}

bool is_communication(KernelClass kernel_class) {
  return is_transfer(kernel_class) || kernel_class == KernelClass::barrier || kernel_class == KernelClass::collective;
}

struct NameMatcher::Compiled {
  RE2 regex;
  std::string meaning;
};

NameMatcher::NameMatcher(const std::vector<NamePattern>& patterns) {
  RE2::Options options(RE2::Quiet);
  options.set_case_sensitive(false);
  options.set_encoding(RE2::Options::EncodingLatin1);  // bytes: a name may be anything
  for (const NamePattern& each : patterns) {
    const std::shared_ptr<const Compiled> compiled(new Compiled{{each.pattern, options}, each.meaning});
    if (!compiled->regex.ok()) {
      throw SpecError(fmt::format("'{}' is not a regular expression: {}", each.pattern, compiled->regex.error()));
    }
    compiled_.push_back(compiled);
  }
}

const std::string* NameMatcher::find(std::string_view name) const {
  const std::string_view searched = name.substr(0, kSearched);
  for (const auto& each : compiled_) {
    if (RE2::PartialMatch(re2::StringPiece(searched.data(), searched.size()), each->regex)) return &each->meaning;
  }
  return nullptr;
}

KernelClassifier::KernelClassifier(const std::vector<NamePattern>& classes, const std::string& communication)
    : given_(checked(classes)),
      communication_(communication.empty() ? std::vector<NamePattern>{} : std::vector{NamePattern{communication, ""}}),
      has_communication_(!communication.empty()) {}

KernelClass KernelClassifier::of_kernel(std::string_view name) const {
  if (const std::string* meaning = given_.find(name)) return *class_named(*meaning);
  const std::string* meaning = built_in_matcher().find(subject_of(name));
  KernelClass found = meaning == nullptr ? KernelClass::unclassified : *class_named(*meaning);
  if (found == KernelClass::gemm && is_grouped_by_argument(name)) found = KernelClass::grouped_gemm;
  if (!has_communication_) return found;
  const bool communicates = communication_.find(name) != nullptr;
  if (communicates) return is_communication(found) ? found : KernelClass::collective;
  return is_communication(found) ? KernelClass::unclassified : found;
}

}  // namespace moeline
