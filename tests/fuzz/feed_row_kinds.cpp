// Bytes as a mapping of a serving stack's tables and, behind it, such tables.
#include "base/error.hpp"
#include "calib/fit/stack_tables.hpp"
#include "hardware/profile.hpp"
#include "tests/fuzz/fed_files.hpp"
#include "tests/fuzz/readers.hpp"

namespace moeline::fuzz {

bool feed_row_kinds(std::string_view bytes) {
  static const MachineFacts machine = load_profile("b200").facts;
  const FedFiles files(bytes, "mapping.yaml");
  const std::vector<std::filesystem::path> tables(files.all().begin() + 1, files.all().end());
  try {
    const std::vector<RowKind> kinds = read_row_kinds(files.first());
    if (tables.empty()) return true;
    (void)calibrate_stack(tables, kinds, {.kernels = "stack-1", .date = "2026-01", .profile = "b200"}, machine);
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

}  // namespace moeline::fuzz
