#include "experiments/page/template.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEcharts = "echarts.min.js";

// Installed with the rest of the page, or where cmake put it in a build.
fs::path echarts_file() {
  const char* set = std::getenv("MOELINE_ECHARTS");
  if (set != nullptr && *set != '\0') return set;
  const fs::path installed = home() / "experiments/page" / kEcharts;
  return fs::exists(installed) ? installed : above_program(fs::path("page") / kEcharts).value_or(installed);
}

std::string read_echarts() {
  const fs::path file = echarts_file();
  if (fs::exists(file)) return read_text(file);
  throw SpecError(file.string(), 0,
                  "no such file: a page of plots needs ECharts, which cmake installs where npm can reach its registry; "
                  "MOELINE_ECHARTS names another echarts.min.js");
}

std::string as_html_text(std::string_view text) {
  std::string escaped;
  for (const char c : as_utf8(text)) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// What stands for {{name}} in page.html: a file, by its path from there.
std::string read_part(const fs::path& folder, std::string_view name) {
  return name == kEcharts ? read_echarts() : read_text(folder / name);
}

}  // namespace

PageTemplate load_page_template(const std::string& page) {
  const fs::path folder = home() / "experiments" / page;
  const std::string text = read_text(folder / "page.html");
  PageTemplate result;
  std::string* part = &result.before_title;
  std::size_t at = 0;
  for (std::size_t open = text.find("{{"); open != std::string::npos; open = text.find("{{", at)) {
    part->append(text, at, open - at);
    const std::size_t close = text.find("}}", open);
    MOELINE_CHECK(close != std::string::npos, "page.html");
    const std::string_view name = std::string_view(text).substr(open + 2, close - open - 2);
    if (name == "title") {
      part = &result.before_data;
    } else if (name == "data") {
      part = &result.after_data;
    } else {
      *part += read_part(folder, name);
    }
    at = close + 2;
  }
  part->append(text, at);
  return result;
}

std::string filled(const PageTemplate& page_template, std::string_view title, std::string_view data) {
  std::string html = page_template.before_title + as_html_text(title) + page_template.before_data;
  html += data;
  return html + page_template.after_data;
}

}  // namespace moeline
