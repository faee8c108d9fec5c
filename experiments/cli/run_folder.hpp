// The folder of one run: manifest.json, metrics.json, and traces/ with the traces alone, since clients load all of it.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace moeline {

/// Finds out before any work that would be lost. Throws SpecError where the folder cannot be made, and, unless `force`,
/// UsageError where a file that the run would write is somebody's, or traces/ holds anything but our traces,
/// whole or left behind by a run that was killed.
void check_run_folder(const std::filesystem::path& folder, bool force);

/// Makes the folder and its traces/. Throws SpecError where that fails.
void create_run_folder(const std::filesystem::path& folder);

/// Removes the traces of an earlier run, ours alone, whole or not: all in traces/ but those `written`
/// ("traces/rank_0.json"). Returns how many they were.
std::size_t remove_earlier_traces(const std::filesystem::path& folder, const std::set<std::string>& written);

}  // namespace moeline
