#include "experiments/learn/learnt_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/names.hpp"
#include "base/text.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

std::string described(const LearntTrace& trace) {
  std::vector<std::string> words;
  for (const char* key :
       {"workload.phase", "workload.batch_size", "workload.tokens", "workload.kv_len", "workload.prompt_len"}) {
    const Setting* setting = trace.settings.find(key);
    if (setting != nullptr) words.push_back(fmt::format("{} {}", std::string(key).substr(9), setting->value));
  }
  return fmt::format("{} ({})", std::filesystem::path(trace.file).filename().string(), fmt::join(words, ", "));
}

}  // namespace

std::string new_set_name(const std::string& machine, const std::string& wanted) {
  const std::vector<std::string> known = load_profile(machine).set_names();
  std::string name = wanted;
  for (int i = 2; known_name(name, known); ++i) name = fmt::format("{}-{}", wanted, i);
  return name;
}

std::string machine_yaml(const Learning& learning, const std::string& month) {
  std::vector<std::string> sources;
  for (const LearntTrace& trace : learning.traces) sources.push_back(described(trace));
  std::string text = fmt::format(
      "# Written by `moeline learn`: {} with kernels that take what they took in a trace.\n"
      "name: {}\nextends: {}\nkernel_sets:\n  {}:\n",
      one_line(learning.machine), yaml_text(std::filesystem::path(learning.machine).stem().string() + "-learnt"),
      yaml_text(learning.machine), learning.kernel_set);
  text += fmt::format("    date: {}\n    source: {}\n    over: {}\n    learnt:\n", month,
                      yaml_text(fmt::format("{}", fmt::join(sources, "; "))), learning.kernels.over);
  return text + to_yaml(learning.kernels, 6);
}

Settings on_learnt_machine(Settings settings, const std::string& machine, const Learning& learning) {
  settings.put({"hardware", machine, HowKnown::metadata, "the machine with the kernels of this trace"});
  settings.put(
      {"kernels", learning.kernel_set, HowKnown::metadata, fmt::format("learnt over {}", learning.kernels.over)});
  return settings;
}

std::string title_of(const Learning& learning) {
  return fmt::format("# The step that ran in {}, as `moeline learn` reads it: behind each key how it is known.\n",
                     one_line(std::filesystem::path(learning.traces.front().file).filename().string()));
}

}  // namespace moeline
