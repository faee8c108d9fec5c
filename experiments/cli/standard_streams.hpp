// What a process is born with: three open files, and signals for writes that fail.
#pragma once

namespace moeline {

/// Call it first. Where stdin, stdout or stderr is closed, the next file opened would take its place, and a page or a
/// table of a sweep would get what is printed: reading a closed one finds nothing, writing to a closed stdout fails, and
/// to a closed stderr is lost. A file that grows past the limit of the process (ulimit -f) is an error of the write, and
/// kills nobody. A closed pipe does, silently, as of any program whose reader has read enough.
void claim_standard_streams();

}  // namespace moeline
