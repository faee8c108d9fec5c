#include <moeline_commit.hpp>

#include <exception>
#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "experiments/cli/program.hpp"
#include "experiments/cli/standard_streams.hpp"

namespace {

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
