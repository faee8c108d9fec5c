// A serving stack's tables in, a kernel set out: each family by a form and constants of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "calib/fit/assess.hpp"
#include "calib/fit/fit_form.hpp"
#include "calib/fit/row_kind.hpp"
#include "hardware/kernel_set.hpp"

namespace moeline {

struct StackRequest {
  std::string kernels;  ///< name of the set: "sglang-0.5.14"
  std::string date;     ///< of the tables: "2026-08"
  std::string profile;  ///< name of the machine's profile
  int parts = 6;        ///< into which slices are dealt to be left out in turn
};

/// A family's rows and how they are met.
struct StackFamily {
  std::string name;
  const Form* form = nullptr;
  std::vector<Grid> grids;  ///< that its correction may have
  std::vector<FormRow> rows;
  std::vector<double> constants;
  Correction correction;         ///< empty where none pays
  std::vector<double> fitted;    ///< us of each row
  std::vector<double> left_out;  ///< us by a fit that did not see the row's slice; empty where there is one slice alone

  [[nodiscard]] bool is_held_out() const { return !left_out.empty(); }
  /// What its errors are of: rows as they were left out, of one slice alone as they were fitted.
  [[nodiscard]] const std::vector<double>& predicted() const { return is_held_out() ? left_out : fitted; }
};

/// How far two times of the same OP are apart: what no fit can be better than.
struct Repeatability {
  std::string rows;        ///< of which entry of the mapping
  std::string beside;      ///< another version's table, or the same one
  std::size_t pairs = 0;   ///< OPs that were compared
  ErrorSummary deviation;  ///< this time over the other - 1; within a table each over the median of its OP
};

struct StackCalibration {
  KernelSet kernels;
  std::vector<StackFamily> families;  ///< by name
  std::vector<Repeatability> repeatability;
  std::vector<std::string> log;  ///< what was left out, and why: a line for each rule and table
};

/// Whether a table's name is one that the mapping knows.
[[nodiscard]] bool is_stack_table(const std::filesystem::path& file, const std::vector<RowKind>& kinds);

/// Throws SpecError for a table of another machine than the profile's (by the manifest.csv beside its folder), for one
/// that is cut off or damaged, and for cells that an OP cannot have.
[[nodiscard]] StackCalibration calibrate_stack(const std::vector<std::filesystem::path>& files,
                                               const std::vector<RowKind>& kinds, const StackRequest& request,
                                               const MachineFacts& machine, const Progress& progress = {});

}  // namespace moeline
