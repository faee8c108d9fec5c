// What every page holds besides its data: HTML, style, script, and the library that draws.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

/// A page's text around its title and its data.
struct PageTemplate {
  std::string before_title;
  std::string before_data;
  std::string after_data;
};

/// Of page.html in experiments/`page` below home(), with the files that it names by their paths from there; for
/// echarts.min.js the one that the build installs, or $MOELINE_ECHARTS. Throws SpecError where one is absent, so that
/// whoever asks for a page hears of it before the work.
[[nodiscard]] PageTemplate load_page_template(const std::string& page = "page");

/// The page: `title` as text, whatever it holds, and `data` as it is (page_json.hpp).
[[nodiscard]] std::string filled(const PageTemplate& page_template, std::string_view title, std::string_view data);

}  // namespace moeline
