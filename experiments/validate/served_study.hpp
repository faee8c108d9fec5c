// Rows of served models as a public benchmark has them, and which scenario each of them is: a YAML file with the key
// `served` (experiments/studies/served_b200/rows.yaml has every key).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/spec.hpp"
#include "experiments/validate/facts.hpp"

namespace moeline {

/// How GPUs share the work.
struct ServedSplit {
  int workers = 1;  ///< replicas
  int tp = 1, dp = 1, pp = 1, ep = 1, moe_tp = 1;
};

/// A closed loop of `concurrency` requests, and what they measured.
struct ServedRow {
  std::string id, kind, system, model, precision, stack;  ///< kind: the class of its parallelism
  bool colocated = false;                                 ///< the same GPUs prefill
  double concurrency = 0;
  double input = 0, output = 0;     ///< nominal tokens of a prompt and of an answer
  double ttft_ms = 0, tpot_ms = 0;  ///< measured
  ServedSplit split{};              ///< of the GPUs that decode
  ServedSplit prefill{};            ///< of those that prefill, unless these do
  std::string left_out;             ///< by which rule of the study; ""
  std::string apart;                ///< by which rule it is scored, but not among the others; ""
};

/// `set` of the rows of these models and formats.
struct ServedModel {
  std::vector<std::string> names;
  std::string precision;
  std::vector<std::string> set;
};

/// The benchmark's client: a closed loop.
struct ServedLoop {
  int requests_per_slot = 1;   ///< over the concurrency
  double least = 1, most = 1;  ///< of the nominal lengths: they are drawn evenly between these shares of them
};

struct ServedStudy {
  std::string name, about;
  FactStatus status = FactStatus::not_fitted;
  std::filesystem::path table;                           ///< of the rows; may be absent
  std::filesystem::path scenario;                        ///< that rows are changes of
  double drawn_length = 1;                               ///< mean of a length over the nominal one
  int step_tokens = 0;                                   ///< most tokens of a colocated step
  std::optional<ServedLoop> loop{};                      ///< how rows are served request by request; none: they are not
  std::map<std::string, std::string> machines, kernels;  ///< by system, by stack
  std::vector<ServedModel> models;
  bool is_absent = false;       ///< the table
  std::vector<ServedRow> rows;  ///< one at least, but of an absent table
};

/// Whether a file is such a study, and no file of facts.
[[nodiscard]] bool is_served_study(const Spec& spec);

/// Throws SpecError with file, line and key; also for a table that lacks a column or has a cell that makes no sense.
[[nodiscard]] ServedStudy read_served_study(const Spec& spec);

}  // namespace moeline
