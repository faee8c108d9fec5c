// The engine by itself: a transfer holds 20 of 132 SMs for 10 us; beside it runs an elastic kernel that wants all of
// them for 10 us. While the transfer runs the kernel has 112 SMs, then all: it ends at 10 + 10 (1 - 112/132) us.
#include <moeline/engine/simulate.hpp>

#include <cmath>
#include <cstdio>

int main() {
  moeline::TaskGraphDraft draft;
  const moeline::ResourceId sms = draft.add_pool("SMs", 132);
  const auto add = [&](moeline::Hold hold, int wanted, const char* name) {
    moeline::Task task;
    task.solo = moeline::from_us(10);
    task.pool = sms;
    task.sms = static_cast<std::uint16_t>(wanted);
    task.hold = hold;
    return draft.add(task, name);
  };
  const moeline::TaskId transfer = add(moeline::Hold::resident, 20, "dispatch");
  const moeline::TaskId kernel = add(moeline::Hold::elastic, 132, "cast");
  const moeline::Timeline timeline = moeline::simulate(moeline::TaskGraph(std::move(draft)));
  const double transfer_us = moeline::to_us(timeline.spans[transfer].end);
  const double kernel_us = moeline::to_us(timeline.spans[kernel].end);
  std::printf("dispatch ends at %.3f us, cast at %.3f us\n", transfer_us, kernel_us);
  const bool as_known = std::abs(transfer_us - 10) < 1e-6 && std::abs(kernel_us - (10 + 10 * (1 - 112.0 / 132))) < 1e-6;
  return as_known ? 0 : 1;
}
