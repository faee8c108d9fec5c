#include <fmt/format.h>

#include "schedules/schedules.hpp"

namespace moeline {

Program build_program(const Setup& setup) {
  const std::string& schedule = setup.scenario.schedule;
  if (setup.scenario.slot_costs) return pipeline(setup);
  if (schedule == "sequential") return sequential(setup);
  return schedule == "dualpipe-chunk" ? dualpipe_chunk(setup) : two_batch(setup);
}

Program finish_or_blame(RankProgram&& rank, const std::string& file) {
  try {
    return std::move(rank).finish();
  } catch (const CycleError& error) {
    throw SpecError(file, 0, fmt::format("this order cannot run: {}", error.what()));
  }
}

}  // namespace moeline
