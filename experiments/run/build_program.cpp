#include "experiments/run/build_program.hpp"

#include <map>

#include "schedules/lowering/planned_step.hpp"
#include "schedules/schedules.hpp"

namespace moeline {

Program build_program(const Setup& setup) {
  static const std::map<std::string, Program (*)(const Setup&)> kPrograms = {
      {"sequential", sequential},     {"prefill-two-batch", planned_step}, {"decode-two-batch", planned_step},
      {"single-batch", planned_step}, {"per-expert", planned_step},        {"dualpipe-chunk", dualpipe_chunk}};
  const auto found = kPrograms.find(setup.scenario.schedule);
  MOELINE_CHECK(found != kPrograms.end(), setup.scenario.schedule);
  return found->second(setup);
}

}  // namespace moeline
