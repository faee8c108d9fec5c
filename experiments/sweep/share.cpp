#include "experiments/sweep/share.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

std::optional<std::size_t> number(const char* name) {
  constexpr std::size_t kLargest = 1'000'000'000;  // products of two fit
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const auto result = as_number<std::size_t>(text);
  if (result && *result <= kLargest) return result;
  throw SpecError(fmt::format("{}='{}' is no number of a process", name, text));
}

struct Launcher {
  const char* index;
  const char* count;
};
constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

Share share_of_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    const auto index = number(launcher.index);
    const auto count = number(launcher.count);
    if (!index || !count) continue;
    if (*index < *count) return {*index, *count};
    throw SpecError(fmt::format("{}={} is none of {}={} processes", launcher.index, *index, launcher.count, *count));
  }
  return {};
}

Share share_of_array() {
  const auto id = number("SLURM_ARRAY_TASK_ID");
  const std::size_t count = number("SLURM_ARRAY_TASK_COUNT").value_or(1);
  if (!id || count < 2) return {};
  const std::size_t first = number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::size_t step = number("SLURM_ARRAY_TASK_STEP").value_or(1);
  const std::size_t last = number("SLURM_ARRAY_TASK_MAX").value_or(first + (count - 1) * step);
  const bool equal_steps = step > 0 && last == first + (count - 1) * step;
  if (equal_steps && *id >= first && *id <= last && (*id - first) % step == 0) return {(*id - first) / step, count};
  throw SpecError(fmt::format(
      "SLURM_ARRAY_TASK_ID={} of {} tasks from {} to {} in steps of {}: which share is that? Arrays in equal "
      "steps have some, as --array=0-{}",
      *id, count, first, last, step, count - 1));
}

}  // namespace

Share share_of_environment() {
  const Share task = share_of_array();
  const Share process = share_of_launcher();
  return {task.index * process.count + process.index, task.count * process.count};
}

}  // namespace moeline
