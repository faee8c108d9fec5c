// What every page holds besides its data: HTML, style, script, and the library that draws.
#pragma once

#include <string>

namespace moeline {

/// A page's text around its title and its data.
struct PageTemplate {
  std::string before_title;
  std::string before_data;
  std::string after_data;
};

/// From experiments/page below home(), and ECharts, which the build installs, or $MOELINE_ECHARTS. Throws SpecError
/// where one is absent, so that whoever asks for a page hears of it before the work.
[[nodiscard]] PageTemplate load_page_template();

}  // namespace moeline
