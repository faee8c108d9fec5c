// A message between GPUs has two ends, and each takes its own links.
#pragma once

#include "schedules/lowering/program.hpp"

namespace moeline {

/// Of a message's kernel, what the end that sends, or the one that receives, takes of links and memory.
void keep_end(bool sends, PreparedKernel& kernel);

}  // namespace moeline
