// Bytes as an export of Nsight Systems, or SQL that makes one, through everything that reads a trace.
#include "tests/fuzz/nsight_database.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_nsight(std::string_view bytes) { return feed_trace(database_of(bytes)); }

}  // namespace moeline::fuzz
