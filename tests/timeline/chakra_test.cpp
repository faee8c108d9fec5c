// Chakra execution traces, read back by the schema's field numbers.
#include "timeline/chakra.hpp"

#include <doctest/doctest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <tuple>

#include "engine/simulate.hpp"
#include "tests/support/cli.hpp"

TEST_SUITE("timeline/chakra") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct ChakraNode {
  std::uint64_t id = 0, duration_us = 0;
  std::string name;
  int type = 0;
  std::vector<std::uint64_t> waits_for;
  std::map<std::string, std::int64_t> numbers;  // attributes
  std::string group;
};

void read_attribute(protozero::pbf_reader attribute, ChakraNode& node) {
  std::string name;
  while (attribute.next()) {
    if (attribute.tag() == 1) {
      name = attribute.get_string();
    } else if (attribute.tag() == 9) {
      node.numbers[name] = attribute.get_int64();
    } else if (attribute.tag() == 29 && name == "pg_name") {
      node.group = attribute.get_string();
    } else if (attribute.tag() == 27) {
      node.numbers[name] = attribute.get_bool() ? 1 : 0;
    } else {
      attribute.skip();
    }
  }
}

ChakraNode read_node(protozero::pbf_reader message) {
  ChakraNode node;
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        node.id = message.get_uint64();
        break;
      case 2:
        node.name = message.get_string();
        break;
      case 3:
        node.type = message.get_enum();
        break;
      case 5:
        for (const std::uint64_t id : message.get_packed_uint64()) node.waits_for.push_back(id);
        break;
      case 7:
        node.duration_us = message.get_uint64();
        break;
      case 10:
        read_attribute(message.get_message(), node);
        break;
      default:
        message.skip();
    }
  }
  return node;
}

std::vector<ChakraNode> read_chakra(const std::string& bytes) {
  std::vector<ChakraNode> nodes;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (bool first = true; at != end; first = false) {
    const std::uint64_t size = protozero::decode_varint(&at, end);
    protozero::pbf_reader message(at, size);
    if (!first) {
      nodes.push_back(read_node(message));
    } else {
      REQUIRE(message.next(1));
      CHECK(message.get_string() == "0.0.4");
    }
    at += size;
  }
  return nodes;
}

const ChakraNode& named(const std::vector<ChakraNode>& nodes, const std::string& name) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const ChakraNode& n) { return n.name == name; });
  REQUIRE(found != nodes.end());
  return *found;
}

// What a reader that knows these nodes alone, and gives each stream and link without contention, takes.
std::uint64_t longest_chain_us(const std::vector<ChakraNode>& nodes) {
  std::vector<std::uint64_t> end(nodes.size());
  std::uint64_t longest = 0;
  for (const ChakraNode& node : nodes) {
    std::uint64_t start = 0;
    for (const std::uint64_t id : node.waits_for) start = std::max(start, end[id]);
    end[node.id] = start + node.duration_us;
    longest = std::max(longest, end[node.id]);
  }
  return longest;
}

}  // namespace

TEST_CASE("a dependency in Chakra is a task that ends before, also where only starts or ends are ordered") {
  TaskGraphDraft draft;
  const auto stream = draft.add_stream({0, 7, "compute", Role::compute});
  const auto task = [&](const char* name) {
    const Label label{
        .name = draft.intern(name), .task_class = draft.add_class("gemm", Role::compute), .stream = stream};
    return draft.add(Task{.solo = from_us(10)}, label);
  };
  const TaskId a = task("a"), b = task("b"), c = task("c"), d = task("d"), e = task("e");
  draft.start_after_end(a, b);
  draft.start_after_start(b, c);  // so after a
  draft.end_after_end(d, c);
  draft.start_after_end(c, e);  // so after d
  const TaskGraph graph(std::move(draft));
  const std::vector<ChakraNode> nodes =
      read_chakra(chakra_trace(graph, simulate(graph), 0, [](TaskId) { return std::nullopt; }));
  REQUIRE(nodes.size() == 5);
  const auto waits = [&](const char* after, const char* before) {
    const auto& ids = named(nodes, after).waits_for;
    return std::count(ids.begin(), ids.end(), named(nodes, before).id) == 1;
  };
  CHECK(waits("b", "a"));
  CHECK(waits("c", "a"));
  CHECK(!waits("c", "b"));
  CHECK(waits("e", "c"));
  CHECK(waits("e", "d"));
  CHECK(named(nodes, "d").waits_for.empty());
}

namespace {

// Files of a simulation, by rank.
std::vector<std::vector<ChakraNode>> chakra_of(const TemporaryFolder& folder, const std::string& scenario,
                                               const Arguments& more, int ranks) {
  Arguments call = {"simulate", source("experiments/studies/" + scenario).string(), "--chakra", folder / "run", "--format",
                    "csv"};
  call.insert(call.end(), more.begin(), more.end());
  const Outcome run = run_moeline(call);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  std::vector<std::vector<ChakraNode>> files;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string bytes = content_of(folder / ("run." + std::to_string(rank) + ".et"));
    CHECK(bytes.starts_with(kChakraStart));
    files.push_back(read_chakra(bytes));
  }
  CHECK(!std::filesystem::exists(folder / ("run." + std::to_string(ranks) + ".et")));
  return files;
}

bool is_collective(const ChakraNode& node) { return node.type == 7; }

using Collective = std::tuple<std::string, std::int64_t, std::int64_t, std::string>;

std::vector<Collective> collectives_of(const std::vector<ChakraNode>& nodes) {
  std::vector<Collective> all;
  for (const ChakraNode& node : nodes) {
    if (is_collective(node))
      all.emplace_back(node.name, node.numbers.at("comm_type"), node.numbers.at("comm_size"), node.group);
  }
  return all;
}

constexpr std::int64_t kAllReduce = 0, kAllToAll = 6;

}  // namespace

TEST_CASE("the training chunk's Chakra traces have a rank's tasks, and the same collectives in the same order on all") {
  const TemporaryFolder folder;
  const auto ranks = chakra_of(folder, "train_chunk_deepseek_v3_h800/scenario.yaml", {"--set", "samples=1"}, 64);
  const std::vector<ChakraNode>& nodes = ranks.front();
  REQUIRE(nodes.size() > 100);
  for (const ChakraNode& node : nodes) {
    for (const std::uint64_t id : node.waits_for) CHECK(id < nodes.size());
    CHECK((node.type == 4 || node.type == 7));
  }
  const std::vector<Collective> first = collectives_of(nodes);
  std::size_t all_to_alls = 0, barriers = 0;
  for (const auto& [name, type, bytes, group] : first) {
    CHECK(group.empty());
    all_to_alls += type == kAllToAll ? 1 : 0;
    barriers += type == kAllReduce && bytes == 8 ? 1 : 0;
  }
  CHECK(all_to_alls == 16);  // dispatch and combine, forward and backward, of four layers
  CHECK(barriers == 16);
  CHECK(all_to_alls + barriers == first.size());
  for (const auto& rank : ranks) CHECK(collectives_of(rank) == first);
  CHECK(longest_chain_us(nodes) > 0);
}

TEST_CASE(
    "where one rank stands for all, all have a file, and a low-latency transfer is one all-to-all of its messages") {
  const TemporaryFolder folder;
  const auto ranks =
      chakra_of(folder, "decode_deepseek_v3_h800_ep128/scenario.yaml",
                {"--set", "layers=4", "--set", "parallelism.ep=16", "--set", "workload.batch_size=16"}, 16);
  CHECK(ranks[0].size() == ranks[15].size());
  const std::vector<Collective> first = collectives_of(ranks[0]);
  CHECK(first == collectives_of(ranks[15]));
  REQUIRE(first.size() == 2UL * 2 * 4);  // dispatch and combine of two micro-batches in four layers
  std::set<std::int64_t> sizes;
  for (const auto& [name, type, bytes, group] : first) {
    CHECK(type == kAllToAll);
    CHECK(name.ends_with("on the wire"));
    sizes.insert(bytes);
  }
  // Of one micro-batch of 8 tokens to 8 experts each: 7168 numbers of FP8 with scales, or of BF16.
  for (const std::int64_t bytes : sizes) CHECK((bytes > 8 * 8 * 7168 && bytes < 8 * 8 * 2 * 7500));
}

TEST_CASE("collectives of some ranks name their group, and ASTRA-sim's configuration of groups has it") {
  const TemporaryFolder folder;
  const auto ranks =
      chakra_of(folder, "served_b200/decode.yaml",
                {"--set", "hardware=b200", "--set", "kernels=trtllm", "--set", "parallelism.tp=4", "--set",
                 "parallelism.dp=2", "--set", "parallelism.ep=8", "--set", "comm.mode=all_gather"},
                8);
  std::set<std::string> groups[2];
  for (int half : {0, 1}) {
    for (const auto& [name, type, bytes, group] : collectives_of(ranks[static_cast<std::size_t>(4 * half)])) {
      groups[half].insert(group);
    }
  }
  CHECK(groups[0].contains("1"));
  CHECK(groups[1].contains("2"));
  CHECK(!groups[1].contains("1"));
  CHECK(content_of(folder / "run.groups.json") == "{\n  \"1\": [0, 1, 2, 3],\n  \"2\": [4, 5, 6, 7]\n}\n");
}

TEST_CASE(
    "groups of ranks that lie apart are told apart, and a run with fewer ranks leaves nothing of the one before") {
  const TemporaryFolder folder;
  const std::string scenario = "prefill_deepseek_v3_h800_ep32/scenario.yaml";
  const Arguments spread = {"--set", "parallelism.tp=2", "--set", "parallelism.cp=4", "--set", "parallelism.ep=16"};
  (void)chakra_of(folder, scenario, spread, 16);
  const std::string groups = content_of(folder / "run.groups.json");
  CHECK(groups.find("[0, 2, 4, 6]") != std::string::npos);
  CHECK(groups.find("[1, 3, 5, 7]") != std::string::npos);
  CHECK(groups.find("[0, 1, 2, 3]") == std::string::npos);
  (void)chakra_of(folder, scenario, spread, 16);  // over our own
  CHECK(content_of(folder / "run.groups.json") == groups);
  (void)chakra_of(folder, scenario, {"--set", "parallelism.ep=8"}, 8);
  CHECK(!std::filesystem::exists(folder / "run.groups.json"));
  CHECK(!std::filesystem::exists(folder / "run.15.et"));
}

TEST_CASE("a pipeline has no Chakra traces yet, and says so") {
  const TemporaryFolder folder;
  const Outcome run = run_moeline({"simulate", source("experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml").string(),
                                   "--chakra", folder / "run"});
  CHECK(run.exit_code == 3);
  CHECK(run.err.find("--chakra: what stages of a pipeline send") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "run.0.et"));
}

TEST_CASE("Chakra traces are written over our own, and over nobody else's") {
  const TemporaryFolder folder;
  const Arguments call = {"simulate", source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml").string(),
                          "--chakra", folder / "chunk",
                          "--set",    "samples=1",
                          "--set",    "parallelism={ep: 16, dp: 16}",
                          "--set",    "routing={}",
                          "--format", "csv"};
  CHECK(run_moeline(call).exit_code == 0);
  CHECK(run_moeline(call).exit_code == 0);
  folder.write("chunk.0.et", "somebody's");
  CHECK(run_moeline(call).exit_code == 2);
  CHECK(content_of(folder / "chunk.0.et") == "somebody's");
  std::filesystem::remove(folder / "chunk.0.et");
  folder.write("chunk.groups.json", "{\n  \"1\": [0, 5]\n}\n");
  CHECK(run_moeline(call).exit_code == 2);
  CHECK(content_of(folder / "chunk.groups.json").find("[0, 5]") != std::string::npos);
}

}  // TEST_SUITE("timeline/chakra")
