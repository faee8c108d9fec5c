// What `schedule: auto` chose among, as a person reads it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.hpp"
#include "experiments/cli/output/simulate_output.hpp"

namespace moeline {
namespace {

std::vector<std::string> row_of(const TriedSchedule& tried, double best_ms, bool of_prefill) {
  if (!tried.ran()) {
    std::vector<std::string> cells = {tried.schedule, "", "", "", tried.refused};
    if (of_prefill) cells.insert(cells.begin() + 1, "");
    return cells;
  }
  const bool is_best = tried.time_ms() == best_ms;
  std::vector<std::string> cells = {tried.schedule, fmt::format("{:.3f}", tried.step_ms)};
  if (of_prefill) cells.push_back(fmt::format("{:.3f}", tried.time_ms()));
  cells.push_back(is_best ? "" : signed_percent(tried.time_ms() / best_ms - 1));
  cells.push_back(tried.memory_gib ? fmt::format("{:.1f}", *tried.memory_gib) : "");
  cells.emplace_back(tried.fits_memory ? "" : "does not fit memory");
  return cells;
}

}  // namespace

std::string tried_table(const Run& run) {
  const std::vector<TriedSchedule>& all = run.tried;
  const std::string& taken = run.setup.scenario.schedule;
  const auto best = std::find_if(all.begin(), all.end(), [&](const TriedSchedule& t) { return t.schedule == taken; });
  if (best == all.end()) return "";
  const bool of_prefill = best->ttft_ms.has_value();
  TextTable table(of_prefill ? "lrrrrl" : "lrrrl");
  std::vector<std::string> head = {"auto", "step, ms", "to the best", "GiB", ""};
  if (of_prefill) head.insert(head.begin() + 2, "TTFT, ms");
  table.row(std::move(head));
  for (const TriedSchedule& tried : all) table.row(row_of(tried, best->time_ms(), of_prefill));
  return table.text() + "\n";
}

}  // namespace moeline
