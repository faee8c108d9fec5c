// Writes what is made of the program's help: man pages, completion of shells, the functions of the Python module.
//   moeline_describe FOLDER
#include <fmt/format.h>

#include <exception>

#include "base/file.hpp"
#include "experiments/cli/program.hpp"
#include "experiments/packaging/describe/commands.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  moeline::write_text(file, text);
}

void write_all(const fs::path& folder) {
  using namespace moeline;
  Console console;
  const std::vector<DescribedCommand> commands = described(make_commands(console, MOELINE_VERSION));
  write(folder / "man/moeline.1", man_page_of_program(commands, MOELINE_VERSION));
  for (const DescribedCommand& command : commands) {
    write(folder / "man" / fmt::format("moeline-{}.1", command.name), man_page(command, MOELINE_VERSION));
  }
  write(folder / "completion/moeline.bash", bash_completion(commands));
  write(folder / "completion/_moeline", zsh_completion(commands));
  write(folder / "completion/moeline.fish", fish_completion(commands));
  write(folder / "python/commands.py", python_module(commands));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    write_all(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "moeline_describe: {}\n", error.what());
    return 1;
  }
  return 0;
}
