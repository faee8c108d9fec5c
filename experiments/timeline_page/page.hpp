// A page of one timeline, or of two on one axis: one HTML file that loads nothing when it is opened.
#pragma once

#include <string>
#include <vector>

#include "experiments/explain/explanation.hpp"
#include "experiments/page/template.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Beside the timeline. `alignment`: of each column l or r.
struct PageTable {
  std::string title;
  std::string alignment;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// A text that the page can show, as that of a scenario.
struct PageSource {
  std::string title, text;
};

struct TimelinePage {
  std::string title;
  std::vector<std::string> summary;  ///< a sentence each, below the title
  std::vector<TimelineView> views;
  std::vector<PageTable> tables;
  std::vector<PageSource> sources;
};

/// Bars of all views together; more would make a file of more than 2 MB.
inline constexpr std::size_t kMostBars = 30'000;

[[nodiscard]] PageTemplate load_timeline_template();

/// Equal pages give equal bytes. Times are written in whole nanoseconds.
[[nodiscard]] std::string to_html(const TimelinePage& page, const PageTemplate& page_template);

// What stands beside a timeline.

/// What the end waited for, by reason and by what waited, and how short it could be.
[[nodiscard]] std::vector<PageTable> tables_of(const Explanation& explanation);

}  // namespace moeline
