// A view being put together: what bars share is written once.
#pragma once

#include <map>
#include <string>

#include "experiments/timeline_page/view.hpp"

namespace moeline {

class ViewDraft {
 public:
  explicit ViewDraft(std::string name) { view.name = std::move(name); }

  TimelineView view;

  std::uint32_t kind(const BarKind& kind) { return position(kind, kinds_, view.kinds); }
  std::uint32_t text(const std::string& text) { return position(text, texts_, view.texts); }
  std::int32_t phase(const BarPhase& phase) { return static_cast<std::int32_t>(position(phase, phases_, view.phases)); }

 private:
  template <class Item>
  static std::uint32_t position(const Item& item, std::map<Item, std::uint32_t>& known, std::vector<Item>& list) {
    const auto [found, added] = known.try_emplace(item, static_cast<std::uint32_t>(list.size()));
    if (added) list.push_back(item);
    return found->second;
  }

  std::map<BarKind, std::uint32_t> kinds_;
  std::map<BarPhase, std::uint32_t> phases_;
  std::map<std::string, std::uint32_t> texts_;
};

}  // namespace moeline
