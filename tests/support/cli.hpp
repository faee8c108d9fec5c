// Calls of the program as its user makes them, and what it promises about bad input: exit code 3 and one line that says
// where and what; nothing on stdout.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/data.hpp"
#include "tests/support/process.hpp"

namespace moeline::testing {

using Arguments = std::vector<std::string>;

/// A valid scenario. Line numbers in the cases count from here.
inline const std::string kScenario =
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

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, "the case is stale: no '" << from << "'");
  return text.replace(at, from.size(), to);
}

inline std::string joined(const Arguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += argument.substr(0, 100) + " ";
  return line;
}

/// `input`: the file that is stdin.
inline Outcome run_moeline(const Arguments& arguments, const std::string& input = "/dev/null") {
  Arguments call = {MOELINE_BINARY};
  call.insert(call.end(), arguments.begin(), arguments.end());
  return run_process(call, input);
}

/// The whole promise about bad input, for one call.
inline void check_refused(const Arguments& arguments, const std::string& place, const std::string& says) {
  const Outcome outcome = run_moeline(arguments);
  CAPTURE(joined(arguments));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.starts_with("moeline: " + place));
  CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, "does not say: " << says);
}

/// Of a call that makes no sense whatever its files hold: exit code 2, one line, nothing on stdout.
inline void check_wrong_usage(const Arguments& arguments, const std::string& says) {
  const Outcome outcome = run_moeline(arguments);
  CAPTURE(joined(arguments));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.starts_with("moeline: "));
  CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, "does not say: " << says);
}

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

/// One change of a valid file, and the line at which the changed file is refused.
struct TextChange {
  const char* from;
  const char* to;
  int line;
  const char* says;
};

inline void check_scenario_refused(const std::string& scenario, int line, const std::string& says) {
  const TemporaryFolder folder;
  const std::string file = folder.write("changed.yaml", scenario);
  check_refused({"simulate", file}, file + ":" + std::to_string(line) + ": ", says);
}

/// Changes a valid scenario in one place at a time.
inline void check_changes_of(const std::string& scenario, const std::vector<TextChange>& changes) {
  for (const auto& [from, to, line, says] : changes) {
    check_scenario_refused(replaced(scenario, from, to), line, says);
  }
}
inline void check_changes(const std::vector<TextChange>& changes) { check_changes_of(kScenario, changes); }

/// A file that a scenario names under `key`. `line` 0: it is the whole of it.
inline void check_named_refused(const std::string& scenario, const std::string& key, const std::string& content,
                                int line, const std::string& says) {
  const TemporaryFolder folder;
  const std::string file = folder.write("named.yaml", content);
  const std::string place = line > 0 ? file + ":" + std::to_string(line) + ": " : file + ": ";
  check_refused({"simulate", folder.write("scenario.yaml", scenario), "--set", key + "=" + file}, place, says);
}

/// Changes such a file in one place at a time.
inline void check_changes_of_named(const std::string& scenario, const std::string& key, const std::string& content,
                                   const std::vector<TextChange>& changes) {
  for (const auto& [from, to, line, says] : changes) {
    check_named_refused(scenario, key, replaced(content, from, to), line, says);
  }
}

/// A scenario of this text.
inline Outcome simulate_text(const std::string& scenario, Arguments more = {}) {
  const TemporaryFolder folder;
  more.insert(more.begin(), {"simulate", folder.write("scenario.yaml", scenario)});
  return run_moeline(more);
}

/// A file of the source tree.
inline std::string installed(const std::string& path) { return content_of(source(path)); }

}  // namespace moeline::testing
