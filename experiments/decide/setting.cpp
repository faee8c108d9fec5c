#include "experiments/decide/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

// Follows brackets and quotes: whether a character lies in some.
class Nesting {
 public:
  bool takes(char c) {
    const bool was_inside = is_inside();
    if (quote_ != 0) {
      if (c == quote_) quote_ = 0;
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    }
    return was_inside || is_inside();
  }
  [[nodiscard]] bool is_inside() const { return depth_ > 0 || quote_ != 0; }

 private:
  int depth_ = 0;
  char quote_ = 0;
};

std::string stem_of(const std::string& file) {
  if (is_stdin(file) || given_text(file)) return "scenario";
  return std::filesystem::path(file).stem().string();
}

// By the files' names, or, where two have one, as they were given.
std::vector<DecideSetting> of_files(const std::vector<std::string>& scenarios, const std::vector<std::string>& common) {
  std::vector<std::string> names;
  for (const std::string& file : scenarios) names.push_back(stem_of(file));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const bool alike = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  std::vector<DecideSetting> settings;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    settings.push_back({alike ? scenarios[i] : names[i], scenarios[i], read_text(scenarios[i]), common});
  }
  return settings;
}

std::vector<DecideSetting> of_options(const std::string& scenario, const std::vector<std::string>& options,
                                      const std::vector<std::string>& common) {
  const std::string content = read_text(scenario);  // once: it may come through a pipe
  std::vector<DecideSetting> settings;
  if (options.size() == 1) settings.push_back({"as it is", scenario, content, common});
  for (const std::string& option : options) {
    DecideSetting& setting = settings.emplace_back(DecideSetting{option, scenario, content, common});
    for (std::string& assignment : assignments_in(option)) setting.assignments.push_back(std::move(assignment));
  }
  return settings;
}

}  // namespace

std::vector<std::string> assignments_in(std::string_view option) {
  std::vector<std::string> parts;
  Nesting nesting;
  std::string part;
  const auto end_part = [&] {
    if (!part.empty()) parts.push_back(std::exchange(part, ""));
  };
  for (const char c : option) {
    const bool inside = nesting.takes(c);
    std::isspace(static_cast<unsigned char>(c)) != 0 && !inside ? end_part() : part.push_back(c);
  }
  end_part();
  if (nesting.is_inside()) throw SpecError(fmt::format("--option: '{}' does not close a bracket or a quote", option));
  if (parts.empty()) throw SpecError("--option: is empty");
  for (const std::string& each : parts) {
    if (each.find('=') != std::string::npos && each.front() != '=') continue;
    throw SpecError(fmt::format("--option: '{}' in '{}' is no key=value", each, option));
  }
  return parts;
}

std::vector<DecideSetting> settings_of(const std::vector<std::string>& scenarios,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& common) {
  if (scenarios.size() > 1 && !options.empty()) {
    throw SpecError("--option: changes one scenario, and there are several");
  }
  if (scenarios.size() == 1 && options.empty()) {
    throw SpecError("--option: or a second scenario is needed: there is nothing to compare with");
  }
  std::vector<DecideSetting> settings =
      options.empty() ? of_files(scenarios, common) : of_options(scenarios.front(), options, common);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (settings[i].name == settings[j].name) throw SpecError(fmt::format("'{}' is given twice", settings[i].name));
    }
  }
  return settings;
}

}  // namespace moeline
