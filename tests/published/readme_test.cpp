// The README keeps its promises: it is short, its commands come early, do what they say and print what it shows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "architecture/architecture.hpp"
#include "architecture/parameters.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/markdown.hpp"
#include "tests/support/published_configs.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("published/readme") {

using namespace moeline;
using namespace moeline::testing;
namespace fs = std::filesystem;

namespace {

std::string readme() { return content_of(source("README.md")); }

/// A line of a block `sh`, without its comment; `| head -N` shows the first N lines of the output.
struct Command {
  std::vector<std::string> words;
  std::size_t shown_lines = 0;
};

Command command_of(const std::string& line) {
  Command command;
  std::istringstream stream(line.substr(0, line.find("  #")));
  for (std::string word; stream >> word && word != "|";) command.words.push_back(word);
  std::string head;
  if (stream >> head) {
    REQUIRE(head == "head");
    int lines = 0;
    stream >> lines;
    command.shown_lines = static_cast<std::size_t>(-lines);
  }
  return command;
}

bool is_program(const Command& command) { return command.words.front() == "build/release/moeline"; }

/// The README's folder as its reader has it, without leaving anything there.
class ScratchCheckout {
 public:
  ScratchCheckout() {
    fs::create_directory_symlink(source("experiments"), folder_.path() / "experiments");
    fs::current_path(folder_.path());
  }
  ~ScratchCheckout() { fs::current_path(before_); }
  ScratchCheckout(const ScratchCheckout&) = delete;
  ScratchCheckout& operator=(const ScratchCheckout&) = delete;

 private:
  TemporaryFolder folder_;
  fs::path before_ = fs::current_path();
};

Outcome run(const Command& command) {
  Arguments arguments(command.words.begin() + 1, command.words.end());
  std::replace(arguments.begin(), arguments.end(), std::string("TRACE"), training_trace().string());
  return run_moeline(arguments);
}

/// What a command needs beside this repository: "TRACE", or "--html", for which a build without npm lacks ECharts.
std::string need_of(const Command& command) {
  for (const char* need : {"TRACE", "--html"}) {
    if (std::find(command.words.begin(), command.words.end(), need) != command.words.end()) return need;
  }
  return "";
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string first_lines(const std::string& text, std::size_t count) {
  std::vector<std::string> lines = lines_of(text);
  if (count > 0 && lines.size() > count) lines.resize(count);
  return joined_lines(lines);
}

/// Runs the commands that need this, compares what the README shows of their output, and says how many they are.
int run_commands(const std::string& need) {
  const ScratchCheckout checkout;
  const std::vector<CodeBlock> blocks = page_of(readme()).blocks;
  int ran = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].language != "sh") continue;
    for (const std::string& line : blocks[i].lines) {
      const Command command = command_of(line);
      if (!is_program(command) || need_of(command) != need) continue;
      if (kSanitized && line.find("train_plans") != std::string::npos) continue;  // minutes there
      CAPTURE(line);
      const Outcome outcome = run(command);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 0);
      ++ran;
      if (i + 1 == blocks.size() || blocks[i + 1].language != "text") continue;
      CHECK(first_lines(outcome.out, command.shown_lines) == joined_lines(blocks[i + 1].lines));
    }
  }
  return ran;
}

void check_says(const std::string& words) {
  CHECK_MESSAGE(readme().find(words) != std::string::npos, "the README does not say: " << words);
}

}  // namespace

TEST_CASE("the README has at most 900 words outside of code blocks") { CHECK(page_of(readme()).words <= 900); }

TEST_CASE("the README installs by two scripts within 30 lines and shows a prediction within 60") {
  const std::vector<CodeBlock> blocks = page_of(readme()).blocks;
  REQUIRE(blocks.size() >= 3);
  CHECK(blocks[0].lines.size() == 2);
  CHECK(blocks[0].first_line + 1 <= 30);
  for (const std::string& line : blocks[0].lines) {
    const fs::path script = source(command_of(line).words.front());
    CAPTURE(script.string());
    REQUIRE(fs::is_regular_file(script));
    CHECK((fs::status(script).permissions() & fs::perms::owner_exec) != fs::perms::none);
  }
  CHECK(is_program(command_of(blocks[1].lines.front())));
  CHECK(blocks[2].language == "text");
  CHECK(blocks[2].first_line + blocks[2].lines.size() <= 60);
}

TEST_CASE("each command of the README runs, and prints what the README shows") { CHECK(run_commands("") >= 3); }

TEST_CASE("the README's command on a measured trace runs") {
  if (present(training_trace())) CHECK(run_commands("TRACE") == 1);
}

TEST_CASE("the README's commands that write pages run") {
  if (present(fs::path(MOELINE_BINARY).parent_path() / "page/echarts.min.js")) CHECK(run_commands("--html") == 2);
}

TEST_CASE("each file that the README links to is there") {
  const std::string text = readme();
  const std::string link = "](";
  for (std::size_t at = text.find(link); at != std::string::npos; at = text.find(link, at + 1)) {
    const std::size_t begin = at + link.size();
    const std::string target = text.substr(begin, text.find_first_of(")#", begin) - begin);
    if (target.starts_with("https://")) continue;
    CHECK_MESSAGE(fs::exists(source(target)), target << " is not there");
  }
}

TEST_CASE("the README's count of published configurations is that of their table") {
  check_says(fmt::format("All {} published config.json files at hand load", published_configs().size()));
}

TEST_CASE("the README's range of parameters is that of the published configurations") {
  const fs::path configs = data_folder() / "configs";
  if (!present(configs)) return;
  double least = 0;
  double most = 0;
  for (const PublishedConfig& each : published_configs()) {
    const double error = parameters(load_architecture(configs / each.folder)) / 1e9 / each.parameters - 1;
    least = std::min(least, error);
    most = std::max(most, error);
  }
  check_says(fmt::format("parameters within {:+.1f} to {:+.1f} %", 100 * least, 100 * most));
}

}  // TEST_SUITE("published/readme")
