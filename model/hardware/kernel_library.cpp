#include "hardware/kernel_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace moeline {
namespace {

template <class Backend>
struct Library {
  Backend backend;
  const char* title;
  std::vector<const char*> forms;
};

template <class Backend>
const std::vector<Library<Backend>>& libraries();

template <>
const std::vector<Library<AttentionBackend>>& libraries() {
  using enum AttentionBackend;
  static const std::vector<Library<AttentionBackend>> kAll = {
      {fa2, "FlashAttention-2", {"flash_attention_2", "flash_decode_sm80"}},
      {fa3,
       "FlashAttention-3",
       {"flash_attention_3", "flash_decode", "mla_decode", "mla_decode_cast", "absorbed_prefill"}},
      {flashmla, "FlashMLA", {"flash_mla"}},
      {xqa, "TensorRT-LLM's XQA and FMHA", {"xqa", "xqa_sm80", "xqa_fp8", "trtllm_fmha_sm80", "trtllm_fmha_sm90"}},
      {trtllm_gen, "TensorRT-LLM's generated kernels", {"trtllm_gen_decode", "trtllm_gen_mla", "trtllm_gen_fmha"}},
  };
  return kAll;
}

template <>
const std::vector<Library<MoeBackend>>& libraries() {
  using enum MoeBackend;
  static const std::vector<Library<MoeBackend>> kAll = {
      {triton, "Triton", {"triton_moe", "triton_moe_default"}},
      {cutlass, "CUTLASS", {"cutlass_moe"}},
      {deepgemm, "DeepGEMM", {"deepgemm_moe"}},
      {marlin, "Marlin", {"marlin_moe"}},
      {trtllm_gen, "TensorRT-LLM's generated kernels", {"trtllm_gen_moe"}},
  };
  return kAll;
}

template <class Backend>
Backend library_of(const FamilyFit& fit) {
  if (fit.form == nullptr) return Backend::usual;
  for (const Library<Backend>& library : libraries<Backend>()) {
    const bool has = std::any_of(library.forms.begin(), library.forms.end(),
                                 [&](const char* form) { return fit.form->name == form; });
    if (has) return library.backend;
  }
  return Backend::usual;
}

template <class Backend>
Backend library_of(const KernelSet& set, const std::string& family) {
  const auto fit = set.fits.find(family);
  return fit == set.fits.end() ? Backend::usual : library_of<Backend>(fit->second);
}

template <class Backend>
const char* title(Backend backend) {
  for (const Library<Backend>& library : libraries<Backend>()) {
    if (library.backend == backend) return library.title;
  }
  return "the set's own";
}

// Own sets before those carried over, newest first: a library has other kernels for other generations.
std::vector<const KernelSet*> lenders(const HardwareProfile& profile) {
  std::vector<const KernelSet*> sets;
  for (const auto* all : {&profile.kernel_sets, &profile.carried_over}) {
    for (auto set = all->rbegin(); set != all->rend(); ++set) {
      if (!set->by_name_only && set->generation == profile.facts.generation()) sets.push_back(&*set);
    }
  }
  return sets;
}

constexpr std::string_view kInBlocks = "moe_fp8", kByTensor = "moe_fp8_tensor";

// A library's layers of experts in FP8 take as long with scales of tensors as with those of blocks: where both were
// measured they do not tell them apart (CUTLASS's of GLM-4.5-Air on H100, 256 tokens: 233 and 236 us). "": the family
// is none of experts in FP8.
std::string in_blocks(std::string_view family) {
  return family.starts_with(kByTensor) ? std::string(kInBlocks) + std::string(family.substr(kByTensor.size())) : "";
}
std::string by_tensor(std::string_view family) {
  if (!family.starts_with(kInBlocks) || family.starts_with(kByTensor)) return "";
  return std::string(kByTensor) + std::string(family.substr(kInBlocks.size()));
}

template <class Backend>
void lend(const FamilyFit& fit, const std::string& family, Backend wanted, KernelSet& set) {
  if (family.empty() || library_of<Backend>(set, family) == wanted) return;
  FamilyFit& taken = set.fits[family];
  const double jitter = taken.jitter;
  taken = fit;
  if (std::isnan(taken.jitter)) taken.jitter = jitter;
}

template <class Backend>
void take(const HardwareProfile& profile, Backend wanted, KernelSet& set) {
  if (wanted == Backend::usual) return;
  bool has_any = false;
  for (const KernelSet* lender : lenders(profile)) {
    for (const auto& [family, fit] : lender->fits) {
      if (library_of<Backend>(fit) != wanted) continue;
      has_any = true;
      lend(fit, family, wanted, set);
    }
  }
  for (const KernelSet* lender : lenders(profile)) {
    for (const auto& [family, fit] : lender->fits) {
      if (library_of<Backend>(fit) == wanted) lend(fit, by_tensor(family), wanted, set);
    }
  }
  if (!has_any) throw SpecError(fmt::format("no kernel set of {} has kernels of {}", profile.name, title(wanted)));
}

template <class Backend>
std::vector<Backend> libraries_with(const HardwareProfile& profile, const std::string& family) {
  const std::vector<const KernelSet*> sets = lenders(profile);
  std::vector<Backend> found;
  for (const Library<Backend>& library : libraries<Backend>()) {
    const bool has = std::any_of(sets.begin(), sets.end(), [&](const KernelSet* set) {
      return library_of<Backend>(*set, family) == library.backend ||
             library_of<Backend>(*set, in_blocks(family)) == library.backend;
    });
    if (has) found.push_back(library.backend);
  }
  return found;
}

}  // namespace

const char* title_of(AttentionBackend backend) { return title(backend); }
const char* title_of(MoeBackend backend) { return title(backend); }

AttentionBackend attention_library(const KernelSet& set, const std::string& family) {
  return library_of<AttentionBackend>(set, family);
}
MoeBackend experts_library(const KernelSet& set, const std::string& family) {
  return library_of<MoeBackend>(set, family);
}

KernelSet kernels_by(const HardwareProfile& profile, const std::string& set, std::string_view needed,
                     const Libraries& libraries) {
  KernelSet kernels = profile.kernels(set, needed);
  take(profile, libraries.attention, kernels);
  take(profile, libraries.experts, kernels);
  return kernels;
}

std::vector<AttentionBackend> attention_libraries(const HardwareProfile& profile, const std::string& family) {
  return libraries_with<AttentionBackend>(profile, family);
}
std::vector<MoeBackend> experts_libraries(const HardwareProfile& profile, const std::string& family) {
  return libraries_with<MoeBackend>(profile, family);
}

}  // namespace moeline
