#include "experiments/cli/chakra_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/file.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/timeline_page/run_view.hpp"
#include "schedules/lowering/joint_message.hpp"
#include "timeline/chakra.hpp"

namespace moeline {
namespace {

int ranks_of(const Run& run) { return run.setup.scenario.parallelism.group(); }

std::string file_of(const std::string& name, int rank) { return fmt::format("{}.{}.et", name, rank); }
std::string groups_file(const std::string& name) { return name + ".groups.json"; }

// Ranks of consecutive numbers that do something without the others, numbered as they are met.
class Groups {
 public:
  explicit Groups(int ranks) : ranks_(ranks) {}
  int number(int size, int rank) {
    if (size >= ranks_) return 0;
    const auto next = static_cast<int>(numbers_.size()) + 1;
    return numbers_.try_emplace({size, rank / size}, next).first->second;
  }
  [[nodiscard]] bool empty() const { return numbers_.empty(); }
  [[nodiscard]] std::string json() const {
    std::vector<std::string> lines;
    for (const auto& [group, number] : numbers_) {
      const auto [size, index] = group;
      std::vector<int> ranks(static_cast<std::size_t>(size));
      std::iota(ranks.begin(), ranks.end(), index * size);
      lines.push_back(fmt::format("  \"{}\": [{}]", number, fmt::join(ranks, ", ")));
    }
    return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
  }

 private:
  int ranks_;
  std::map<std::pair<int, int>, int> numbers_;  // by size, and position among those of this size
};

ChakraCollective::Kind kind_of(JointMessage::Kind kind) {
  switch (kind) {
    case JointMessage::Kind::all_to_all:
      return ChakraCollective::Kind::all_to_all;
    case JointMessage::Kind::all_gather:
      return ChakraCollective::Kind::all_gather;
    case JointMessage::Kind::reduce_scatter:
      return ChakraCollective::Kind::reduce_scatter;
    case JointMessage::Kind::barrier:  // which the schema has, and ASTRA-sim does not
    case JointMessage::Kind::all_reduce:
      break;
  }
  return ChakraCollective::Kind::all_reduce;
}

ChakraCollective collective_of(const JointMessage& message, int rank, Groups& groups) {
  constexpr std::int64_t kLeast = 8;  // nothing at all would never arrive
  return {.kind = kind_of(message.kind),
          .bytes = std::max(kLeast, static_cast<std::int64_t>(std::llround(message.bytes))),
          .group = groups.number(message.ranks, rank)};
}

}  // namespace

void check_chakra_files(const Run& run, const std::string& name, const std::string& scenario, bool force) {
  if (run.is_pipeline() || is_staged(run.setup.scenario)) {
    throw SpecError(scenario, 0,
                    "--chakra: what stages of a pipeline send to each other has no place in its files yet");
  }
  for (int rank = 0; rank < ranks_of(run); ++rank) {
    check_output({"--chakra", file_of(name, rank), FileKind::chakra}, {scenario}, force);
  }
  check_output({"--chakra", groups_file(name), FileKind::chakra_groups}, {scenario}, force);
}

void write_chakra_files(const Run& run, const std::string& name) {
  const std::set<std::uint32_t> simulated = simulated_ranks(run.program.graph);
  Groups groups(ranks_of(run));
  for (int rank = 0; rank < ranks_of(run); ++rank) {
    const auto own = static_cast<std::uint32_t>(rank);
    const auto collective = [&](TaskId task) -> std::optional<ChakraCollective> {
      const std::optional<JointMessage> message = joint_message_of(run.program, task);
      if (!message) return std::nullopt;
      return collective_of(*message, rank, groups);
    };
    write_text(file_of(name, rank),
               chakra_trace(run.program.graph, run.timeline, simulated.contains(own) ? own : 0, collective));
  }
  if (!groups.empty()) write_text(groups_file(name), groups.json());
}

}  // namespace moeline
