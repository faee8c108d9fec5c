// Names of kernels and annotations may be anything: what is printed is short, on one line, and valid UTF-8.
#include "measured/names.hpp"
#include "measured/replay_text.hpp"

#include <doctest/doctest.h>
#include <rapidjson/document.h>

#include "tests/support/cli.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("measured/names") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Two layers of an annotation around a GEMM that waits for a kernel of another stream.
std::string trace_with(const std::string& annotation, const std::string& kernel) {
  SmallTrace trace;
  for (int i = 0; i < 2; ++i) {
    const int start = 1000 * i;
    trace.annotation(annotation, start, start + 9).kernel(kernel + " gemm", 7, start, start + 10, start + 100);
    trace.kernel(kernel, 27, start + 4, start + 100, start + 300);
    trace.wait_event(start + 7);
    trace.kernel(kernel, 7, start + 8, start + 302, start + 400);
  }
  return trace.text();
}

std::string printed(const std::string& trace, const std::string& command, const std::string& format) {
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", trace);
  Arguments arguments = {command, file};
  if (command == "compare") arguments.push_back(file);
  for (const char* more : {"--format", format.c_str()}) arguments.emplace_back(more);
  if (command == "replay") arguments.insert(arguments.end(), {"--scale", "gaps=0"});
  const Outcome outcome = run_moeline(arguments);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  return outcome.out;
}

bool is_json(const std::string& text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(text.c_str());
  return !document.HasParseError();
}

const std::vector<std::string> kNames = {
    R"(evil\n\u001b[31mred\nname)", repeated("x", 5000), "", "a\xFF\xFE\x80z", repeated("核函数_非常长的名字_", 30),
    repeated("\xC3", 200),          R"(\"quoted\\)"};

}  // namespace

TEST_CASE("whatever names a trace has, results are valid JSON") {
  for (const std::string& name : kNames) {
    for (const char* command : {"analyze", "replay", "compare"}) {
      CAPTURE(name.substr(0, 30));
      CAPTURE(command);
      CHECK(is_json(printed(trace_with(name, name), command, "json")));
      CHECK(is_json(printed(trace_with("mlp", name), command, "json")));
    }
    CHECK(is_json(to_graph_json(understand(read(trace_with(name, name))))));
  }
}

TEST_CASE("whatever names a trace has, tables have short lines without control characters") {
  for (const std::string& name : kNames) {
    for (const char* command : {"analyze", "replay", "compare"}) {
      CAPTURE(name.substr(0, 30));
      CAPTURE(command);
      const std::string table = printed(trace_with(name, name), command, "table");
      std::size_t longest = 0;
      for (std::size_t from = 0; from < table.size();) {
        const std::size_t end = table.find('\n', from);
        longest = std::max(longest, end - from);
        from = end + 1;
      }
      CHECK(longest < 600);  // bytes, of names with three in each character
      CHECK(table.find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("an event is called by its phase and layer, where it has none by its kernel's function") {
  SmallTrace trace;
  trace.annotation("attn", 0, 2).kernel("void f::flash_fwd<int>(int)", 7, 0, 10, 110);
  trace.kernel("void g::gemm<int>(int)", 7, 12, 120, 130);
  const Measured m = trace.understood();
  CHECK(kernel_name(m, 0) == "f::flash_fwd");
  CHECK(phase_name(m, 0) == "attn of layer 0");
  CHECK(place_name(m, 0) == "attn of layer 0");
  CHECK(phase_name(m, 1).empty());
  CHECK(place_name(m, 1) == "g::gemm");
}

}  // TEST_SUITE("measured/names")
