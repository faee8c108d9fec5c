#include "experiments/learn/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "trace/name_regex.hpp"

namespace moeline {
namespace {

// In the order in which a scenario is written; others stand behind these.
constexpr std::array kOrder = {
    "model",     "hardware", "hardware_overrides", "kernels",     "schedule", "parallelism", "workload",
    "precision", "comm",     "attention_backend",  "moe_backend", "routing",  "launch"};

std::size_t place_of(const std::string& key) {
  const std::string top = key.substr(0, key.find('.'));
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), top) - kOrder.begin());
}

}  // namespace

bool is_plain(const std::string& word) {
  static const NameRegex kPlain("^[a-z_/][a-z0-9_/.+-]*$"), kOther("^(true|false|null|yes|no|on|off)$");
  return kPlain.found_in(word) && !kOther.found_in(word);
}

const std::string& name_of(HowKnown how) {
  static const std::array<std::string, 6> names = {"annotation", "metadata", "name", "period", "given", "guessed"};
  return names[static_cast<std::size_t>(how)];
}

const Setting* Settings::find(const std::string& key) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.key == key; });
  return found == settings_.end() ? nullptr : &*found;
}

void Settings::offer(Setting setting) {
  const std::size_t dot = setting.key.find('.');
  const bool is_given = has(setting.key) || (dot != std::string::npos && has(setting.key.substr(0, dot)));
  if (!is_given) put(std::move(setting));
}

void Settings::put(Setting setting) {
  std::erase_if(settings_, [&](const Setting& other) { return other.key == setting.key; });
  const auto behind = [&](const Setting& other) { return place_of(other.key) > place_of(setting.key); };
  settings_.insert(std::find_if(settings_.begin(), settings_.end(), behind), std::move(setting));
}

std::string yaml_text(const std::string& text) {
  if (is_plain(text)) return text;
  std::string escaped;
  for (const char c : one_line(text, text.size())) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}\"", escaped);
}

namespace {

std::string written(const Setting& setting, const std::string& key) {
  constexpr std::size_t kLongest = 200;
  const bool is_name = setting.key == "model" || setting.key == "hardware";  // of paths, perhaps
  const std::string line = fmt::format("{}: {}", key, is_name ? yaml_text(setting.value) : setting.value);
  constexpr std::size_t kColumn = 36;
  return fmt::format("{:<{}}  # {}: {}\n", line, kColumn, name_of(setting.how), one_line(setting.why, kLongest));
}

}  // namespace

std::string scenario_yaml(const Settings& settings, const std::string& title) {
  std::string text = title + "schema: 1\n";
  std::string open;  // the mapping whose keys are being written
  for (const Setting& setting : settings.all()) {
    const std::size_t dot = setting.key.find('.');
    const std::string top = dot == std::string::npos ? "" : setting.key.substr(0, dot);
    if (!top.empty() && top != open) text += top + ":\n";
    open = top;
    const char* begin = setting.is_remark ? "  # " : top.empty() ? "" : "  ";
    text += written(setting, begin + setting.key.substr(top.empty() ? 0 : dot + 1));
  }
  return text;
}

}  // namespace moeline
