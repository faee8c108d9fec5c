#include "trace/kernel_class.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr auto kNowhere = std::string_view::npos;

// Brackets around a place of a name. A '>' closes nothing where the innermost bracket is no '<', as in "(2 > 1)", nor
// behind a '-', as in "->".
class Brackets {
 public:
  [[nodiscard]] bool none() const { return open_.empty(); }
  void pass(char c, char before) {
    if (c == '<' || c == '(' || c == '{') open_.push_back(c);
    const char opening = c == ')' ? '(' : c == '}' ? '{' : c == '>' && before != '-' ? '<' : '\0';
    if (!open_.empty() && open_.back() == opening) open_.pop_back();
  }

 private:
  std::vector<char> open_;
};

// Where the parameters begin, and the last blank in front of them, both outside all brackets.
struct Parts {
  std::size_t blank = kNowhere;
  std::size_t parameters = kNowhere;
};

Parts parts_of(std::string_view name) {
  Parts parts;
  Brackets brackets;
  std::size_t blank = kNowhere;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (brackets.none() && name[i] == ' ') blank = i;
    if (brackets.none() && name[i] == '(' && !name.substr(i).starts_with(kAnonymous)) parts = {blank, i};
    brackets.pass(name[i], i > 0 ? name[i - 1] : '\0');
  }
  return parts.parameters == kNowhere ? Parts{blank, kNowhere} : parts;
}

// Only templates are demangled with what they return; in any other name a blank is part of it.
std::string_view without_return_type(std::string_view name) {
  const auto [blank, parameters] = parts_of(name);
  if (blank == kNowhere) return name;
  const bool is_template = name.substr(0, parameters).find('<', blank) != kNowhere;
  return is_template || name.starts_with("void ") ? name.substr(blank + 1) : name;
}

std::string_view without_trailing_blanks(std::string_view name) {
  return name.substr(0, name.find_last_not_of(' ') + 1);
}

}  // namespace

std::string_view subject_of(std::string_view name) {
  name = without_return_type(name);
  for (const std::string_view wrapper : {"cutlass::device_kernel<", "cutlass::Kernel<", "cutlass::Kernel2<"}) {
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  }
  std::size_t end = name.find_first_of("<(>");
  while (end != kNowhere && name.substr(end).starts_with(kAnonymous)) {
    end = name.find_first_of("<(>", end + kAnonymous.size());
  }
  return without_trailing_blanks(name.substr(0, end));
}

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
      {"(dispatch_copy|combine_reduce)_epilogue", "memory"},  // of DeepEP's second version, on all SMs
      {R"((deep_ep|dpsk::ep|internode|intranode|internode_ll|pplx|a2a|all_?to_?all).*dispatch|\bdispatchKernel)",
       "dispatch"},
      {R"((deep_ep|dpsk::ep|internode|intranode|internode_ll|pplx|a2a|all_?to_?all).*combine|\bcombineKernel)",
       "combine"},
      {R"(^(_Z\d+)?(n|r)ccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem|symm_mem|)"
       "cross_device_reduce|lamport|elastic::pp_(send|recv)",
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

namespace {

std::vector<NamePattern> patterns(const Spec& file, const std::string& section) {
  std::vector<NamePattern> read;
  const Spec entries = file.map_or_empty(section);
  for (const std::string& name : entries.keys()) {
    read.push_back({entries.text(name), name});
    try {
      (void)NameMatcher(std::vector{read.back()});
    } catch (const SpecError& error) {
      throw entries.error(name, error.what());
    }
  }
  return read;
}

}  // namespace

KernelMap load_kernel_map(const std::filesystem::path& path) {
  const Spec file = Spec::load(path);
  file.expect({"schema", "communication", "classes", "phases", "modules"});
  (void)file.integer("schema", 1, 1);
  KernelMap map;
  map.communication = file.text_or("communication", "");
  if (file.has("classes")) file.map("classes").expect(kernel_class_names());
  map.classes = patterns(file, "classes");
  map.phases = patterns(file, "phases");
  map.modules = patterns(file, "modules");
  try {
    (void)KernelClassifier({}, map.communication);
  } catch (const SpecError& error) {
    throw file.error("communication", error.what());
  }
  return map;
}

}  // namespace moeline
