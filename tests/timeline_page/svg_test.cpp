// Pictures of timelines: phases on one scale, labels inside their bars, no text that is markup.
#include <doctest/doctest.h>

#include "experiments/timeline_page/picture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("timeline_page/svg") {

using namespace moeline;
using namespace moeline::testing;

namespace {

PictureBar bar(const std::string& label, const std::string& phase, double from, double until) {
  return {.label = label, .title = label, .tint = tint_of(phase, 0), .start = from_us(from), .end = from_us(until)};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<double> widths(const std::string& svg) {
  std::vector<double> found;
  const std::string width = " width=\"";
  for (std::size_t group = svg.find("<g>"); group != std::string::npos; group = svg.find("<g>", group + 1)) {
    const std::size_t bar = svg.find("<rect ", group);
    found.push_back(std::stod(svg.substr(svg.find(width, bar) + width.size())));
  }
  return found;
}

}  // namespace

TEST_CASE("timelines below each other have one scale, and each begins at 0") {
  const std::string svg = to_svg(
      {{"one", {{"compute", {bar("a", "attn(F)", 0, 100)}}}}, {"two", {{"compute", {bar("b", "attn(B)", 500, 700)}}}}});
  const std::vector<double> bars = widths(svg);
  REQUIRE(bars.size() == 2);
  CHECK(bars[1] == doctest::Approx(2 * bars[0]).epsilon(1e-3));
  CHECK(svg.find(">200 us</text>") != std::string::npos);
  CHECK(svg.find("700 us") == std::string::npos);
}

TEST_CASE("a label that does not fit its bar is broken in two, or left to the tooltip") {
  const std::string svg = to_svg({{"",
                                   {{"compute",
                                     {bar("attn(F)", "attn(F)", 0, 900), bar("combine(F)", "combine(F)", 900, 936),
                                      bar("mlp(B)", "mlp(B)", 936, 940), bar("end", "", 940, 1000)}}}}});
  CHECK(count(svg, ">attn(F)</text>") == 1);
  CHECK(count(svg, ">combine</text>") == 1);
  CHECK(count(svg, ">mlp") == 1);
  CHECK(count(svg, "<title>mlp(B)</title>") == 1);
}

TEST_CASE("an overlapped slot has the colours of both its passes") {
  const std::string svg =
      to_svg({{"", {{"rank 0", {bar("F", "F", 0, 1), bar("B", "B", 1, 2), bar("FB", "F&B", 2, 3)}}}}});
  const std::size_t overlapped = svg.find("<title>FB</title>");
  for (const char* pass : {"F", "B"}) {
    const std::size_t at = svg.find(std::string("<title>") + pass + "</title>");
    const std::string fill = svg.substr(svg.find("fill=", at), 14);
    CHECK(svg.find(fill, overlapped) != std::string::npos);
  }
}

TEST_CASE("no text of a picture is markup") {
  const std::string svg = to_svg({{"<script>&", {{"\x01<b>", {bar("</text><script>", "attn", 0, 10)}}}}});
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("&lt;script&gt;&amp;") != std::string::npos);
  CHECK(svg.find('\x01') == std::string::npos);
}

TEST_CASE("the picture of the overlapped chunk is that of the README") {
  const TemporaryFolder folder;
  const std::string file = folder / "timeline.svg";
  const Outcome outcome =
      run_moeline({"simulate", source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml").string(),
                   "--set", "layers=2", "--set", "routing={distribution: balanced}", "--svg", file});
  REQUIRE(outcome.exit_code == 0);
  CHECK(content_of(file) == content_of(source("experiments/studies/train_chunk_deepseek_v3_h800/timeline.svg")));
}

}  // TEST_SUITE("timeline_page/svg")
