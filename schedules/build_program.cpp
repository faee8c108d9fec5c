#include "schedules/schedules.hpp"

namespace moeline {

Program build_program(const Setup& setup) {
  const std::string& schedule = setup.scenario.schedule;
  if (setup.scenario.slot_costs) return pipeline(setup);
  if (schedule == "sequential") return sequential(setup);
  return schedule == "dualpipe-chunk" ? dualpipe_chunk(setup) : two_batch(setup);
}

}  // namespace moeline
