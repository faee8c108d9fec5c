#include <moeline_commit.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "experiments/cli/program.hpp"

namespace {

// It is called first. Where stdin, stdout or stderr is closed, the next file opened would take its place, and a page or
// a table of a sweep would get what is printed: reading a closed one finds nothing, writing to a closed stdout fails,
// and to a closed stderr is lost. A file that grows past the limit of the process (ulimit -f) is an error of the write,
// and kills nobody. A closed pipe does, silently, as of any program whose reader has read enough.
void claim_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest number, this one
  }
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

// A message is one line, whatever the input had in it.
int fail(const moeline::Console& console, int exit_code, std::string_view message) {
  constexpr std::size_t kLongest = 2000;
  console.fail(moeline::one_line(message, kLongest));
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace moeline;
  claim_standard_streams();
  Console console;
  try {
    return run_command({argv + 1, argv + argc}, console, MOELINE_VERSION MOELINE_COMMIT);
  } catch (const UsageError& error) {
    return fail(console, kUsage, error.what());
  } catch (const SpecError& error) {
    return fail(console, kBadInput, error.what());
  } catch (const std::system_error& error) {  // of files and pipes
    return fail(console, kBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return fail(console, kBadInput, "there is not enough memory for what this input asks for");
  } catch (const std::exception& error) {
    return fail(console, kDefect, error.what());
  }
}
