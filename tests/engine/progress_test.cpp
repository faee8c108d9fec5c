// Long runs say how far they are.
#include <doctest/doctest.h>

#include <vector>

#include "engine/simulate.hpp"

TEST_SUITE("engine/progress") {

using namespace moeline;

namespace {

TaskGraph chain_of(std::size_t tasks) {
  TaskGraphDraft draft;
  Task task;
  task.solo = from_us(1);
  for (TaskId id = 0; id < tasks; ++id) {
    (void)draft.add(task, "task");
    if (id > 0) draft.start_after_end(id - 1, id);
  }
  return TaskGraph(std::move(draft));
}

}  // namespace

TEST_CASE("a run tells of its tasks in ascending numbers, and a short one tells nothing") {
  for (const std::size_t tasks : {std::size_t{10}, std::size_t{300'000}}) {
    std::vector<std::size_t> told;
    const auto progress = [&](const char* what, std::size_t done, std::size_t all) {
      CHECK(what == std::string("tasks"));
      CHECK(all == tasks);
      CHECK(done > (told.empty() ? 0 : told.back()));
      CHECK(done <= all);
      told.push_back(done);
    };
    const TaskGraph graph = chain_of(tasks);
    CHECK(simulate(graph, {.progress = progress}).makespan == simulate(graph).makespan);
    CHECK(told.empty() == (tasks == 10));
  }
}

}  // TEST_SUITE("engine/progress")
