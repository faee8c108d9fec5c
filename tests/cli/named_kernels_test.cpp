// analyze --kernels: the kernels of a trace by name, and first those that nobody knows.
#include <doctest/doctest.h>

#include "tests/support/json.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("cli/named_kernels") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// 100 us of kernels: known by a row, by a word, by the trace itself, and twice not at all; and a copy.
std::string trace_text() {
  return SmallTrace()
      .on_gpu("kernel", "nvjet_tst_64x64", 7, 0, 60)
      .on_gpu("kernel", "my_gemm", 7, 60, 90)
      .on_gpu("kernel", "mine", 7, 90, 92)
      .on_gpu("kernel", "theirs", 7, 92, 93)
      .on_gpu("kernel", "mine", 7, 93, 95)
      .on_gpu("kernel", "stated", 7, 95, 100, R"("class": "attention")")
      .on_gpu("gpu_memcpy", "Memcpy DtoD", 7, 100, 200)
      .text();
}

std::string field(const rapidjson::Value& kernel, const char* key) { return kernel[key].GetString(); }

}  // namespace

TEST_CASE("kernels are listed by name with their time, those that nothing is known of first") {
  const TemporaryFolder folder;
  const auto json = in_json({"analyze", folder.write("t.json", trace_text()), "--kernels"});
  const auto& kernels = json["kernels"];
  std::vector<std::string> names;
  for (const auto& kernel : kernels.GetArray()) names.push_back(field(kernel, "kernel"));
  CHECK(names == std::vector<std::string>{"mine", "theirs", "nvjet_tst_64x64", "my_gemm", "stated"});
  CHECK(field(kernels[0], "class") == "unclassified");
  CHECK(field(kernels[0], "known_by") == "nothing");
  CHECK(kernels[0]["count"].GetInt() == 2);
  CHECK(kernels[0]["us"].GetDouble() == doctest::Approx(4));
  CHECK(kernels[0]["share"].GetDouble() == doctest::Approx(0.04));
  CHECK_FALSE(kernels[0].HasMember("stack"));
}

TEST_CASE("of each kernel it is said why it is of its class") {
  const TemporaryFolder folder;
  const auto json = in_json({"analyze", folder.write("t.json", trace_text()), "--kernels"});
  const auto& kernels = json["kernels"];
  CHECK(field(kernels[2], "known_by") == "row");
  CHECK(field(kernels[2], "stack") == "cuBLAS");
  CHECK(field(kernels[3], "known_by") == "word");
  CHECK(field(kernels[3], "class") == "gemm");
  CHECK(field(kernels[4], "known_by") == "trace");
  CHECK(field(kernels[4], "class") == "attention");
}

TEST_CASE("a pattern of the user's makes a kernel known") {
  const TemporaryFolder folder;
  const std::string map = folder.write("map.yaml", "schema: 1\nclasses: {combine: mine}\n");
  const auto json = in_json({"analyze", folder.write("t.json", trace_text()), "--kernels", "--map", map});
  const auto& kernels = json["kernels"].GetArray();
  const auto mine = std::find_if(kernels.begin(), kernels.end(), [](auto& k) { return field(k, "kernel") == "mine"; });
  REQUIRE(mine != kernels.end());
  CHECK(field(*mine, "known_by") == "pattern");
  CHECK(field(*mine, "class") == "combine");
}

TEST_CASE("the table says how much is not understood, and how much only by a word") {
  const TemporaryFolder folder;
  const std::string table = run_moeline({"analyze", folder.write("t.json", trace_text()), "--kernels"}).out;
  CHECK(
      table.find("2 of 5 names, 5 us or 5.0 % of the kernels' time: nothing is known of them.\n"
                 "1 of 5 names, 30 us or 30.0 % of the kernels' time: only a general word in them tells their class.\n"
                 "class         stack") != std::string::npos);
  CHECK(table.find("\nunclassified  ?                        2   4   4.0 %  mine\n") != std::string::npos);
}

TEST_CASE("without the flag no kernels are listed, and several traces have no such list") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", trace_text());
  CHECK_FALSE(in_json({"analyze", trace}).HasMember("kernels"));
  check_wrong_usage({"analyze", trace, trace, "--kernels"}, "--kernels: is of one rank, and here are several");
}

}  // TEST_SUITE("cli/named_kernels")
