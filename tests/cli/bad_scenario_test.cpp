// A scenario with a wrong key or value is refused at the line of that key, a wrong --set as --set.
#include "tests/support/cli.hpp"

TEST_SUITE("cli/bad_scenario") {

using namespace moeline::testing;

namespace {

// Of kScenario, where the last word of a path is unique: "workload.seq_len" is the "seq_len:" there.
struct Key {
  explicit Key(const std::string& path) : name(path.substr(path.rfind('.') + 1)), at(kScenario.find(name + ":")) {
    REQUIRE_MESSAGE(at != std::string::npos, "the case is stale: no '" << path << "'");
    const std::string before = kScenario.substr(0, at);
    line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  }

  [[nodiscard]] std::string renamed(const std::string& to) const {
    return std::string(kScenario).replace(at, name.size(), to);
  }
  [[nodiscard]] std::string with_value(const std::string& value) const {
    const std::size_t begin = at + name.size() + 2;
    std::size_t end = begin;
    for (int depth = 0; depth > 0 || std::string(",}\n").find(kScenario[end]) == std::string::npos; ++end) {
      const char c = kScenario[end];
      depth += (c == '[' || c == '{' ? 1 : 0) - (c == ']' || c == '}' ? 1 : 0);
    }
    return std::string(kScenario).replace(begin, end - begin, value);
  }

  std::string name;
  std::size_t at;
  int line = 0;
};

// Gives one key at a time a value, of which it is said: the key, then `says`.
struct BadValue {
  const char* key;
  const char* value;
  const char* says;
};

void check_values(const std::vector<BadValue>& values) {
  for (const auto& [path, value, says] : values) {
    const Key key(path);
    check_scenario_refused(key.with_value(value), key.line, std::string(": ") + path + " " + says);
  }
}

}  // namespace

TEST_CASE("an unknown key of a scenario is named with its line and the nearest key") {
  const std::pair<std::string, std::string> misspelt[] = {
      {"schema", "shema"},
      {"model", "modle"},
      {"hardware", "hardwear"},
      {"kernels", "kernel"},
      {"schedule", "Schedule"},
      {"parallelism", "paralelism"},
      {"parallelism.ep", "eps"},
      {"workload", "work_load"},
      {"workload.seq_len", "seqlen"},
      {"comm.num_sms", "nums_sm"},
      {"routing.distribution", "distribtion"},
      {"routing.rows", "row"},
      {"routing.rows.forward", "forwards"},
      {"layers", "layer"},
      {"overlap", "overlaps"},
      {"launch", "lunch"},
      {"seed", "sed"},
      {"samples", "sample"},
  };
  for (const auto& [path, wrong] : misspelt) {
    const Key key(path);
    const std::string wrong_path = path.substr(0, path.size() - key.name.size()) + wrong;
    check_scenario_refused(key.renamed(wrong), key.line,
                           "unknown key '" + wrong_path + "'; did you mean '" + path + "'?");
  }
  check_changes({
      {"seq_len", "context", 7, "unknown key 'workload.context'; there is: phase, micro_batch_size, seq_len"},
      {"samples: 1", "<<: {seed: 2}", 18, "unknown key '<<'"},
  });
}

TEST_CASE("a repeated key of a scenario is named with the line of the second one") {
  check_changes({
      {"model:", "model: deepseek-v3\nmodel:", 3, "key 'model' is repeated"},
      {"ep: 64", "ep: 64, ep: 32", 6, "key 'ep' is repeated"},
      {"layers: 2", "layers: 2\n'layers': 4", 15, "key 'layers' is repeated"},
  });
}

TEST_CASE("a required key that is absent is named") {
  check_changes({
      {"schema: 1\n", "", 1, "schema is missing"},
      {"model: deepseek-v3\n", "", 1, "model is missing"},
      {"hardware: h800\n", "", 1, "hardware is missing"},
      {"schedule: dualpipe-chunk\n", "", 1, "schedule is missing"},
      {"parallelism: {tp: 1, pp: 1, ep: 64, dp: 64}\n", "", 1, "parallelism is missing"},
      {"ep: 64, ", "", 6, "parallelism.ep is missing"},
      {"phase: train, ", "", 7, "workload.phase is missing"},
      {"seq_len: 4096, ", "", 7, "workload.seq_len is missing"},
      {"  rows:\n    forward: [31104, 30976]\n    backward: [34688, 32512]\n", "", 10, "routing.rows is missing"},
      {"    backward: [34688, 32512]\n", "", 12, "routing.rows.backward is missing"},
  });
}

TEST_CASE("a value of the wrong type is refused") {
  check_values({
      {"schema", "one", "must be a whole number, not 'one'"},
      {"model", "[deepseek-v3]", "must be a single value, not a list"},
      {"model", "{name: deepseek-v3}", "must be a single value, not a mapping"},
      {"hardware", "", "must be a single value, not nothing"},
      {"hardware", "''", "must not be empty"},
      {"kernels", "~", "must be a single value, not nothing"},
      {"schedule", "[]", "must be a single value, not a list"},
      {"parallelism", "64", "must be a mapping, not '64'"},
      {"parallelism.ep", "64.0", "must be a whole number, not '64.0'"},
      {"parallelism.ep", "'64'", "must be a whole number, not the text '64'"},
      {"parallelism.pp", "[1]", "must be a single value, not a list"},
      {"parallelism.dp", "6 4", "must be a whole number, not '6 4'"},
      {"workload.micro_batch_size", "true", "must be a whole number"},
      {"workload.seq_len", "4k", "must be a whole number, not '4k'"},
      {"workload.seq_len", "4_096", "must be a whole number, not '4_096'"},
      {"workload.seq_len", "0x1000", "must be a whole number, not '0x1000'"},
      {"workload.seq_len", "4.096e3", "must be a whole number"},
      {"workload.seq_len", ".nan", "must be a whole number"},
      {"workload.seq_len", ".inf", "must be a whole number"},
      {"workload.global_batch_size", "many", "must be a whole number"},
      {"comm.num_sms", "half", "has an unknown value 'half'; there is: auto"},
      {"routing.distribution", "[given]", "must be a single value"},
      {"routing.rows.forward", "31104", "must be a list of whole numbers, not '31104'"},
      {"routing.rows.forward", "[31104, x]", "must list whole numbers"},
      {"routing.rows.forward", "[31104, [1]]", "must list whole numbers from 1 to 1049088; it has a list"},
      {"layers", "some", "must be a whole number, not 'some'"},
      {"overlap", "{a: 1}", "must be a single value, not a mapping"},
      {"launch", "[attn]", "lists parts of layers of training by the operators megatron alone"},
      {"seed", "one", "must be a whole number, not 'one'"},
  });
}

TEST_CASE("negative, zero and absurd sizes are refused with the range") {
  check_values({
      {"schema", "2", "must be 1, not 2"},
      {"parallelism.ep", "0", "must be from 2 to 1048576, not 0"},
      {"parallelism.ep", "-64", "must be from 2 to 1048576, not -64"},
      {"parallelism.ep", "9223372036854775807", "must be from 2"},
      {"parallelism.ep", "99999999999999999999", "must be"},
      {"parallelism.pp", "0", "must be from 1"},
      {"parallelism.pp", "1000000", "must be from 1 to 4096"},
      {"parallelism.dp", "1048577", "must be from 1 to 1048576"},
      {"parallelism.dp", "-1", "must be from 1"},
      {"parallelism.tp", "0", "must be from 1"},
      {"workload.micro_batch_size", "0", "must be from 1 to 65536, not 0"},
      {"workload.micro_batch_size", "8192", "x seq_len is more than 16777216"},
      {"workload.seq_len", "0", "must be from 1 to 16777216, not 0"},
      {"workload.seq_len", "-1", "must be from 1"},
      {"workload.seq_len", "999999999", "must be from 1"},
      {"workload.global_batch_size", "0", "must be from 1"},
      {"comm.num_sms", "0", "must be from 1 to 131, not 0"},
      {"comm.num_sms", "132", "must be from 1 to 131, not 132"},
      {"routing.rows.forward", "[0, 30976]", "must list whole numbers from 1 to"},
      {"routing.rows.forward", "[1049089, 1]", "must list whole numbers from 1 to 1049088; it has '1049089'"},
      {"routing.rows.forward", "[31104]", "must list one value per layer: 2, not 1"},
      {"routing.rows.backward", "[-34688, 32512]", "must list whole numbers from 1 to"},
      {"routing.rows.backward", "[]", "must list one value per layer: 2, not 0"},
      {"layers", "0", "must be from 1 to 5000, not 0"},
      {"layers", "-2", "must be from 1"},
      {"layers", "100000", "must be from 1 to 5000, not 100000"},
      {"seed", "-1", "must be from 0"},
      {"samples", "0", "must be from 1 to 10000, not 0"},
  });
}

TEST_CASE("an EP that does not divide is refused") {
  check_changes({
      {"dp: 64", "dp: 65", 6, "parallelism.ep must divide tp x dp: 64 does not divide 65"},
      {"ep: 64, dp: 64", "ep: 48, dp: 48", 6, "parallelism.ep must divide the 256 routed experts: 48 does not"},
      {"ep: 64, dp: 64", "ep: 512, dp: 512", 6, "parallelism.ep must divide the 256 routed experts: 512 does not"},
  });
}

TEST_CASE("an unknown name is refused with the nearest one") {
  check_values({
      {"model", "deepseek-v33", "names an unknown model 'deepseek-v33'; did you mean 'deepseek-v3'?"},
      {"model", "gpt", "names an unknown model 'gpt'; there is:"},
      {"model", "none/here.yaml", "names an unknown model 'none/here.yaml': no such file"},
      {"model", "\"deep\\nseek\\x01\"", "names an unknown model 'deep?seek?'"},
      {"hardware", "h80", "names an unknown hardware 'h80'; did you mean 'h800'?"},
      {"hardware", "./h800.yaml", "names an unknown hardware './h800.yaml': no such file"},
      {"kernels", "deepseek-2025-2",
       "names an unknown kernel set of h800 'deepseek-2025-2'; did you mean 'deepseek-2025-02'?"},
      {"schedule", "dualpipe_chunk", "names an unknown schedule 'dualpipe_chunk'; did you mean 'dualpipe-chunk'?"},
      {"workload.phase", "trian", "has an unknown value 'trian'; did you mean 'train'?"},
      {"comm.mode", "normla", "has an unknown value 'normla'; did you mean 'normal'?"},
      {"comm.dispatch_dtype", "fp9", "has an unknown value 'fp9'; did you mean"},
      {"comm.combine_dtype", "bf1", "has an unknown value 'bf1'; did you mean"},
      {"routing.distribution", "givn", "has an unknown value 'givn'; did you mean 'given'?"},
      {"overlap", "defualt", "'defualt': no such file"},
      {"launch", "steam", "has an unknown value 'steam'; did you mean 'stream'?"},
  });
}

TEST_CASE("what is not modelled is refused, not ignored") {
  check_values({
      {"parallelism.tp", "2", "above 1 is not what the operators deepseek do"},
      {"comm.mode", "low_latency", "'low_latency' is not modelled"},
      {"comm.dispatch_dtype", "bf16", "'bf16' is not modelled"},
      {"comm.combine_dtype", "fp8", "'fp8' is not modelled"},
  });
  check_changes(
      {{"distribution: given", "distribution: balanced", 11, "routing.rows belongs to the distribution given"}});
}

TEST_CASE("--set is refused as --set, not as a line of the file") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& assignment, const std::string& says) {
    check_refused(valid.with({"--set", assignment}), "--set:", says);
  };
  for (const std::string assignment : {"layers", "=2", "=", "hardware.hbm_GBps"}) {
    refused(assignment, "'" + assignment + "' is not of the form key=value");
  }
  for (const char* assignment : {"comm..num_sms=2", "comm.=2", ".layers=2", "hardware.=1"}) {
    refused(assignment, "is not of the form key=value");
  }
  for (const std::string value : {".nan", "nan", ".inf", "inf", "1e400"}) {
    refused("hardware.hbm_GBps=" + value, "hardware.hbm_GBps must be a number, not '" + value + "'");
  }
  refused("modle=x", "unknown key 'modle'; did you mean 'model'?");
  refused("comm.num_sm=2", "unknown key 'comm.num_sm'; did you mean 'comm.num_sms'?");
  refused("comms.num_sms=2", "unknown key 'comms'; did you mean 'comm'?");
  refused("layers.x=2", "'layers' is not a mapping");
  refused("workload.seq_len.x=2", "'seq_len' is not a mapping");
  refused("workload.seq_len=", "workload.seq_len must be a single value, not nothing");
  refused("workload.seq_len=99999999999999999999", "workload.seq_len must be");
  refused("workload.seq_len=0x10", "workload.seq_len must be a whole number, not '0x10'");
  refused("comm=normal", "comm must be a mapping, not 'normal'");
  refused("comm={num_sms: 500}", "comm.num_sms must be from 1 to 131, not 500");
  refused("comm={num_sms: 1, num_sms: 2}", "key 'num_sms' is repeated");
  refused("comm={num_sms: 1", "not valid YAML");
  refused("comm={num_sms: 1} x", "a second document, or a stray character, begins");
  refused("routing=*x", "not valid YAML: the referenced anchor is not defined");
  refused("layers=!!int 2", "is not used here");
  refused("kernels=deepseek-2025-03", "did you mean 'deepseek-2025-02'?");
  refused("hardware.bogus=1", "unknown key 'hardware.bogus'; there is: sms,");
  refused("hardware.nic_GBp=1", "unknown key 'hardware.nic_GBp'; did you mean 'hardware.nic_GBps'?");
  refused("hardware.hbm_GBps=0", "hardware.hbm_GBps must be from 0.001 to 10000000, not 0");
  refused("hardware.hbm_GBps=-1", "hardware.hbm_GBps must be from 0.001");
  refused("hardware.sms=1.5", "hardware.sms must be a whole number, not '1.5'");
  refused("hardware.sms.value=1", "hardware.sms must be a single value, not a mapping");
  check_refused(valid.with({"--set", "layers=3", "--set", "layers=0"}),
                "--set:", "layers must be from 1 to 5000, not 0");
}

TEST_CASE("a machine too small for the communication of the file is refused at the line of comm") {
  const ValidScenario valid;
  const std::string place = valid.file + ":8: ";
  check_refused(valid.with({"--set", "hardware.sms=20"}), place, "comm.num_sms must be from 1 to 19, not 20");
  check_refused(valid.with({"--set", "hardware.sms=1"}), place, "comm.num_sms cannot be met: the machine has one SM");
}

}  // TEST_SUITE("cli/bad_scenario")
