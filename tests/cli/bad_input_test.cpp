// Bad input ends with exit code 3 and one line that says where and what; nothing on stdout, no file half written.
#include <doctest/doctest.h>
#include <rapidjson/document.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/process.hpp"

namespace moeline::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Line numbers in the cases below count from here.
const std::string kScenario =
    "schema: 1\n"                                                                              // 1
    "model: deepseek-v3\n"                                                                     // 2
    "hardware: h800\n"                                                                         // 3
    "kernels: deepseek-2025-02\n"                                                              // 4
    "schedule: dualpipe-chunk\n"                                                               // 5
    "parallelism: {tp: 1, pp: 1, ep: 64, dp: 64}\n"                                            // 6
    "workload: {phase: train, micro_batch_size: 1, seq_len: 4096, global_batch_size: 1024}\n"  // 7
    "comm: {mode: normal, num_sms: 20, dispatch_dtype: fp8, combine_dtype: bf16}\n"            // 8
    "routing:\n"                                                                               // 9
    "  distribution: given\n"                                                                  // 10
    "  rows:\n"                                                                                // 11
    "    forward: [31104, 30976]\n"                                                            // 12
    "    backward: [34688, 32512]\n"                                                           // 13
    "layers: 2\n"                                                                              // 14
    "overlap: default\n"                                                                       // 15
    "launch: stream\n"                                                                         // 16
    "seed: 1\n"                                                                                // 17
    "samples: 1\n";                                                                            // 18

const std::string kPlan =
    "compute: [attn(F), mlp(B), mlp(W), mlp(F), attn(B), attn(W)]\n"
    "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\n"
    "side: [mlp(W)]\n";

Outcome moeline(Arguments arguments) {
  arguments.insert(arguments.begin(), MOELINE_BINARY);
  return run_process(arguments);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, "the case is stale: no '" << from << "'");
  return text.replace(at, from.size(), to);
}

std::string joined(const Arguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += argument.substr(0, 100) + " ";
  return line;
}

bool has_temporary_file(const fs::path& folder) {
  const auto entries = fs::recursive_directory_iterator(folder);
  return std::any_of(begin(entries), end(entries),
                     [](const fs::directory_entry& entry) { return entry.path().extension() == ".tmp"; });
}

// The whole promise about bad input, for one call.
void check_refused(const Arguments& arguments, const std::string& place, const std::string& says) {
  const Outcome outcome = moeline(arguments);
  CAPTURE(joined(arguments));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.starts_with("moeline: " + place));
  CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, "does not say: " << says);
}

void check_usage(const Arguments& arguments) {
  const Outcome outcome = moeline(arguments);
  CAPTURE(joined(arguments));
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_FALSE(outcome.err.empty());
}

struct Change {
  const char* from;
  const char* to;
  int line;
  const char* says;
};

/// Changes `valid` in one place at a time; `arguments_for` says how the changed file is used.
template <class ArgumentsFor>
void check_changes(const std::string& valid, const std::vector<Change>& changes, ArgumentsFor arguments_for) {
  const TemporaryFolder folder;
  for (const Change& change : changes) {
    const std::string file = folder.write("changed.yaml", replaced(valid, change.from, change.to));
    check_refused(arguments_for(file), file + ":" + std::to_string(change.line) + ": ", change.says);
  }
}

void check_scenarios(const std::vector<Change>& changes) {
  check_changes(kScenario, changes, [](const std::string& file) { return Arguments{"simulate", file}; });
}

std::string installed(const std::string& path) { return content_of(fs::path(MOELINE_SOURCE_DIR) / path); }

/// A call with the valid scenario and more arguments.
struct ValidScenario {
  TemporaryFolder folder;
  std::string file = folder.write("scenario.yaml", kScenario);

  [[nodiscard]] Arguments with(const Arguments& more) const {
    Arguments arguments = {"simulate", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

}  // namespace

TEST_CASE("an unknown key of a scenario is named with its line and the nearest key") {
  check_scenarios({
      {"schema", "shema", 1, "unknown key 'shema'; did you mean 'schema'?"},
      {"model:", "modle:", 2, "unknown key 'modle'; did you mean 'model'?"},
      {"hardware", "hardwear", 3, "unknown key 'hardwear'; did you mean 'hardware'?"},
      {"kernels", "kernel", 4, "unknown key 'kernel'; did you mean 'kernels'?"},
      {"schedule", "Schedule", 5, "unknown key 'Schedule'; did you mean 'schedule'?"},
      {"parallelism", "paralelism", 6, "unknown key 'paralelism'; did you mean 'parallelism'?"},
      {"ep:", "eps:", 6, "unknown key 'parallelism.eps'; did you mean 'parallelism.ep'?"},
      {"workload", "work_load", 7, "unknown key 'work_load'; did you mean 'workload'?"},
      {"seq_len", "seqlen", 7, "unknown key 'workload.seqlen'; did you mean 'workload.seq_len'?"},
      {"seq_len", "context", 7, "unknown key 'workload.context'; there is: phase, micro_batch_size, seq_len"},
      {"num_sms", "nums_sm", 8, "unknown key 'comm.nums_sm'; did you mean 'comm.num_sms'?"},
      {"distribution", "distribtion", 10, "unknown key 'routing.distribtion'; did you mean 'routing.distribution'?"},
      {"  rows", "  row", 11, "unknown key 'routing.row'; did you mean 'routing.rows'?"},
      {"forward", "forwards", 12, "unknown key 'routing.rows.forwards'; did you mean 'routing.rows.forward'?"},
      {"layers", "layer", 14, "unknown key 'layer'; did you mean 'layers'?"},
      {"overlap", "overlaps", 15, "unknown key 'overlaps'; did you mean 'overlap'?"},
      {"launch", "lunch", 16, "unknown key 'lunch'; did you mean 'launch'?"},
      {"seed", "sed", 17, "unknown key 'sed'; did you mean 'seed'?"},
      {"samples", "sample", 18, "unknown key 'sample'; did you mean 'samples'?"},
      {"samples: 1", "<<: {seed: 2}", 18, "unknown key '<<'"},
  });
}

TEST_CASE("a repeated key of a scenario is named with the line of the second one") {
  check_scenarios({
      {"model:", "model: deepseek-v3\nmodel:", 3, "key 'model' is repeated"},
      {"ep: 64", "ep: 64, ep: 32", 6, "key 'ep' is repeated"},
      {"layers: 2", "layers: 2\n'layers': 4", 15, "key 'layers' is repeated"},
  });
}

TEST_CASE("a required key that is absent is named") {
  check_scenarios({
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
  check_scenarios({
      {"schema: 1", "schema: one", 1, "schema must be a whole number, not 'one'"},
      {"model: deepseek-v3", "model: [deepseek-v3]", 2, "model must be a single value, not a list"},
      {"model: deepseek-v3", "model: {name: deepseek-v3}", 2, "model must be a single value, not a mapping"},
      {"hardware: h800", "hardware:", 3, "hardware must be a single value, not nothing"},
      {"hardware: h800", "hardware: ''", 3, "hardware must not be empty"},
      {"kernels: deepseek-2025-02", "kernels: ~", 4, "kernels must be a single value, not nothing"},
      {"schedule: dualpipe-chunk", "schedule: []", 5, "schedule must be a single value, not a list"},
      {"{tp: 1, pp: 1, ep: 64, dp: 64}", "64", 6, "parallelism must be a mapping, not '64'"},
      {"ep: 64", "ep: 64.0", 6, "parallelism.ep must be a whole number, not '64.0'"},
      {"ep: 64", "ep: '64'", 6, "parallelism.ep must be a whole number, not the text '64'"},
      {"pp: 1", "pp: [1]", 6, "parallelism.pp must be a single value, not a list"},
      {"dp: 64", "dp: 6 4", 6, "parallelism.dp must be a whole number, not '6 4'"},
      {"micro_batch_size: 1", "micro_batch_size: true", 7, "workload.micro_batch_size must be a whole number"},
      {"seq_len: 4096", "seq_len: 4k", 7, "workload.seq_len must be a whole number, not '4k'"},
      {"seq_len: 4096", "seq_len: 4_096", 7, "workload.seq_len must be a whole number, not '4_096'"},
      {"seq_len: 4096", "seq_len: 0x1000", 7, "workload.seq_len must be a whole number, not '0x1000'"},
      {"seq_len: 4096", "seq_len: 4.096e3", 7, "workload.seq_len must be a whole number"},
      {"seq_len: 4096", "seq_len: .nan", 7, "workload.seq_len must be a whole number"},
      {"seq_len: 4096", "seq_len: .inf", 7, "workload.seq_len must be a whole number"},
      {"global_batch_size: 1024", "global_batch_size: many", 7, "workload.global_batch_size must be a whole number"},
      {"num_sms: 20", "num_sms: half", 8, "comm.num_sms must be a whole number, not 'half'"},
      {"  distribution: given", "  distribution: [given]", 10, "routing.distribution must be a single value"},
      {"[31104, 30976]", "31104", 12, "routing.rows.forward must be a list of whole numbers, not '31104'"},
      {"[31104, 30976]", "[31104, x]", 12, "routing.rows.forward must list whole numbers"},
      {"[31104, 30976]", "[31104, [1]]", 12, "it has a list"},
      {"layers: 2", "layers: some", 14, "layers must be a whole number, not 'some'"},
      {"overlap: default", "overlap: {a: 1}", 15, "overlap must be a single value, not a mapping"},
      {"launch: stream", "launch: [stream]", 16, "launch must be a single value, not a list"},
      {"seed: 1", "seed: one", 17, "seed must be a whole number, not 'one'"},
  });
}

TEST_CASE("negative, zero and absurd sizes are refused with the range") {
  check_scenarios({
      {"schema: 1", "schema: 2", 1, "schema must be 1, not 2"},
      {"ep: 64", "ep: 0", 6, "parallelism.ep must be from 1 to 1048576, not 0"},
      {"ep: 64", "ep: -64", 6, "parallelism.ep must be from 1 to 1048576, not -64"},
      {"ep: 64", "ep: 9223372036854775807", 6, "parallelism.ep must be from 1"},
      {"ep: 64", "ep: 99999999999999999999", 6, "parallelism.ep must be"},
      {"pp: 1", "pp: 0", 6, "parallelism.pp must be from 1"},
      {"pp: 1", "pp: 1000000", 6, "parallelism.pp x dp is more than 1048576 ranks"},
      {"dp: 64", "dp: -1", 6, "parallelism.dp must be from 1"},
      {"tp: 1", "tp: 0", 6, "parallelism.tp must be from 1"},
      {"micro_batch_size: 1", "micro_batch_size: 0", 7, "workload.micro_batch_size must be from 1 to 65536, not 0"},
      {"seq_len: 4096", "seq_len: 0", 7, "workload.seq_len must be from 1 to 16777216, not 0"},
      {"seq_len: 4096", "seq_len: -1", 7, "workload.seq_len must be from 1"},
      {"seq_len: 4096", "seq_len: 999999999", 7, "workload.seq_len must be from 1"},
      {"micro_batch_size: 1", "micro_batch_size: 8192", 7, "workload.micro_batch_size x seq_len is more than 16777216"},
      {"global_batch_size: 1024", "global_batch_size: 0", 7, "workload.global_batch_size must be from 1"},
      {"num_sms: 20", "num_sms: 0", 8, "comm.num_sms must be from 1 to 131, not 0"},
      {"num_sms: 20", "num_sms: 132", 8, "comm.num_sms must be from 1 to 131, not 132"},
      {"31104", "0", 12, "routing.rows.forward must list whole numbers from 1 to"},
      {"34688", "-34688", 13, "routing.rows.backward must list whole numbers from 1 to"},
      {"31104", "1049089", 12, "routing.rows.forward must list whole numbers from 1 to 1049088; it has '1049089'"},
      {"[31104, 30976]", "[31104]", 12, "routing.rows.forward must list one value per layer: 2, not 1"},
      {"[34688, 32512]", "[]", 13, "routing.rows.backward must list one value per layer: 2, not 0"},
      {"layers: 2", "layers: 0", 14, "layers must be from 1 to 5000, not 0"},
      {"layers: 2", "layers: -2", 14, "layers must be from 1"},
      {"layers: 2", "layers: 100000", 14, "layers must be from 1 to 5000, not 100000"},
      {"seed: 1", "seed: -1", 17, "seed must be from 0"},
      {"samples: 1", "samples: 2", 18, "samples must be 1, not 2"},
  });
}

TEST_CASE("an EP that does not divide is refused") {
  check_scenarios({
      {"dp: 64", "dp: 65", 6, "parallelism.ep must divide tp x dp: 64 does not divide 65"},
      {"ep: 64, dp: 64", "ep: 48, dp: 48", 6, "parallelism.ep must divide the 256 routed experts: 48 does not"},
      {"ep: 64, dp: 64", "ep: 512, dp: 512", 6, "parallelism.ep must divide the 256 routed experts: 512 does not"},
  });
}

TEST_CASE("an unknown name is refused with the nearest one") {
  check_scenarios({
      {"deepseek-v3", "deepseek-v2", 2, "model names an unknown model 'deepseek-v2'; did you mean 'deepseek-v3'?"},
      {"deepseek-v3", "gpt", 2, "model names an unknown model 'gpt'; there is:"},
      {"deepseek-v3", "none/here.yaml", 2, "model names an unknown model 'none/here.yaml': no such file"},
      {"h800", "h80", 3, "hardware names an unknown hardware 'h80'; did you mean 'h800'?"},
      {"h800", "./h800.yaml", 3, "hardware names an unknown hardware './h800.yaml': no such file"},
      {"deepseek-2025-02", "deepseek-2025-2", 4, "'deepseek-2025-2'; did you mean 'deepseek-2025-02'?"},
      {"dualpipe-chunk", "dualpipe_chunk", 5, "unknown schedule 'dualpipe_chunk'; did you mean 'dualpipe-chunk'?"},
      {"phase: train", "phase: trian", 7, "workload.phase has an unknown value 'trian'; did you mean 'train'?"},
      {"mode: normal", "mode: normla", 8, "comm.mode has an unknown value 'normla'; did you mean 'normal'?"},
      {"dispatch_dtype: fp8", "dispatch_dtype: fp9", 8, "comm.dispatch_dtype has an unknown value 'fp9'; did you mean"},
      {"combine_dtype: bf16", "combine_dtype: bf1", 8, "comm.combine_dtype has an unknown value 'bf1'; did you mean"},
      {"distribution: given", "distribution: givn", 10, "unknown value 'givn'; did you mean 'given'?"},
      {"overlap: default", "overlap: defualt", 15, "overlap 'defualt': no such file"},
      {"launch: stream", "launch: steam", 16, "launch has an unknown value 'steam'; did you mean 'stream'?"},
      {"deepseek-v3", "\"deep\\nseek\\x01\"", 2, "model names an unknown model 'deep?seek?'"},
  });
}

TEST_CASE("what is not modelled is refused, not ignored") {
  check_scenarios({
      {"tp: 1", "tp: 2", 6, "parallelism.tp '2' is not modelled"},
      {"mode: normal", "mode: low_latency", 8, "comm.mode 'low_latency' is not modelled"},
      {"dispatch_dtype: fp8", "dispatch_dtype: bf16", 8, "comm.dispatch_dtype 'bf16' is not modelled"},
      {"combine_dtype: bf16", "combine_dtype: fp8", 8, "comm.combine_dtype 'fp8' is not modelled"},
      {"distribution: given", "distribution: power_law", 10, "routing.distribution 'power_law' is not modelled"},
      {"distribution: given", "distribution: balanced", 11, "routing.rows belongs to the distribution given"},
  });
}

TEST_CASE("text that is not one plain YAML mapping is refused") {
  check_scenarios({
      {"seed: 1", "seed: [1", 18, "not valid YAML"},
      {"seed: 1", "\tseed: 1", 17, "not valid YAML"},
      {"seed: 1", "seed: *seed", 17, "not valid YAML: the referenced anchor is not defined"},
      {"seed: 1", "seed: !!int 1", 17, "tag 'tag:yaml.org,2002:int' is not used here"},
      {"seed: 1", "seed: !me 1", 17, "tag '!me' is not used here"},
      {"seed: 1", "---\nseed: 1", 17, "a second document, or a stray character, begins"},
      {"seed: 1", "? [a]\n: 1", 17, "a key must be a plain word"},
      {"schema: 1", "schema: 1\n- model", 2, "not valid YAML"},
  });
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content, const std::string& says) {
    const std::string file = folder.write("whole.yaml", content);
    check_refused({"simulate", file}, file, says);
  };
  refused("- a\n- b\n", ":1: must be a mapping of keys to values");
  refused("just words\n", ":1: must be a mapping of keys to values");
  refused(",# stray\nschema: 1\n", "a second document, or a stray character, begins");
  refused("# a comment alone\n", ":1: must be a mapping of keys to values");
  refused("a: " + std::string(40, '[') + std::string(40, ']') + "\n", "nested too deeply");
  refused(std::string(100'000, '['), "not valid YAML");
  refused(std::string(10'000'000, 'x'), ": is larger than 1 MiB");
  refused(kScenario + std::string(1, '\0'), ": is not a text file");
  refused("", ": is empty");
  refused(" \r\n\t\n", ": is empty");
  refused("\x1f\x8b\x08\x00", ": is not a text file");
}

TEST_CASE("aliases of aliases that stand for billions of values are refused at once") {
  const TemporaryFolder folder;
  std::string bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (char name = 'b'; name < 'k'; ++name) {
    bomb += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i > 0 ? ", *" : "*") + static_cast<char>(name - 1);
    bomb += "]\n";
  }
  const std::string file = folder.write("bomb.yaml", bomb);
  check_refused({"simulate", file}, file, "holds more than 1000000 values");
}

TEST_CASE("files that cannot be read are named") {
  const TemporaryFolder folder;
  check_refused({"simulate", folder / "absent.yaml"}, folder / "absent.yaml: ", "no such file");
  check_refused({"simulate", folder.path()}, folder.path().string() + ": ", "is a folder, not a file");
  check_refused({"simulate", folder / std::string(5000, 'x')}, folder.path().string(), "");
  check_refused({"simulate", "/dev/zero"}, "/dev/zero: ", "is larger than 64 MiB");
  if (::geteuid() == 0) return;  // root reads everything
  const std::string locked = folder.write("locked.yaml", kScenario);
  ::chmod(locked.c_str(), 0);
  check_refused({"simulate", locked}, locked + ": ", "cannot be read");
}

TEST_CASE("line ends of Windows, a byte order mark and harmless aliases are taken") {
  const TemporaryFolder folder;
  const auto simulated = [&](const std::string& content) {
    const Outcome outcome = moeline({"simulate", folder.write("scenario.yaml", content), "--format", "csv"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  const std::string expected = simulated(kScenario);
  std::string windows;
  for (const char c : kScenario) windows += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(simulated(windows) == expected);
  CHECK(simulated("\xEF\xBB\xBF" + kScenario) == expected);
  CHECK(simulated(replaced(replaced(kScenario, "tp: 1", "tp: &one 1"), "pp: 1", "pp: *one")) == expected);
}

TEST_CASE("--set is refused as --set, not as a line of the file") {
  const ValidScenario valid;
  const auto refused = [&](const Arguments& assignments, const std::string& says) {
    Arguments arguments;
    for (const std::string& assignment : assignments) arguments.insert(arguments.end(), {"--set", assignment});
    check_refused(valid.with(arguments), "--set:", says);
  };
  refused({"layers"}, "'layers' is not of the form key=value");
  refused({"=2"}, "'=2' is not of the form key=value");
  refused({"="}, "'=' is not of the form key=value");
  refused({"comm..num_sms=2"}, "is not of the form key=value");
  refused({"comm.=2"}, "is not of the form key=value");
  refused({".layers=2"}, "is not of the form key=value");
  refused({"modle=x"}, "unknown key 'modle'; did you mean 'model'?");
  refused({"comm.num_sm=2"}, "unknown key 'comm.num_sm'; did you mean 'comm.num_sms'?");
  refused({"layers.x=2"}, "'layers' is not a mapping");
  refused({"workload.seq_len.x=2"}, "'seq_len' is not a mapping");
  refused({"workload.seq_len="}, "workload.seq_len must be a single value, not nothing");
  refused({"workload.seq_len=99999999999999999999"}, "workload.seq_len must be");
  refused({"workload.seq_len=0x10"}, "workload.seq_len must be a whole number, not '0x10'");
  refused({"comm=normal"}, "comm must be a mapping, not 'normal'");
  refused({"comm={num_sms: 500}"}, "comm.num_sms must be from 1 to 131, not 500");
  refused({"comm={num_sms: 1, num_sms: 2}"}, "key 'num_sms' is repeated");
  refused({"comm={num_sms: 1"}, "not valid YAML");
  refused({"comm={num_sms: 1} x"}, "a second document, or a stray character, begins");
  refused({"routing=*x"}, "not valid YAML: the referenced anchor is not defined");
  refused({"layers=!!int 2"}, "is not used here");
  refused({"kernels=deepseek-2025-03"}, "did you mean 'deepseek-2025-02'?");
  refused({"hardware.bogus=1"}, "unknown key 'hardware.bogus'; there is: sms,");
  refused({"hardware.nic_GBp=1"}, "unknown key 'hardware.nic_GBp'; did you mean 'hardware.nic_GBps'?");
  refused({"hardware.hbm_GBps"}, "'hardware.hbm_GBps' is not of the form key=value");
  refused({"hardware.=1"}, "is not of the form key=value");
  refused({"hardware.hbm_GBps=0"}, "hardware.hbm_GBps must be from 0.001 to 10000000, not 0");
  refused({"hardware.hbm_GBps=-1"}, "hardware.hbm_GBps must be from 0.001");
  refused({"hardware.hbm_GBps=.nan"}, "hardware.hbm_GBps must be a number, not '.nan'");
  refused({"hardware.hbm_GBps=nan"}, "hardware.hbm_GBps must be a number, not 'nan'");
  refused({"hardware.hbm_GBps=.inf"}, "hardware.hbm_GBps must be a number, not '.inf'");
  refused({"hardware.hbm_GBps=inf"}, "hardware.hbm_GBps must be a number, not 'inf'");
  refused({"hardware.hbm_GBps=1e400"}, "hardware.hbm_GBps must be a number, not '1e400'");
  refused({"hardware.sms=1.5"}, "hardware.sms must be a whole number, not '1.5'");
  refused({"hardware.sms.value=1"}, "hardware.sms must be a single value, not a mapping");
  refused({"layers=3", "layers=0"}, "layers must be from 1 to 5000, not 0");
}

TEST_CASE("a machine too small for the communication of the file is refused at the line of comm") {
  const ValidScenario valid;
  const std::string place = valid.file + ":8: ";
  check_refused(valid.with({"--set", "hardware.sms=20"}), place, "comm.num_sms must be from 1 to 19, not 20");
  check_refused(valid.with({"--set", "hardware.sms=1"}), place, "comm.num_sms cannot be met: the machine has one SM");
}

TEST_CASE("--set changes one value, not every alias of it") {
  const TemporaryFolder folder;
  const std::string rows = "forward: [31104, 30976]\n    backward: [34688, 32512]";
  const auto simulated = [&](const std::string& changed_rows, const Arguments& more) {
    Arguments arguments = {"simulate", folder.write("s.yaml", replaced(kScenario, rows, changed_rows)), "--format",
                           "csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return moeline(arguments).out;
  };
  CHECK(simulated("forward: &r [30976, 30976]\n    backward: *r", {"--set", "routing.rows.forward=[256, 256]"}) ==
        simulated("forward: [256, 256]\n    backward: [30976, 30976]", {}));
}

TEST_CASE("an overlap plan is refused at its own line") {
  const ValidScenario valid;
  check_changes(kPlan,
                {
                    {"compute: [attn(F)", "compute: [attn(G)", 1,
                     "compute names an unknown phase 'attn(G)'; did you mean 'attn("},
                    {"combine(F)", "conbine(F)", 2,
                     "communication names an unknown phase 'conbine(F)'; did you mean 'combine(F)'?"},
                    {"[mlp(W)]", "[mlp(X)]", 3, "side names an unknown phase 'mlp(X)'; did you mean 'mlp("},
                    {"attn(F), ", "", 1, "compute and communication lack phase 'attn(F)'"},
                    {"combine(F)", "combine(F), combine(F)", 2, "communication repeats phase 'combine(F)'"},
                    {"combine(F)", "combine(F), attn(F)", 2, "repeats phase 'attn(F)', which stands in compute"},
                    {"[mlp(W)]", "[dispatch(F)]", 3, "side has 'dispatch(F)', which is not in compute"},
                    {"side", "sides", 3, "unknown key 'sides'; did you mean 'side'?"},
                    {"side: [mlp(W)]", "side: mlp(W)", 3, "side must be a list, not 'mlp(W)'"},
                    {"side: [mlp(W)]", "side: [[mlp(W)]]", 3, "side must list plain words; it has a list"},
                    {"side", "compute", 3, "key 'compute' is repeated"},
                    {"communication", "comunication", 2, "unknown key 'comunication'; did you mean 'communication'?"},
                },
                [&](const std::string& file) {
                  return valid.with({"--set", "overlap=" + file});
                });
}

TEST_CASE("an order of phases that waits for itself is refused, by name of the plan") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string plan = valid.folder.write("plan.yaml", replaced(kPlan, from, to));
    check_refused(valid.with({"--set", "overlap=" + plan}), plan + ": ", says);
  };
  refused("[attn(F), mlp(B), mlp(W), mlp(F),", "[mlp(F), mlp(B), mlp(W), attn(F),", "this order cannot run");
  refused("[combine(B), dispatch(F), dispatch(B), combine(F)]", "[combine(F), combine(B), dispatch(F), dispatch(B)]",
          "this order cannot run");
  refused("attn(B), attn(W)", "attn(W), attn(B)", "this order cannot run");
}

TEST_CASE("a hardware profile is refused at its own line") {
  const ValidScenario valid;
  check_changes(
      installed("hwprofiles/h800.yaml"),
      {
          {"name: h800", "name: h800\nvendor: x", 2, "unknown key 'vendor'; there is: name, facts, kernel_sets"},
          {"name: h800", "", 4, "name is missing"},
          {"  sms:", "  SMs:", 5, "unknown key 'facts.SMs'; did you mean 'facts.sms'?"},
          {"  bf16_tflops: {value: 989.5,", "  bf16_tflops: {", 7, "facts.bf16_tflops.value is missing"},
          {"value: 132", "value: 0", 5, "facts.sms.value must be from 1 to 4096, not 0"},
          {"value: 132", "value: 132.5", 5, "facts.sms.value must be a whole number"},
          {"value: 1979", "value: -1979", 6, "facts.fp8_tflops.value must be from 0.001"},
          {"value: 1979", "value: .inf", 6, "facts.fp8_tflops.value must be a number, not '.inf'"},
          {"value: 3350", "valeu: 3350", 8, "unknown key 'facts.hbm_GBps.valeu'; did you mean 'facts.hbm_GBps.value'?"},
          {"value: 3350", "value: fast", 8, "facts.hbm_GBps.value must be a number, not 'fast'"},
          {"value: 8, source: \"HGX H800\"", "value: 8", 11, "facts.gpus_per_node.source is missing"},
          {"value: 8, source: \"HGX H800\"", "value: 8, source: {}", 11,
           "source must be a single value, not a mapping"},
      },
      [&](const std::string& file) {
        return valid.with({"--set", "hardware=" + file});
      });
}

TEST_CASE("a kernel set is refused by the path of its key") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string profile =
        valid.folder.write("profile.yaml", replaced(installed("hwprofiles/h800.yaml"), from, to));
    check_refused(valid.with({"--set", "hardware=" + profile}), profile + ":", says);
  };
  refused(
      "small.us:", "smal.us:", ".constants.smal.us'; did you mean 'kernel_sets.deepseek-2025-02.constants.small.us'?");
  refused("small.us:", "small.us: x", ".constants.small.us must be a");
  refused("    constants:", "    constant:", "unknown key 'kernel_sets.deepseek-2025-02.constant'; did you mean");
  refused("{kernels: 2,", "{kernels: 0,", "kernels must be from 1 to");
  refused("mean_error", "main_error", "did you mean 'kernel_sets.deepseek-2025-02.fits.all_to_all_alone.mean_error'?");
  const std::string text = installed("hwprofiles/h800.yaml");
  const std::size_t at = text.find("      small.us:");
  REQUIRE(at != std::string::npos);
  refused(text.substr(at, text.find('\n', at) + 1 - at), "", ".constants.small.us is missing");

  const std::string bare = valid.folder.write("bare.yaml", text.substr(0, text.find("\n#")));
  CHECK(moeline(valid.with({"--set", "hardware=" + bare})).exit_code == 3);
  const std::string facts_only = valid.folder.write("facts.yaml", text.substr(0, text.find("kernel_sets:")));
  check_refused(valid.with({"--set", "hardware=" + facts_only}), "--set: hardware ", "has no kernel set; see");
}

TEST_CASE("a model is refused at its own line") {
  const ValidScenario valid;
  check_changes(
      installed("model/zoo/deepseek-v3.yaml"),
      {
          {"deepseek_v3", "deepseek_v4", 2, "model_type has an unknown value 'deepseek_v4'; did you mean"},
          {"num_hidden_layers: 61", "num_hidden_layers: 0", 3, "num_hidden_layers must be from 1 to 10000, not 0"},
          {"hidden_size: 7168", "hidden_sizes: 7168", 4, "unknown key 'hidden_sizes'; did you mean 'hidden_size'?"},
          {"hidden_size: 7168", "hidden_size: -7168", 4, "hidden_size must be from 1"},
          {"n_routed_experts: 256", "n_routed_experts: 65536", 7, "n_routed_experts must be from 2 to 4096"},
          {"num_experts_per_tok: 8", "num_experts_per_tok: 65", 9, "num_experts_per_tok must be from 1 to 64, not 65"},
          {"n_group: 8", "n_group: 256", 9, "num_experts_per_tok exceeds the experts of"},
          {"first_k_dense_replace: 3", "first_k_dense_replace: 61", 10, "first_k_dense_replace must be from 0 to 60"},
          {"n_group: 8", "n_group: 7", 11, "n_group must divide n_routed_experts"},
          {"topk_group: 4", "topk_group: 9", 12, "topk_group must be from 1 to 8, not 9"},
          {"vocab_size: 129280\n", "", 2, "vocab_size is missing"},
          {"vocab_size: 129280", "vocab_size: many", 19, "vocab_size must be a whole number, not 'many'"},
      },
      [&](const std::string& file) {
        return valid.with({"--set", "model=" + file});
      });
}

TEST_CASE("a trace that cannot be read is refused") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& trace, const std::string& says) {
    check_refused({"compare", valid.file, trace}, trace, says);
  };
  const TemporaryFolder& folder = valid.folder;
  refused(folder / "absent.json", ": no such file");
  refused(folder.path().string(), ": is a folder, not a file");
  refused(folder.write("empty.json", ""), ": is empty");
  refused(folder.write("binary.json", std::string("\x7f"
                                                  "ELF\0\1\2",
                                                  7)),
          ": not valid JSON");
  refused(folder.write("broken.json.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00", 8)), "gzip");
  refused(folder.write("cut.json", R"({"traceEvents": [{"ph": "X")"), ": truncated");
  refused(folder.write("other.json", R"({"events": []})"), ": not a trace");
  refused(folder.write("none.json", R"({"traceEvents": []})"), ": no GPU events");
  refused(folder.write("deep.json", std::string(200'000, '[')), ": ");
}

TEST_CASE("compare refuses layers that are not in both") {
  const ValidScenario valid;
  const auto refused = [&](const std::string& layers, const std::string& says) {
    check_refused({"compare", valid.file, valid.file, "--layers", layers}, "--layers: ", says);
  };
  refused("7", "layer 7 is not in both; these are: 0, 1");
  refused("0,2", "layer 2 is not in both");
  refused("-1", "layer -1 is not in both");
  check_usage({"compare", valid.file, valid.file, "--layers", "first"});
}

TEST_CASE("calibrate refuses a damaged table and leaves the old profile") {
  const TemporaryFolder folder;
  const std::string profile = folder.write("profile.yaml", "old\n");
  const auto refused = [&](const std::string& table, const std::string& says) {
    check_refused({"calibrate", table, "-o", profile}, table, says);
    CHECK(content_of(profile) == "old\n");
    CHECK_FALSE(has_temporary_file(folder.path()));
  };
  const std::string header = "ep,num_token,dispatch_sms,combine_sms,dispatch_transmit_us,combine_transmit_us\n";
  refused(folder / "absent.csv", ": no such file");
  refused(folder.path().string(), ": is a folder, not a file");
  refused(folder.write("empty.csv", ""), ": is empty");
  refused(folder.write("binary.csv", std::string("a,b\n\0\1", 6)), ": is not a text file");
  refused(folder.write("other.csv", "a,b\n1,2\n"), ":1: is not a table that calibrate knows");
  refused(folder.write("twice.csv", "ep,ep\n1,2\n"), ":1: column 'ep' is repeated");
  refused(folder.write("short.csv", header + "16,4096,8\n"), ":2: has 3 cells, its header 6");
  refused(folder.write("long.csv", header + "16,4096,8,8,1,1\n16,4096,8,8,1,1,1\n"), ":3: has 7 cells, its header 6");
  refused(folder.write("nan.csv", header + "16,4096,8,8,nan,1\n"), ":2: dispatch_transmit_us: 'nan' is not a number");
  refused(folder.write("word.csv", header + "16,many,8,8,1,1\n"), ":2: num_token: 'many' is not a number");
  refused(folder.write("column.csv", "ep,dispatch_transmit_us\n16,1\n"), ":1: has no column 'num_token'");
  refused(folder.write("trace.csv", "launch_us,idx\n1,0\n"), ":1: has no column");
}

TEST_CASE("calibrate refuses unknown names") {
  const TemporaryFolder folder;
  const std::string table = folder.write("table.csv", "a,b\n1,2\n");
  check_refused({"calibrate", table, "-o", folder / "p.yaml", "--hardware", "h801"}, "unknown hardware 'h801'",
                "did you mean 'h800'?");
  check_refused({"calibrate", table, "-o", folder / "p.yaml", "--model", "deepseek-v4"}, "unknown model 'deepseek-v4'",
                "did you mean 'deepseek-v3'?");
  CHECK_FALSE(fs::exists(folder / "p.yaml"));
}

TEST_CASE("output that cannot be written is refused and leaves nothing behind") {
  const ValidScenario valid;
  const TemporaryFolder target;
  const std::string missing = target / "missing/trace.json";
  const std::string file = target.write("file", "mine\n");
  check_refused(valid.with({"--trace", missing}), missing + ": ", "cannot be written");
  check_refused(valid.with({"--trace", target.path()}), target.path().string() + ": ", "cannot be written");
  check_refused(valid.with({"-o", file}), file + ": ", "cannot be created");
  check_refused(valid.with({"-o", file + "/below"}), file + "/below: ", "cannot be created");
  CHECK(content_of(file) == "mine\n");
  CHECK(std::distance(fs::directory_iterator(target.path()), {}) == 1);
}

TEST_CASE("bad input writes no output at all") {
  const ValidScenario valid;
  const TemporaryFolder target;
  check_refused(valid.with({"--set", "layers=0", "--trace", target / "trace.json", "-o", target / "run"}),
                "--set: ", "");
  CHECK(fs::is_empty(target.path()));
}

TEST_CASE("a device is written to, not replaced by a file") {
  const ValidScenario valid;
  const std::string link = valid.folder / "null";
  fs::create_symlink("/dev/null", link);  // were it replaced, it would be the link alone
  CHECK(moeline(valid.with({"--trace", link})).exit_code == 0);
  CHECK(fs::is_symlink(link));
}

TEST_CASE("wrong usage exits 2") {
  const ValidScenario valid;
  check_usage({});
  check_usage({"simulat"});
  check_usage({"simulate"});
  check_usage({"--frobnicate"});
  check_usage(valid.with({"--frobnicate"}));
  check_usage(valid.with({"another.yaml"}));
  check_usage(valid.with({"--set"}));
  check_usage(valid.with({"--format", "xml"}));
  check_usage(valid.with({"--kernel-naming", "x"}));
  check_usage(valid.with({"--ts-resolution", "ps"}));
  check_usage({"compare", valid.file});
  check_usage({"calibrate"});
  check_usage({"calibrate", "a.csv"});
  check_usage({"list"});
  check_usage({"list", "cars"});
}

TEST_CASE("list refuses unknown names") {
  check_refused({"list", "models", "deepseek-v2"}, "unknown model 'deepseek-v2'", "did you mean 'deepseek-v3'?");
  check_refused({"list", "hardware", "h801"}, "unknown hardware 'h801'", "did you mean 'h800'?");
  check_refused({"list", "schedules", "sequentail"}, "unknown schedule 'sequentail'", "did you mean 'sequential'?");
}

TEST_CASE("--strict turns extrapolated prices into exit code 1") {
  const ValidScenario valid;
  const Arguments smaller = {"--set", "workload.seq_len=1000", "--set", "routing={distribution: balanced}"};
  Arguments strict = smaller;
  strict.emplace_back("--strict");
  const Outcome warned = moeline(valid.with(smaller));
  CHECK(warned.exit_code == 0);
  CHECK(warned.err.find("moeline: warning: ") == 0);
  const Outcome refused = moeline(valid.with(strict));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("extrapolated") != std::string::npos);
}

TEST_CASE("--format json prints one object with the keys of the contract") {
  const ValidScenario valid;
  const Outcome outcome = moeline(valid.with({"--format", "json"}));
  REQUIRE(outcome.exit_code == 0);
  rapidjson::Document result;
  result.Parse(outcome.out.c_str());
  REQUIRE_FALSE(result.HasParseError());
  REQUIRE(result.IsObject());
  for (const char* key : {"schema_version", "scenario", "metrics", "classes", "phases", "provenance", "warnings"}) {
    CHECK_MESSAGE(result.HasMember(key), key);
  }
  CHECK(result["schema_version"].GetInt() == 1);
  for (const char* key : {"step_ms", "layer_us", "mfu", "compute_busy_us", "comm_busy_us", "exposed_comm_us",
                          "overlap_fraction", "bubble_fraction", "tasks", "simulate_ms"}) {
    CAPTURE(key);
    REQUIRE(result["metrics"].HasMember(key));
    CHECK(result["metrics"][key].GetDouble() >= 0);
  }
  for (const char* key : {"model", "hardware", "kernels", "schedule", "parallelism", "workload", "comm", "routing",
                          "layers", "overlap", "launch", "seed"}) {
    CHECK_MESSAGE(result["scenario"].HasMember(key), key);
  }
  REQUIRE(result["classes"].Size() > 0);
  for (const char* key : {"class", "busy_us_per_layer", "solo_us_per_layer"}) {
    CHECK_MESSAGE(result["classes"][0].HasMember(key), key);
  }
  CHECK(result["phases"].Size() == 20);  // ten of each layer
  for (const char* key :
       {"rank", "micro_batch", "layer", "phase", "stream", "start_us", "end_us", "busy_us", "solo_us"}) {
    CHECK_MESSAGE(result["phases"][0].HasMember(key), key);
  }
}

TEST_CASE("--format csv prints a header and one line per phase") {
  const ValidScenario valid;
  const Outcome outcome = moeline(valid.with({"--format", "csv"}));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("rank,micro_batch,layer,phase,stream,start_us,end_us,busy_us,solo_us\n"));
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 21);
}

TEST_CASE("-o holds a manifest, the metrics, and traces alone in traces/") {
  const ValidScenario valid;
  const TemporaryFolder target;
  const std::string run = target / "run";
  REQUIRE(moeline(valid.with({"-o", run, "--trace", target / "alone.json"})).exit_code == 0);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), run).string());
  }
  std::sort(files.begin(), files.end());
  CHECK(files == std::vector<std::string>{"manifest.json", "metrics.json", "traces/rank_0.json"});
  for (const std::string& file : files) {
    rapidjson::Document document;
    document.Parse(content_of(fs::path(run) / file).c_str());
    CHECK_MESSAGE(!document.HasParseError(), file);
  }
  CHECK(content_of(run + "/traces/rank_0.json") == content_of(target / "alone.json"));
}

TEST_CASE("equal input gives equal bytes, simulate_ms aside") {
  const ValidScenario valid;
  const auto result = [&] {
    std::string out = moeline(valid.with({"--format", "json"})).out;
    const std::size_t timed = out.find("\"simulate_ms\"");
    REQUIRE(timed != std::string::npos);
    return out.erase(timed, out.find('\n', timed) - timed);
  };
  CHECK(result() == result());
}

TEST_CASE("help and lists are results: stdout, exit code 0") {
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"simulate", "--help"},
                                     {"compare", "--help"},
                                     {"calibrate", "--help"},
                                     {"list", "--help"},
                                     {"list", "models"},
                                     {"list", "hardware"},
                                     {"list", "schedules"},
                                     {"list", "models", "deepseek-v3"},
                                     {"list", "hardware", "h800"},
                                     {"list", "schedules", "dualpipe-chunk"},
                                     {"list", "schedules", "sequential"}}) {
    const Outcome outcome = moeline(arguments);
    CAPTURE(joined(arguments));
    CHECK(outcome.exit_code == 0);
    CHECK_FALSE(outcome.out.empty());
    CHECK(outcome.err.empty());
  }
  CHECK(moeline({"list", "models"}).out.find("deepseek-v3\n") != std::string::npos);
}

}  // namespace moeline::testing
