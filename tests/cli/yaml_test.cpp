// Which files are read at all: text that is one plain YAML mapping, however its lines end. Anything else is refused.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cli.hpp"

TEST_SUITE("cli/yaml") {

using namespace moeline::testing;

TEST_CASE("text that is not one plain YAML mapping is refused") {
  check_changes({
      {"seed: 1", "seed: [1", 18, "not valid YAML"},
      {"seed: 1", "\tseed: 1", 17, "not valid YAML"},
      {"seed: 1", "seed: *seed", 17, "not valid YAML: the referenced anchor is not defined"},
      {"seed: 1", "seed: !!int 1", 17, "tag 'tag:yaml.org,2002:int' is not used here"},
      {"seed: 1", "seed: !me 1", 17, "tag '!me' is not used here"},
      {"seed: 1", "---\nseed: 1", 17, "a second document, or a stray character, begins"},
      {"seed: 1", "? [a]\n: 1", 17, "a key must be a plain word"},
      {"schema: 1", "schema: 1\n- model", 2, "not valid YAML"},
  });
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content, const std::string& says) {
    const std::string file = folder.write("whole.yaml", content);
    check_refused({"simulate", file}, file, says);
  };
  refused("- a\n- b\n", ":1: must be a mapping of keys to values");
  refused("just words\n", ":1: must be a mapping of keys to values");
  refused(",# stray\nschema: 1\n", ":1: not valid YAML: did not find expected node content");
  refused("# a comment alone\n", ":1: must be a mapping of keys to values");
  refused("a: " + std::string(40, '[') + std::string(40, ']') + "\n", "nested too deeply");
  refused(std::string(100'000, '['), "nested too deeply");
  refused(std::string(10'000'000, 'x'), ": is larger than 1 MiB");
  refused(kScenario + std::string(1, '\0'),
          ":19: is not a text file: its byte " + std::to_string(kScenario.size() + 1) + " is 0x00");
  refused("", ": is empty");
  refused(" \r\n\t\n", ": is empty");
  refused("\x1f\x8b\x08\x00", ":1: is not a text file: its byte 1 is 0x1f");
}

TEST_CASE("aliases of aliases that stand for billions of values are refused at once") {
  const TemporaryFolder folder;
  std::string bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (char name = 'b'; name < 'k'; ++name) {
    bomb += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i > 0 ? ", *" : "*") + static_cast<char>(name - 1);
    bomb += "]\n";
  }
  const std::string file = folder.write("bomb.yaml", bomb);
  check_refused({"simulate", file}, file, "holds more than 1000000 values");
}

TEST_CASE("files that cannot be read are named") {
  const TemporaryFolder folder;
  check_refused({"simulate", folder / "absent.yaml"}, folder / "absent.yaml: ", "no such file");
  check_refused({"simulate", folder.path()}, folder.path().string() + ": ", "is a folder, not a file");
  check_refused({"simulate", folder / std::string(5000, 'x')}, folder.path().string(), "");
  check_refused({"simulate", "/dev/zero"}, "/dev/zero: ", "is larger than 64 MiB");
  if (::geteuid() == 0) return;  // root reads everything
  const std::string locked = folder.write("locked.yaml", kScenario);
  ::chmod(locked.c_str(), 0);
  check_refused({"simulate", locked}, locked + ": ", "cannot be read");
}

TEST_CASE("line ends of Windows, a byte order mark and harmless aliases are taken") {
  const TemporaryFolder folder;
  const auto simulated = [&](const std::string& content) {
    const Outcome outcome = run_moeline({"simulate", folder.write("scenario.yaml", content), "--format", "csv"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  const std::string expected = simulated(kScenario);
  std::string windows;
  for (const char c : kScenario) windows += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(simulated(windows) == expected);
  CHECK(simulated("\xEF\xBB\xBF" + kScenario) == expected);
  CHECK(simulated(replaced(replaced(kScenario, "tp: 1", "tp: &one 1"), "pp: 1", "pp: *one")) == expected);
}

TEST_CASE("--set changes one value, not every alias of it") {
  const TemporaryFolder folder;
  const std::string rows = "forward: [31104, 30976]\n    backward: [34688, 32512]";
  const auto simulated = [&](const std::string& changed_rows, const Arguments& more) {
    Arguments arguments = {"simulate", folder.write("s.yaml", replaced(kScenario, rows, changed_rows)), "--format",
                           "csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_moeline(arguments).out;
  };
  CHECK(simulated("forward: &r [30976, 30976]\n    backward: *r", {"--set", "routing.rows.forward=[256, 256]"}) ==
        simulated("forward: [256, 256]\n    backward: [30976, 30976]", {}));
}

}  // TEST_SUITE("cli/yaml")
