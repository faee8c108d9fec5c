#include "experiments/sweep/share.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace moeline {
namespace {

struct Variables {
  const char* index;
  const char* count;
  const char* first;  // index of the first process; null: 0
};
constexpr Variables kKnown[] = {{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
                                {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
                                {"PMI_RANK", "PMI_SIZE", nullptr},
                                {"SLURM_PROCID", "SLURM_NTASKS", nullptr}};

std::optional<int> number(const char* name) {
  const char* text = name == nullptr ? nullptr : std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view value = text;
  int result = 0;
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (failed != std::errc{} || end != value.data() + value.size() || result < 0) {
    throw SpecError(fmt::format("{}='{}' is no number of a process", name, value));
  }
  return result;
}

}  // namespace

Share share_of_environment() {
  for (const Variables& known : kKnown) {
    const std::optional<int> index = number(known.index);
    const std::optional<int> count = number(known.count);
    if (!index || !count || *count < 2) continue;
    const Share share{*index - number(known.first).value_or(0), *count};
    if (share.index >= 0 && share.index < share.count) return share;
    throw SpecError(fmt::format("{}={} is none of {}={} processes", known.index, *index, known.count, *count));
  }
  return {};
}

}  // namespace moeline
