#include "experiments/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace moeline {

void claim_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest number, this one
  }
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace moeline
