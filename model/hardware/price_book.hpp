// Prices of one machine's kernel set, each worked out once: a step has the same kernels in many places, and a search
// runs the same kernels in many orders.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "hardware/price.hpp"

namespace moeline {

/// Thread-safe; prices stay where they are.
class PriceBook {
 public:
  /// REQUIRES: the same machine and kernels at every call.
  [[nodiscard]] const Price& price(const Operator& op, const PriceConditions& conditions, const MachineFacts& machine,
                                   const KernelSet& kernels);

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

  std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<const Price>, Hash, Equal> prices_;
};

}  // namespace moeline
