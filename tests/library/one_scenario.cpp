// A scenario from another program: what `moeline simulate` calls step_ms. The data is named by MOELINE_HOME, since this
// program lies elsewhere.
#include <moeline/experiments/run/run.hpp>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const moeline::Run run = moeline::run_scenario(moeline::load_setup(arguments[1]));
  std::printf("%.6f\n", moeline::to_us(run.metrics.span) / 1e3);
  return 0;
}
