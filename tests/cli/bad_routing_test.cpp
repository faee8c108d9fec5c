// Routing and ranks that cannot be: refused with the file and line, or the key; nothing is left behind.
#include <filesystem>

#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("cli/bad_routing") {

using namespace moeline::testing;

namespace {

Arguments with_set(const Arguments& sets) {
  Arguments arguments = {"simulate", moeline::testing::decode_scenario().string(), "--set", "layers=4"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

void check_set_refused(const Arguments& sets, const std::string& says) {
  check_refused(with_set(sets), "--set: ", says);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string layer_of(int experts, const std::string& last) { return repeated("1,", experts - 1) + last + "\n"; }

void check_loads_refused(const std::string& content, const std::string& place, const std::string& says) {
  const TemporaryFolder folder;
  const std::string file = folder.write("loads.csv", content);
  check_refused(with_set({"routing={distribution: file, file: " + file + "}"}), file + place, says);
}

}  // namespace

TEST_CASE("loads of other experts or layers, below 0, all 0 or on too few experts are refused with the file") {
  check_loads_refused(layer_of(255, "1"), ": ", "has 255 experts, not 256");
  check_loads_refused(repeated(layer_of(256, "1"), 57), ": ", "has 57 layers; the model has 58 MoE layers");
  check_loads_refused(layer_of(256, "-3"), ":1: ", "a load must be from 0");
  check_loads_refused(repeated("0,", 255) + "0\n", ":1: ", "must not all be 0");
  check_loads_refused("9,8,7,6,5,4,3," + repeated("0,", 248) + "0\n", ": ",
                      "layer 0 has fewer than 8 experts with a load");
  check_loads_refused("layer,expert,loads\n0,0,1\n", ":1: ", "is neither numbers alone nor one of the headers");
}

TEST_CASE("keys of routing that do not go together are refused with the key") {
  check_set_refused({"routing={distribution: file}"}, "routing.file is missing");
  check_set_refused({"routing={distribution: power_law, alpha: -1}"}, "routing.alpha must be from 0 to 10, not -1");
  check_set_refused({"routing={distribution: balanced, alpha: 1}"},
                    "routing.alpha belongs to the distribution power_law, not balanced");
  check_set_refused({"routing={distribution: power_law, file: x}"}, "routing.file belongs to the distribution file");
  check_set_refused({"routing={distribution: power_law, placement: epbl}"}, "did you mean 'eplb'?");
  check_set_refused({"routing={distribution: power_law, rows_spread: 0.1}"}, "does not go with loads");
  check_set_refused({"routing={rows_spread: 0.9}"}, "routing.rows_spread must be from 0 to 0.5");
}

TEST_CASE("replicas, groups and nodes that EPLB cannot place are refused with its rule") {
  check_set_refused({"routing={distribution: power_law, redundant_experts: 100, placement: eplb}"},
                    "gpus must divide replicas: 128 does not divide 356");
  check_set_refused({"parallelism.ep=144", "routing={distribution: power_law, placement: eplb}"},
                    "gpus must divide replicas: 144 does not divide 256");
  check_set_refused({"parallelism.ep=512", "routing={distribution: power_law}"},
                    "parallelism.ep must divide the 256 routed experts: 512 does not");
}

TEST_CASE("ranks that are to be folded must be alike but for chance") {
  check_set_refused({"ranks=folded", "routing={distribution: power_law}"},
                    "ranks folded does not go with unequal loads");
  check_set_refused({"ranks=folded", "workload.batch_size_spread=4"}, "folded does not go with batch_size_spread");
  check_set_refused({"ranks=folded", "samples=5"}, "samples above 1 have nothing to draw where ranks are folded");
  check_set_refused({"ranks=all", "layers=all", "parallelism={ep: 4096, dp: 4096}", "routing.redundant_experts=3840"},
                    "ranks all: 4096 ranks of 58 layers are too many to simulate together");
  check_set_refused({"ranks=fold"}, "did you mean 'folded'?");
  check_set_refused({"jitter=no"}, "did you mean 'none'?");
  check_set_refused({"speed_spread=1"}, "speed_spread must be from 0 to 0.3, not 1");
}

TEST_CASE("a rank that is not simulated has no trace, and no folder is begun for it") {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Arguments base = with_set({});
  Arguments arguments = base;
  arguments.insert(arguments.end(), {"--trace-ranks", "3", "-o", out});
  check_refused(arguments, "--trace-ranks: ", "'3' is not among the simulated ranks, 0 to 0");
  CHECK(!std::filesystem::exists(out));
  arguments = base;
  arguments.insert(arguments.end(), {"--set", "ranks=all", "--trace-ranks", "0,127", "-o", out});
  CHECK(run_moeline(arguments).exit_code == 0);
  for (const char* trace : {"rank_0.json", "rank_127.json"}) CHECK(std::filesystem::exists(out + "/traces/" + trace));
  CHECK(!std::filesystem::exists(out + "/traces/rank_1.json"));
}

}  // TEST_SUITE("cli/bad_routing")
