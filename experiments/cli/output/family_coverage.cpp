#include "experiments/cli/output/hardware_output.hpp"

#include <algorithm>

#include "hardware/price.hpp"

namespace moeline {
namespace {

// Whether price() has a curve for a family, and by whose constants, hardly depends on the shape, so any will do.
Price any_price(Family family, const KernelSet& complete, const MachineFacts& facts) {
  Operator op;
  op.family = family;
  op.m = op.n = op.k = op.bytes = op.items = 1;
  op.attention = {1, 1, 1, 1, 1, 1, 1};
  return price(op, {.sms = 1}, facts, complete);
}

// What a serving stack's tables measure a family as.
bool is_measured_otherwise(Family family, const KernelSet& complete) {
  static const std::vector<std::pair<Family, std::string>> kNames = {{Family::gemm_fp8, "linear_fp8"},
                                                                     {Family::gemm_fp8_tensor, "linear_fp8_tensor"},
                                                                     {Family::gemm_nvfp4, "linear_nvfp4"},
                                                                     {Family::gemm_bf16, "linear_bf16"},
                                                                     {Family::gemm_bf16_batched, "mla_up_bf16"},
                                                                     {Family::gemm_fp8_grouped, "moe_contiguous_fp8"},
                                                                     {Family::gemm_fp8_masked, "moe_masked_fp8"},
                                                                     {Family::gemm_bf16_grouped, "moe_bf16"},
                                                                     {Family::attention_forward, "gqa_prefill"},
                                                                     {Family::all_gather, "nccl_all_gather"},
                                                                     {Family::reduce_scatter, "nccl_reduce_scatter"},
                                                                     {Family::all_reduce, "nccl_all_reduce"},
                                                                     {Family::all_to_all, "nccl_all_to_all"},
                                                                     {Family::nvlink_prepare, "nvlink_prepare"},
                                                                     {Family::nvlink_dispatch, "nvlink_dispatch"},
                                                                     {Family::nvlink_combine, "nvlink_combine"}};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const auto& name) { return name.first == family && complete.fits.contains(name.second); });
}

bool runs_on(Family family, const MachineFacts& facts) {
  const Precision precision = row_of(family).precision;
  return precision == Precision::nvfp4 ? facts.fp4_tflops > 0 : facts.tflops(precision) > 0;
}

}  // namespace

std::vector<FactDifference> differences(const MachineFacts& fitted_on, const MachineFacts& here) {
  const std::vector<MachineFact> theirs = list_facts(fitted_on), ours = list_facts(here);
  std::vector<FactDifference> differing;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].prices && theirs[i].value != ours[i].value)
      differing.push_back({ours[i].key, theirs[i].value, ours[i].value});
  }
  return differing;
}

std::vector<KernelSet> sets_to_choose(const HardwareProfile& profile) {
  if (!profile.kernel_sets.empty()) return profile.kernel_sets;
  std::vector<KernelSet> sets;
  for (const KernelSet& set : profile.carried_over) {
    std::erase_if(sets, [&](const KernelSet& other) { return other.name == set.name; });
    sets.push_back(set);
  }
  return sets;
}

std::string other_constants(const std::string& family, const KernelSet& complete, const MachineFacts& facts) {
  const std::optional<Family> named = family_named(family);
  if (!named || !runs_on(*named, facts)) return "";
  const ConstantSet used = any_price(*named, complete, facts).constants;
  std::string other;
  for (std::size_t c = 0; c < kConstants; ++c) {
    if (!used.test(c)) continue;
    if (complete.origins[c] == complete.fits.at(family).kernel_set) return "";
    other = complete.origins[c];
  }
  return other;
}

FamiliesWithoutFit families_without_fit(const KernelSet& complete, const MachineFacts& facts) {
  FamiliesWithoutFit families;
  for (int i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    if (!runs_on(family, facts)) {
      families.refused.push_back(name_of(family));
      continue;
    }
    if (is_measured_otherwise(family, complete)) continue;
    const Provenance provenance = any_price(family, complete, facts).provenance;
    if (provenance == Provenance::roofline) {
      families.by_roofline.push_back(name_of(family));
    } else if (provenance == Provenance::datasheet) {
      families.by_facts.push_back(name_of(family));
    } else if (priced_as(family, complete) == name_of(Family::rowwise) && family != Family::rowwise) {
      families.by_casts.push_back(name_of(family));
    } else if (priced_as(family, complete) != name_of(family)) {
      families.by_gemm_fp8.push_back(name_of(family));
    }
  }
  return families;
}

}  // namespace moeline
