#include "schedules/pipeline/pipelines.hpp"
#include "schedules/schedules.hpp"

namespace moeline {

Program build_program(const Setup& setup) {
  const std::string& schedule = setup.scenario.schedule;
  if (is_pipeline(schedule)) return pipeline(setup);
  if (schedule == "sequential") return sequential(setup);
  return schedule == "dualpipe-chunk" ? dualpipe_chunk(setup) : two_batch(setup);
}

}  // namespace moeline
