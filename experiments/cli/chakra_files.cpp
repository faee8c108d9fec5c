#include "experiments/cli/chakra_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

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

// Of ranks that do something without the others, numbered from 1 as they are met.
class Groups {
 public:
  explicit Groups(const Parallelism& split) : split_(split) {}
  int number(const JointMessage& message, int rank) {
    if (message.ranks >= split_.group()) return 0;
    const JointRanks group = joint_ranks(message, split_, rank);
    const auto found = std::find(known_.begin(), known_.end(), group);
    const auto number = static_cast<int>(found - known_.begin()) + 1;
    if (found == known_.end()) known_.push_back(group);
    return number;
  }
  [[nodiscard]] bool empty() const { return known_.empty(); }
  [[nodiscard]] std::string json() const {
    std::vector<std::string> lines;
    for (const JointRanks& group : known_) {
      lines.push_back(fmt::format("  \"{}\": [{}]", lines.size() + 1, fmt::join(group.numbers(), ", ")));
    }
    return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
  }

 private:
  const Parallelism& split_;
  std::vector<JointRanks> known_;
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
          .group = groups.number(message, rank)};
}

// Of a run of more ranks, or with groups, under the same name.
void remove_those_before(const std::string& name, int ranks, bool has_groups) {
  std::error_code ignored;
  if (!has_groups) std::filesystem::remove(groups_file(name), ignored);
  for (int rank = ranks; is_own(file_of(name, rank), FileKind::chakra); ++rank) {
    std::filesystem::remove(file_of(name, rank), ignored);
  }
}

}  // namespace

void refuse_chakra_of_stages(const Setup& setup) {
  if (!setup.scenario.kind().pipeline && !is_staged(setup.scenario)) return;
  throw SpecError(setup.scenario.file, 0,
                  "--chakra: what stages of a pipeline send to each other has no place in its files yet");
}

void check_chakra_files(const Run& run, const std::string& name, const std::string& scenario, bool force) {
  refuse_chakra_of_stages(run.setup);
  for (int rank = 0; rank < ranks_of(run); ++rank) {
    check_output({"--chakra", file_of(name, rank), FileKind::chakra}, {scenario}, force);
  }
  // Groups have no mark of ours: they belong to the traces beside them.
  if (!is_own(file_of(name, 0), FileKind::chakra)) check_own("--chakra", groups_file(name), FileKind::chakra, force);
}

void write_chakra_files(const Run& run, const std::string& name, const Progress& progress) {
  const std::set<std::uint32_t> simulated = simulated_ranks(run.program.graph);
  Groups groups(run.setup.scenario.parallelism);
  ProgressCount one_more(progress, "files", static_cast<std::size_t>(ranks_of(run)));
  for (int rank = 0; rank < ranks_of(run); ++rank) {
    const auto own = static_cast<std::uint32_t>(rank);
    const auto collective = [&](TaskId task) -> std::optional<ChakraCollective> {
      const std::optional<JointMessage> message = joint_message_of(run.program, task);
      if (!message) return std::nullopt;
      return collective_of(*message, rank, groups);
    };
    write_text(file_of(name, rank),
               chakra_trace(run.program.graph, run.timeline, simulated.contains(own) ? own : 0, collective));
    one_more();
  }
  if (!groups.empty()) write_text(groups_file(name), groups.json());
  remove_those_before(name, ranks_of(run), !groups.empty());
}

}  // namespace moeline
