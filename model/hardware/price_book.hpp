// Prices of one machine's kernel set, each worked out once: a step has the same kernels in many places, a search runs
// the same kernels in many orders, and points of a sweep differ in a few.
#pragma once

#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "hardware/kernel_library.hpp"
#include "hardware/price.hpp"

namespace moeline {

/// Thread-safe. Forgets all prices when it has very many; who holds one keeps it.
class PriceBook {
 public:
  PriceBook() = default;
  PriceBook(const MachineFacts& machine, KernelSet kernels) : machine_(machine), kernels_(std::move(kernels)) {}

  [[nodiscard]] const KernelSet& kernels() const { return kernels_; }
  [[nodiscard]] std::shared_ptr<const Price> price(const Operator& op, const PriceConditions& conditions);

 private:
  struct View {
    const Operator& op;
    const PriceConditions& conditions;
    bool operator==(const View& other) const { return op == other.op && conditions == other.conditions; }
  };
  struct Key {
    Operator op;
    PriceConditions conditions;
    operator View() const { return {op, conditions}; }
  };
  /// Looked up by views: most questions were asked before, and operators are long.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const View& view) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const View& one, const View& other) const { return one == other; }
  };

  MachineFacts machine_;
  KernelSet kernels_;
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Price>, Hash, Equal> prices_;
};

/// Of kernels_by(profile, set, needed, libraries): one book for all who ask, so that they share prices, but for those
/// who ask first at the same time. The last eight or fewer are kept.
[[nodiscard]] std::shared_ptr<PriceBook> prices_of(const std::shared_ptr<const HardwareProfile>& profile,
                                                   const std::string& set, const std::string& needed,
                                                   const Libraries& libraries = {});

}  // namespace moeline
