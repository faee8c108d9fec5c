// Chakra execution traces, read back by the schema's field numbers.
#include "timeline/chakra.hpp"

#include <doctest/doctest.h>

#include <map>
#include <protozero/pbf_reader.hpp>

#include "engine/simulate.hpp"
#include "tests/support/cli.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

struct ChakraNode {
  std::uint64_t id = 0, duration_us = 0;
  std::string name;
  int type = 0;
  std::vector<std::uint64_t> waits_for;
  std::map<std::string, std::int64_t> numbers;  // attributes
};

void read_attribute(protozero::pbf_reader attribute, ChakraNode& node) {
  std::string name;
  while (attribute.next()) {
    if (attribute.tag() == 1) {
      name = attribute.get_string();
    } else if (attribute.tag() == 9) {
      node.numbers[name] = attribute.get_int64();
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
  const std::vector<ChakraNode> nodes = read_chakra(chakra_trace(graph, simulate(graph), 0));
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

TEST_CASE("the training chunk's Chakra traces hold every task of a rank, transfers as collectives with their bytes") {
  const TemporaryFolder folder;
  const Outcome run =
      run_moeline({"simulate", source("experiments/train_chunk_deepseek_v3_h800/scenario.yaml").string(), "--chakra",
                   folder / "chunk", "--set", "samples=1", "--format", "csv"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const std::string bytes = content_of(folder / "chunk.0.et");
  CHECK(bytes.starts_with(kChakraStart));
  const std::vector<ChakraNode> nodes = read_chakra(bytes);
  REQUIRE(nodes.size() > 100);
  std::size_t all_to_alls = 0;
  for (const ChakraNode& node : nodes) {
    for (const std::uint64_t id : node.waits_for) CHECK(id < nodes.size());
    CHECK((node.type == 4 || node.type == 7));
    if (node.type == 7 && node.numbers.at("comm_type") == 6) {
      ++all_to_alls;
      CHECK(node.numbers.at("comm_size") > 0);
    }
  }
  CHECK(all_to_alls >= 8);  // dispatch and combine, forward and backward, of two layers
  CHECK(longest_chain_us(nodes) > 0);
}

TEST_CASE("Chakra traces are written over our own, and over nobody else's") {
  const TemporaryFolder folder;
  const Arguments call = {"simulate", source("experiments/train_chunk_deepseek_v3_h800/scenario.yaml").string(),
                          "--chakra", folder / "chunk",
                          "--set",    "samples=1",
                          "--format", "csv"};
  CHECK(run_moeline(call).exit_code == 0);
  CHECK(run_moeline(call).exit_code == 0);
  folder.write("chunk.0.et", "somebody's");
  CHECK(run_moeline(call).exit_code == 2);
  CHECK(content_of(folder / "chunk.0.et") == "somebody's");
}
