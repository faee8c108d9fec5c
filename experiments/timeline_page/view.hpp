// A timeline as a page draws it, predicted or measured: bars on lanes, why each started, and what they used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/intervals.hpp"

namespace moeline {

/// Where bars lie, one after the other: a stream of a rank, or a rank of a pipeline.
struct Lane {
  std::uint32_t rank = 0;
  std::string name;
};

/// What many bars have in common.
struct BarKind {
  std::string name, task_class;
  std::string detail;  ///< shape and provenance of the price, or the full name of a measured kernel
  int sms = 0;         ///< that it wants
  bool communicates = false;
  auto operator<=>(const BarKind&) const = default;
};

/// A stretch of work that many bars belong to.
struct BarPhase {
  std::string name;
  std::uint32_t layer = 0, micro_batch = 0;
  std::string note;  ///< shown with its bars: of a comparison how the two sides differ
  auto operator<=>(const BarPhase&) const = default;
};

/// The event that a bar's start or end waited for.
struct BarEvent {
  enum class Of : std::uint8_t { nothing, start, end, elsewhere } of = Of::nothing;
  std::uint32_t index = 0;  ///< into bars; of `elsewhere` into texts: it is not drawn
};

struct Bar {
  std::uint32_t lane = 0, kind = 0;
  std::int32_t phase = -1;  ///< -1: of none
  Time start{}, end{};
  Time alone{};                 ///< what it takes with nothing beside it; as long as the bar where that is not known
  Time delay{}, sms_wait{};     ///< before its start: since what released it, and then for SMs
  BarEvent released{}, held{};  ///< what its start waited for; what its end did, where that came last
};

/// What is taken of one rank's resource, from each instant until the next. A page has it in thousandths of the
/// capacity.
inline constexpr double kUseUnits = 1000;
struct ResourceUse {
  std::uint32_t rank = 0;
  std::string name;
  double capacity = 0;
  std::vector<std::pair<Time, double>> taken;  ///< by time, in the unit of the capacity
};

/// A stretch of what the end waited for.
struct PathStretch {
  std::uint32_t bar = 0;
  std::uint8_t reason = 0;  ///< a PathReason; kManyReasons where several alternate
  Time start{}, end{};
};
inline constexpr std::uint8_t kManyReasons = 255;

struct TimelineView {
  std::string name;
  bool measured = false;    ///< then nobody knows what bars take alone but for the SMs that communication held
  Time start{}, end{};      ///< of what is shown
  std::string window_name;  ///< of a part worth a look: where kernels are shown, or what is compared; empty: none
  Interval window{};
  std::vector<std::uint32_t> ranks;
  std::vector<Lane> lanes;  ///< in the order in which they are drawn
  std::vector<BarKind> kinds;
  std::vector<BarPhase> phases;
  std::vector<std::string> texts;  ///< what released bars from elsewhere
  std::vector<Bar> bars;           ///< by start, then lane
  std::vector<PathStretch> path;
  std::vector<ResourceUse> uses;
  std::vector<std::string> left_out;  ///< what is not shown, a sentence each
};

// A view being put together: what bars share is written once.

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
