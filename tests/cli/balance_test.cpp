// moeline balance: what it prints, and what it refuses.
#include "tests/support/json.hpp"

TEST_SUITE("cli/balance") {

using namespace moeline::testing;

namespace {

const std::string kRows =
    "90,132,40,61,104,165,39,4,73,56,183,86\n"
    "20,107,104,64,19,197,187,157,172,86,16,27\n";
const Arguments kCluster = {"--gpus", "8", "--nodes", "2", "--groups", "4", "--replicas", "16"};
const std::string kMap = "token,layer,expert0,expert1\n0,0,0,1\n1,0,2,3\n2,0,1,3\n3,0,0,2\n";
const Arguments kTwoNodes = {"--gpus", "2", "--nodes", "2"};

Arguments operator+(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

struct Loads {
  explicit Loads(const std::string& text) : file(folder.write("loads.csv", text)) {}
  [[nodiscard]] Arguments balance(const Arguments& more) const { return Arguments{"balance", file} + more; }

  TemporaryFolder folder;
  std::string file;
};

std::vector<int> numbers_of(const rapidjson::Value& list) {
  std::vector<int> numbers;
  for (const auto& each : list.GetArray()) numbers.push_back(each.GetInt());
  return numbers;
}

void check_loads_refused(const std::string& text, const std::string& place, const std::string& says,
                         const Arguments& cluster = kCluster) {
  const Loads loads(text);
  check_refused(loads.balance(cluster), loads.file + place, says);
}

// The published example with one option changed.
Arguments cluster_with(const std::string& option, const std::string& value) {
  Arguments changed = kCluster;
  *(std::find(changed.begin(), changed.end(), option) + 1) = value;
  return changed;
}

}  // namespace

TEST_CASE("moeline balance prints the published example's placement with the keys of the contract") {
  const Loads loads(kRows);
  const rapidjson::Document result = in_json(loads.balance(kCluster));
  REQUIRE(result["placement"].Size() == 2);
  CHECK(numbers_of(result["placement"][0]) == std::vector<int>{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1});
  CHECK(numbers_of(result["placement"][1]) == std::vector<int>{7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1});
  CHECK(result["imbalance_before"].GetDouble() == doctest::Approx(2.3806).epsilon(1e-4));
  CHECK(result["imbalance_after"].GetDouble() == doctest::Approx(1.2422).epsilon(1e-4));
  CHECK(result["layers"][0]["imbalance_after"].GetDouble() == doctest::Approx(1.2081).epsilon(1e-4));
  CHECK(result["node_imbalance_after"].GetDouble() == doctest::Approx(1.1365).epsilon(1e-4));
  CHECK(std::string(result["policy"].GetString()) == "hierarchical");
  CHECK(result["schema_version"].GetInt() == 1);
  CHECK_FALSE(result.HasMember("rebalancing"));
}

TEST_CASE("moeline balance shows placement, imbalance, traffic and what it assumed") {
  const Outcome outcome = run_moeline(Loads(kRows).balance(kCluster));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* part : {"12 experts in 16 slots, on 8 GPUs of 2 nodes: hierarchical, 2 of 4 groups on each node",
                           "0  5 6 | 5 7 | 8 4 | 3 4 || 10 9 | 10 2 | 0 1 | 11 1\n", "worst, mean        2.381  1.242",
                           "2048 random tokens per layer choose top-8 from 4 of 4 groups",
                           "Warning: in 2 of 2 layers an expert has more"}) {
    CHECK_MESSAGE(outcome.out.find(part) != std::string::npos, part);
  }
}

TEST_CASE("the three forms of a file and a drawn power law are balanced alike, and twice the same") {
  std::string listed = "layer,expert,load\n";
  const std::string rows = "1,2,3,4\n8,1,1,2\n";
  int layer = 3;
  for (const auto& line : {std::vector<int>{1, 2, 3, 4}, {8, 1, 1, 2}}) {
    for (std::size_t e = 0; e < 4; ++e) {
      listed += std::to_string(layer) + "," + std::to_string(e) + "," + std::to_string(line[e]) + "\n";
    }
    ++layer;
  }
  const Arguments cluster = {"--gpus", "2", "--replicas", "6"};
  const rapidjson::Document a = in_json(Loads(rows).balance(cluster));
  const rapidjson::Document b = in_json(Loads(listed).balance(cluster));
  CHECK(a["placement"] == b["placement"]);
  CHECK(a["traffic"] == b["traffic"]);
  CHECK(b["layers"][0]["layer"].GetInt() == 3);
  CHECK(a["traffic"]["cross_node_after"].GetDouble() == 0);  // one node
  const Arguments drawn = {"balance", "--power-law", "1", "--layers", "3", "--experts", "64", "--gpus", "16"};
  CHECK(run_moeline(drawn).out == run_moeline(drawn).out);
  CHECK(in_json(drawn)["placement"] != in_json(drawn + Arguments{"--seed", "2"})["placement"]);
}

TEST_CASE("traffic of a router map is counted, from each token's home") {
  const rapidjson::Document result = in_json(Loads(kMap).balance(kTwoNodes));
  CHECK(std::string(result["traffic"]["method"].GetString()) == "counted");
  CHECK(result["traffic"]["cross_node_before"].GetDouble() == doctest::Approx(0.5));  // tokens 2 and 3 leave their node
  CHECK_FALSE(result["traffic"].HasMember("standard_error_before"));
  const std::string ranked = "token,layer,rank,expert0,expert1\n0,0,1,0,1\n1,0,0,2,3\n2,0,1,1,3\n3,0,0,0,2\n";
  CHECK(in_json(Loads(ranked).balance(kTwoNodes))["traffic"]["cross_node_before"].GetDouble() == 1);
}

TEST_CASE("with time steps, a static placement stands beside one that follows the moving average") {
  std::string text = "step,layer,expert,load\n";
  for (int step = 0; step < 4; ++step) {
    for (int e = 0; e < 8; ++e) {
      const int load = e == 0 && step == 0 ? 50 : e == 7 && step > 0 ? 50 : 10;
      text += std::to_string(step * 10) + ",0," + std::to_string(e) + "," + std::to_string(load) + "\n";
    }
  }
  const Loads loads(text);
  const Arguments cluster = {"--gpus", "4", "--replicas", "12"};
  const rapidjson::Document result = in_json(loads.balance(cluster));
  const auto& steps = result["rebalancing"]["steps"];
  REQUIRE(steps.Size() == 3);
  CHECK(steps[2]["step"].GetInt() == 30);
  CHECK(steps[2]["rebalanced"]["worst"].GetDouble() < steps[2]["static"]["worst"].GetDouble());
  CHECK(steps[0]["moved_copies"].GetInt() == 0);
  CHECK(steps[1]["moved_copies"].GetInt() > 0);
  const rapidjson::Document seldom = in_json(loads.balance(cluster + Arguments{"--rebalance-every", "9"}));
  CHECK(seldom["rebalancing"]["steps"][2]["rebalanced"] == seldom["rebalancing"]["steps"][2]["static"]);
  CHECK(run_moeline(loads.balance(cluster)).out.find("step  before") != std::string::npos);
}

TEST_CASE("shapes that cannot be placed are refused with the rule and the numbers") {
  check_loads_refused(kRows, ": ", "groups must divide the experts: 5 does not divide 12",
                      cluster_with("--groups", "5"));
  check_loads_refused(kRows, ": ", "nodes must divide gpus: 3 does not divide 8", cluster_with("--nodes", "3"));
  check_loads_refused(kRows, ": ", "gpus must divide replicas: 8 does not divide 15", cluster_with("--replicas", "15"));
  check_loads_refused(kRows, ": ", "replicas must be at least the experts: 8 are fewer than 12",
                      cluster_with("--replicas", "8"));
  check_loads_refused(kRows, ": ", "has 12 experts, not 16", kCluster + Arguments{"--experts", "16"});
  check_loads_refused(kRows, ": ", "top-k must be at most the experts of the groups chosen: 4 of 3",
                      kCluster + Arguments{"--top-k", "4", "--topk-group", "1"});
  check_loads_refused(kRows, ": ", "topk-group must be at most groups: 5 of 4",
                      kCluster + Arguments{"--topk-group", "5"});
  check_refused({"balance", "--power-law", "1", "--experts", "10", "--gpus", "4", "--groups", "4"},
                "--power-law: ", "groups must divide the experts: 4 does not divide 10");
}

TEST_CASE("loads that are no loads are refused with their line") {
  check_loads_refused("1,2,3\n1,2\n", ":2: ", "has 2 cells, the first line 3");
  check_loads_refused("1,2,3\n1,-2,3\n", ":2: ", "a load must be from 0 to 1e+15, not -2");
  check_loads_refused("1,2,3\n0,0,0\n", ":2: ", "the loads of a layer must not all be 0");
  check_loads_refused("1,2,3\n1,x,3\n", ":2: ", "1: 'x' is not a number");
  check_loads_refused("1,2,3\n1,nan,3\n", ":2: ", "'nan' is not a number");
  check_loads_refused("1,2,3\n1,1e300,3\n", ":2: ", "a load must be from 0 to 1e+15, not 1e+300");
  check_loads_refused("1 2 3\n", ":1: ", "is neither numbers alone nor one of the headers");
  check_loads_refused("a,b\n1,2\n", ":1: ", "is neither numbers alone nor one of the headers");
  check_loads_refused("", ": ", "is empty");
  check_refused(Arguments{"balance", "/nowhere.csv"} + kCluster, "/nowhere.csv", "");
}

TEST_CASE("lists of loads with gaps, repetitions or other columns are refused") {
  const std::string head = "layer,expert,load\n";
  check_loads_refused(head, ":1: ", "has no rows");
  check_loads_refused(head + "0,0,1\n0,1,1\n1,0,1\n", ": ",
                      "layer 1 has no load of expert 1; the file has experts 0 to 1");
  check_loads_refused(head + "0,0,1\n0,1,1\n0,1,2\n", ":4: ", "layer 0, expert 1 is repeated");
  check_loads_refused(head + "0,0,0\n0,1,0\n", ": ", "the loads of layer 0 must not all be 0");
  check_loads_refused(head + "0,0,-1\n", ":2: ", "a load must be from 0");
  check_loads_refused(head + "0,1.5,1\n", ":2: ", "expert must be a whole number");
  check_loads_refused(head + "0,999999,1\n", ": ", "has 1 rows for 1 steps of 1 layers of experts 0 to 999999");
  check_loads_refused("layer,experts,load\n0,0,1\n", ":1: ", "unknown column 'experts'; did you mean 'expert'?");
  check_loads_refused("step,layer,expert,load\n0,0,0,1\n1,0,1,1\n", ": ", "step 0, layer 0 has no load of expert 1");
  check_loads_refused("layer,load\n0,1\n", ":1: ", "has no column 'expert'");
}

TEST_CASE("router maps that contradict themselves or the cluster are refused") {
  const std::string head = "token,layer,expert0,expert1\n";
  check_loads_refused(head + "0,0,1,1\n", ":2: ", "expert 1 is chosen twice");
  check_loads_refused(head + "0,0,0,1\n0,0,1,2\n", ":3: ", "token 0 is repeated in layer 0");
  check_loads_refused(head + "0,0,0,12\n", ":2: ", "expert1 must be a whole number from 0 to 11, not 12",
                      kCluster + Arguments{"--experts", "12"});
  check_loads_refused("token,layer,expert0,rank\n0,0,0,8\n", ":2: ", "rank must be a whole number from 0 to 7, not 8");
  check_loads_refused("token,layer,expert\n0,0,0\n", ":1: ", "a router map needs columns expert0, expert1, ...");
  check_loads_refused("token,layer,expert0,load\n0,0,0,1\n", ":1: ", "unknown column 'load'");
  check_loads_refused(kMap, ": ", "a router map says what tokens chose", kTwoNodes + Arguments{"--top-k", "2"});
}

TEST_CASE("moeline balance without loads, with two sources, or with numbers out of range is wrong usage") {
  const Loads loads(kRows);
  check_wrong_usage({"balance", "--gpus", "8"}, "LOADS or --power-law is required");
  check_wrong_usage({"balance", "--gpus", "8", "--power-law", "1"}, "--experts");
  check_wrong_usage(loads.balance({"--gpus", "8", "--power-law", "1", "--experts", "12"}), "excludes");
  check_wrong_usage(loads.balance({}), "--gpus is required");
  check_wrong_usage(loads.balance({"--gpus", "0"}), "--gpus");
  check_wrong_usage(loads.balance({"--gpus", "8", "--nodes", "-1"}), "--nodes");
  check_wrong_usage(loads.balance({"--gpus", "8", "--layers", "3"}), "--power-law");
  check_wrong_usage(loads.balance({"--gpus", "8", "--newest-weight", "0"}), "--newest-weight");
  check_wrong_usage(loads.balance({"--gpus", "8", "--format", "csv"}), "--format");
}

}  // TEST_SUITE("cli/balance")
