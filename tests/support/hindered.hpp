// The program where something is in the way of what it writes: a limit, permissions, a closed stream.
#pragma once

#include <unistd.h>

#include <string>

#include "tests/support/cli.hpp"

namespace moeline::testing {

/// The program behind the words of another one that runs it.
inline Outcome run_with(Arguments before, const Arguments& arguments) {
  before.emplace_back(MOELINE_BINARY);
  before.insert(before.end(), arguments.begin(), arguments.end());
  return run_process(before);
}

/// No file of the process may become larger: what a full disk is to a user without rights to mount one.
inline Outcome run_with_limit(int kib, const Arguments& arguments) {
  return run_with({"/bin/bash", "-c", "ulimit -f \"$0\"; exec \"$@\"", std::to_string(kib)}, arguments);
}

/// Its streams as a shell redirects them: ">&-", "2>/dev/full".
inline Outcome run_redirected(const std::string& redirection, const Arguments& arguments) {
  return run_with({"/bin/bash", "-c", "exec \"$0\" \"$@\" " + redirection}, arguments);
}

/// Root may write everything; without this capability it may not.
inline const Arguments kWithPermissions =
    geteuid() == 0 ? Arguments{"/usr/bin/setpriv", "--bounding-set=-dac_override"} : Arguments{"/usr/bin/env"};

/// Whether a path without permission to write cannot be written, as it can be by some users in some containers.
inline bool binds(const std::string& path) {
  Arguments test = kWithPermissions;
  test.insert(test.end(), {"/usr/bin/test", "!", "-w", path});
  if (run_process(test).exit_code == 0) return true;
  MESSAGE("skipped: permissions do not bind this user");
  return false;
}

}  // namespace moeline::testing
