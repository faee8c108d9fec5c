#include "hardware/kernel_set.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/profile_words.hpp"

namespace moeline {

const std::string& name_of(Clock clock) { return profile_words::kClocks[static_cast<std::size_t>(clock)]; }

const std::string& name_of(Stack stack) { return profile_words::kStacks[static_cast<std::size_t>(stack)]; }

const char* title_of(Stack stack) {
  switch (stack) {
    case Stack::sglang:
      return "SGLang";
    case Stack::trtllm:
      return "TensorRT-LLM";
    case Stack::vllm:
      return "vLLM";
    case Stack::megatron:
      return "Megatron";
    case Stack::none:
      break;
  }
  return "";
}

bool KernelSet::knows(std::string_view group) const {
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (group_of(i) == group && !std::isnan(constants[i])) return true;
  }
  return false;
}

bool KernelSet::is_whole() const {
  return std::any_of(fits.begin(), fits.end(), [](const auto& fit) {
    return fit.first.starts_with("gemm_") || fit.first.starts_with("linear_");
  });
}

std::vector<std::pair<std::string_view, int>> known_by_group(const Constants& constants) {
  std::vector<std::pair<std::string_view, int>> groups;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::isnan(constants[i])) continue;
    if (groups.empty() || groups.back().first != group_of(i)) groups.emplace_back(group_of(i), 0);
    ++groups.back().second;
  }
  return groups;
}

double KernelSet::jitter(const std::string& family) const {
  const auto fit = fits.find(family);
  const double own = fit == fits.end() ? kUnknown : fit->second.jitter;
  const double of_all = (*this)[Constant::jitter];
  return !std::isnan(own) ? own : std::isnan(of_all) ? 0 : of_all;
}

bool KernelSet::is_burst(const std::string& family) const {
  const auto fit = fits.find(family);
  return fit != fits.end() && fit->second.clock == Clock::burst;
}

int KernelSet::known_constants() const {
  return static_cast<int>(
      std::count_if(constants.begin(), constants.end(), [](double constant) { return !std::isnan(constant); }));
}

namespace {

void take(const std::string& family, const FamilyFit& fit, KernelSet& set) {
  FamilyFit& mine = set.fits.try_emplace(family, fit).first->second;
  if (std::isnan(mine.jitter)) mine.jitter = fit.jitter;  // tables of single times do not tell it
}

}  // namespace

void borrow(const KernelSet& lender, KernelSet& set) {
  if (lender.by_name_only) return;
  std::string_view group;
  bool is_own = false;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (group_of(i) != group) {  // asked before the first of a group is borrowed
      group = group_of(i);
      is_own = set.knows(group);
    }
    if (is_own) continue;
    set.constants[i] = lender.constants[i];
    set.origins[i] = lender.origins[i];
  }
  for (const auto& [family, fit] : lender.fits) take(family, fit, set);
}

}  // namespace moeline
