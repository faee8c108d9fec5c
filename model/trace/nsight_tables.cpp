#include "trace/nsight_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "trace/trace_records.hpp"

namespace moeline {
namespace {

std::string expression_of(const SqliteFile& file, const std::string& table, const std::vector<std::string>& present,
                          const NsightColumn& column) {
  std::vector<std::string> found;
  for (const std::string& name : column.names) {
    if (std::find(present.begin(), present.end(), name) != present.end()) found.push_back(in_quotes(name));
  }
  if (found.empty() && column.needed) {
    throw file.error(fmt::format("its table {} has no column {}", table, fmt::join(column.names, " or ")));
  }
  const std::string name = in_quotes(column.names.front());
  if (found.empty()) return "NULL AS " + name;
  if (found.size() == 1) return found.front() + " AS " + name;
  return fmt::format("COALESCE({}) AS {}", fmt::join(found, ", "), name);
}

struct OtherDatabase {
  std::vector<std::string> tables;  // by all of which it is known
  std::string_view what;
};

const std::vector<OtherDatabase> kOthers = {
    {{"study", "points"}, "a table of `moeline sweep`"},
    {{"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"}, "a database of nvprof"},
    {{"rocpd_string", "rocpd_op"}, "a database of ROCm's rocprof"},
    {{"STRING_IDS", "TASK"}, "a database of Ascend's profiler"},
};

bool has_any(const SqliteFile& file, const std::vector<std::string>& tables) {
  return std::any_of(tables.begin(), tables.end(), [&](const std::string& table) { return file.has(table); });
}

}  // namespace

std::string select_from(const SqliteFile& file, const std::string& table, const std::vector<NsightColumn>& columns,
                        const std::string& what) {
  const std::vector<std::string> present = file.columns(table);
  std::vector<std::string> wanted;
  for (const NsightColumn& column : columns) wanted.push_back(expression_of(file, table, present, column));
  return fmt::format("SELECT {} {} FROM {}", what, fmt::join(wanted, ", "), in_quotes(table));
}

NsightNames names_used(const SqliteFile& file, const std::vector<NameUse>& uses) {
  std::vector<std::string> queries;
  for (const auto& [table, column] : uses) {
    const std::vector<std::string> present = file.columns(table);
    if (std::find(present.begin(), present.end(), column) == present.end()) continue;
    queries.push_back(fmt::format("SELECT {} FROM {}", in_quotes(column), in_quotes(table)));
  }
  NsightNames names;
  if (queries.empty() || !file.has(nsight::kNames)) return names;
  const std::string all = select_from(file, nsight::kNames, {{{"id"}}, {{"value"}}});
  SqliteRows rows(file, fmt::format("{} WHERE id IN ({})", all, fmt::join(queries, " UNION ")));
  while (rows.next()) {
    on_behalf_of(file.name(), [&] {
      if (const auto id = rows.integer(0)) names.try_emplace(*id, rows.text(1));
    });
  }
  return names;
}

NsightProcess process_of(std::optional<std::int64_t> global) {
  return static_cast<std::uint64_t>(global.value_or(0)) >> 24U;
}

std::int64_t checked_time_ns(std::int64_t ns) {
  if (ns >= -kLargestTraceTimeNs && ns <= kLargestTraceTimeNs) return ns;
  throw SpecError(fmt::format("the time {} ns is not within 95 years of 0", ns));
}

std::optional<NsightSpan> span_of(const SqliteRows& row) {
  const auto start = row.integer(0);
  const auto end = row.integer(1);
  if (!start || !end || (*start == 0 && *end == 0)) return std::nullopt;
  if (*end < *start) throw SpecError(fmt::format("ends at {} ns, before it starts at {} ns", *end, *start));
  return NsightSpan{checked_time_ns(*start), checked_time_ns(*end)};
}

void check_nsight(const SqliteFile& file) {
  for (const std::string& table : nsight::kGpuTables) {
    const std::string_view instead = file.in_place_of(table);
    if (!instead.empty()) throw file.error(fmt::format("its {} is a {}, and no table", table, instead));
  }
  if (has_any(file, nsight::kGpuTables)) return;
  if (has_any(file, {"META_DATA_EXPORT", nsight::kNames, nsight::kRanges})) {
    throw file.error(
        fmt::format("is an export of Nsight Systems without GPU work: it has no table {}; `nsys profile --trace "
                    "cuda,nvtx` records it",
                    nsight::kKernels));
  }
  const auto known = std::find_if(kOthers.begin(), kOthers.end(), [&](const OtherDatabase& other) {
    return std::all_of(other.tables.begin(), other.tables.end(),
                       [&](const std::string& table) { return file.has(table); });
  });
  const std::string_view what = known != kOthers.end() ? known->what : "an SQLite database";
  throw file.error(fmt::format("is {}, and no export of Nsight Systems: it has no table {}", what, nsight::kKernels));
}

}  // namespace moeline
