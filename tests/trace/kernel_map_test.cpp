// The user's mapping file: kernel patterns for phases, classes and communication, and what is wrong with a bad one.
#include "trace/kernel_class.hpp"

#include "tests/support/cli.hpp"
#include "tests/support/measured.hpp"

TEST_SUITE("trace/kernel_map") {

using namespace moeline;
using namespace moeline::testing;

namespace {

KernelMap loaded(const std::string& yaml) {
  const TemporaryFolder folder;
  return load_kernel_map(folder.write("map.yaml", yaml));
}

// Refused by the program with file, line and what is wrong.
void check_map_refused(const std::string& yaml, int line, const std::string& says) {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", SmallTrace().on_gpu("kernel", "gemm", 7, 0, 9).text());
  const std::string map = folder.write("map.yaml", yaml);
  check_refused({"analyze", trace, "--map", map}, map + ":" + std::to_string(line) + ": ", says);
}

}  // namespace

TEST_CASE("a mapping file holds patterns for communication, classes and phases, in its own order") {
  const KernelMap map = loaded(
      "schema: 1\n"
      "communication: my_a2a|nccl\n"
      "classes: {dispatch: my_a2a_send, attention: \"mha|gqa\"}\n"
      "phases: {zeta: mha, alpha: my_a2a_send}\n");
  CHECK(map.communication == "my_a2a|nccl");
  REQUIRE(map.classes.size() == 2);
  CHECK(map.classes[0].meaning == "dispatch");
  CHECK(map.classes[0].pattern == "my_a2a_send");
  CHECK(map.classes[1].pattern == "mha|gqa");
  REQUIRE(map.phases.size() == 2);
  CHECK(map.phases[0].meaning == "zeta");
  CHECK(map.phases[1].meaning == "alpha");
}

TEST_CASE("every section of a mapping file may be left out") {
  const KernelMap map = loaded("schema: 1\n");
  CHECK(map.communication.empty());
  CHECK(map.classes.empty());
  CHECK(map.phases.empty());
}

TEST_CASE("a bad mapping file is refused with file, line and key") {
  check_map_refused("schema: 2\n", 1, "schema");
  check_map_refused("schema: 1\nphase: {attn: mha}\n", 2, "did you mean 'phases'?");
  check_map_refused("schema: 1\nclasses:\n  dispatch: a\n  attenton: mha\n", 4, "did you mean 'classes.attention'?");
  check_map_refused("schema: 1\nclasses: {attention: \"(\"}\n", 2, "'(' is not a regular expression");
  check_map_refused("schema: 1\nphases:\n  attn: mha\n  mlp: \"*\"\n", 4, "mlp");
  check_map_refused("schema: 1\ncommunication: \"[a\"\n", 2, "communication");
  check_map_refused("schema: 1\nphases: {attn: mha, attn: gqa}\n", 2, "attn");
  check_map_refused("schema: 1\nphases: {attn: [mha]}\n", 2, "attn");
  check_map_refused("schema: 1\nphases: mha\n", 2, "phases");
}

TEST_CASE("a mapping file that is absent, empty or no YAML is refused by name") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", SmallTrace().on_gpu("kernel", "gemm", 7, 0, 9).text());
  for (const std::string content : {"", "schema: [\n", "- 1\n", "schema: 1\n\tphases: {}\n"}) {
    CAPTURE(content);
    const std::string map = folder.write("map.yaml", content);
    check_refused({"replay", trace, "--map", map}, map, "");
  }
  check_refused({"replay", trace, "--map", folder / "absent.yaml"}, folder / "absent.yaml", "no such file");
}

TEST_CASE("phases of a mapping file go before annotations, and its classes before those that the trace states") {
  SmallTrace trace;
  trace.annotation("annotated", 0, 10).kernel("mha", 7, 1, 20, 30, R"("class": "memory")");
  const Measured plain = trace.understood();
  CHECK(shown(plain, {0, false}) == "annotated");
  CHECK(plain.meaning.classes[0] == KernelClass::memory);
  const Measured mapped = trace.understood(loaded("schema: 1\nphases: {attn: mha}\nclasses: {attention: mha}\n"));
  CHECK(shown(mapped, {0, false}) == "attn");
  CHECK(mapped.meaning.classes[0] == KernelClass::attention);
}

}  // TEST_SUITE("trace/kernel_map")
