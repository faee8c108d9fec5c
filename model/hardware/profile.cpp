#include "hardware/profile.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/names.hpp"

namespace moeline {
namespace {

// Null where no set has that name, or none may be chosen without it.
const KernelSet* choose(const HardwareProfile& profile, const std::string& set, std::string_view needed) {
  const KernelSet* chosen = nullptr;
  const auto look_in = [&](const std::vector<KernelSet>& candidates) {
    for (const KernelSet& candidate : candidates) {
      const bool by_default = !candidate.by_name_only && (needed.empty() || candidate.knows(needed));
      if (set.empty() ? by_default : candidate.name == set) chosen = &candidate;
    }
  };
  look_in(profile.kernel_sets);
  // By name those carried over, too; without a name only where there is nothing of the profile's own.
  const bool has_own = std::any_of(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                                   [](const KernelSet& own) { return !own.by_name_only; });
  if (chosen == nullptr && (!set.empty() || !has_own)) look_in(profile.carried_over);
  if (chosen != nullptr || !set.empty() || needed.empty()) return chosen;
  return choose(profile, set, "");
}

}  // namespace

std::string HardwareProfile::set_named(const std::string& wanted) const {
  const std::vector<std::string> names = set_names();
  if (const auto whole = known_name(wanted, names)) return *whole;
  std::string newest;
  for (const auto* sets : {&carried_over, &kernel_sets}) {
    for (const KernelSet& set : *sets) {
      const std::size_t stack = set.name.find('-');
      if (stack != std::string::npos && same_but_for_case(wanted, set.name.substr(0, stack))) newest = set.name;
    }
  }
  return newest.empty() ? wanted : newest;
}

std::vector<std::string> HardwareProfile::set_names() const {
  std::vector<std::string> names;
  for (const auto* sets : {&kernel_sets, &carried_over}) {
    for (const KernelSet& set : *sets) {
      if (std::find(names.begin(), names.end(), set.name) == names.end()) names.push_back(set.name);
    }
  }
  return names;
}

std::vector<const KernelSet*> HardwareProfile::nearest_to_published() const {
  const auto mean_error = [](const KernelSet* set) {
    double sum = 0;
    for (const auto& [phase, error] : set->published_errors) sum += std::abs(error);
    return sum / static_cast<double>(set->published_errors.size());
  };
  std::vector<const KernelSet*> sets;
  for (const KernelSet& set : kernel_sets) {
    if (!set.published_errors.empty()) sets.push_back(&set);
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const KernelSet* a, const KernelSet* b) { return mean_error(a) < mean_error(b); });
  return sets;
}

KernelSet HardwareProfile::kernels(const std::string& set, std::string_view needed) const {
  if (kernel_sets.empty() && carried_over.empty()) {
    throw SpecError(file, 0, "has no kernel set; see `moeline calibrate`");
  }
  const KernelSet* chosen = choose(*this, set.empty() ? set : set_named(set), needed);
  if (chosen == nullptr && set.empty()) throw SpecError(file, 0, "has kernel sets by their name only");
  if (chosen == nullptr) throw UnknownName(unknown_name("kernel set of " + name, set, set_names()));
  KernelSet complete = *chosen;
  name_by_backend(complete);
  // Sets of serving stacks lend to each other first, and so do the others: an older set stays what it was.
  for (const bool of_a_stack : {chosen->of_a_stack, !chosen->of_a_stack}) {
    const auto lend = [&](const KernelSet& other) {
      if (other.of_a_stack == of_a_stack) borrow(other, complete);
    };
    std::for_each(kernel_sets.rbegin(), kernel_sets.rend(), lend);
    for (const bool akin : {true, false}) {
      for (auto other = carried_over.rbegin(); other != carried_over.rend(); ++other) {
        const bool is_akin =
            other->name == chosen->name || (chosen->stack != Stack::none && other->stack == chosen->stack);
        if (!akin || is_akin) lend(*other);
      }
    }
  }
  return complete;
}

}  // namespace moeline
