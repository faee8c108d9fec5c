// What is compared: a scenario with changes, under a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moeline {

struct DecideSetting {
  std::string name;
  std::string file, content;               ///< of the scenario
  std::vector<std::string> assignments{};  ///< as after `--set`
};

/// "parallelism={tp: 8} schedule=sequential" in its parts: blanks, tabs and line ends in brackets and quotes do not
/// part. Throws SpecError where a bracket or a quote is not closed, and for a part that assigns nothing.
[[nodiscard]] std::vector<std::string> assignments_in(std::string_view option);

/// The settings of a question: several scenarios, or one with options, or one as it is beside its only option.
/// `common` are changes of all. Throws SpecError where there is one setting alone, where several scenarios have
/// options, and where two settings bear one name.
[[nodiscard]] std::vector<DecideSetting> settings_of(const std::vector<std::string>& scenarios,
                                                     const std::vector<std::string>& options,
                                                     const std::vector<std::string>& common);

}  // namespace moeline
