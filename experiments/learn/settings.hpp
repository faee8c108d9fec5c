// What ran in a trace: the settings of its scenario, each with how it is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moeline {

enum class HowKnown {
  annotation,  ///< what the server wrote around the step
  metadata,    ///< of the trace, or of its operators
  name,        ///< of a kernel
  period,      ///< how often the layers repeat, or what one takes
  given,       ///< by whoever asked
  guessed      ///< nothing says it: check it
};
[[nodiscard]] const std::string& name_of(HowKnown how);

/// A key of a scenario, dotted, and its value as YAML.
struct Setting {
  std::string key, value;
  HowKnown how = HowKnown::guessed;
  std::string why{};               ///< in words: "step[DECODE bs=16]"
  std::string tried{};             ///< of a guess that is a number: another value,
  std::optional<double> change{};  ///< and by how much of itself the step grows with it
  bool is_remark = false;          ///< it stands beside another setting, and is none that the scenario has
};

/// By key, in the order in which a scenario has them.
class Settings {
 public:
  /// Where the key is set already, it stays.
  void offer(Setting setting);
  /// In the place of what was there.
  void put(Setting setting);
  [[nodiscard]] const Setting* find(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  [[nodiscard]] std::vector<Setting>& all() { return settings_; }
  [[nodiscard]] const std::vector<Setting>& all() const { return settings_; }

 private:
  std::vector<Setting> settings_;
};

/// A word that is text in YAML without quotes as well.
[[nodiscard]] bool is_plain(const std::string& word);

/// Text as a value of YAML: quoted where it would be read as anything else.
[[nodiscard]] std::string yaml_text(const std::string& text);

/// The scenario: each setting on a line, how it is known behind it.
[[nodiscard]] std::string scenario_yaml(const Settings& settings, const std::string& title);

}  // namespace moeline
