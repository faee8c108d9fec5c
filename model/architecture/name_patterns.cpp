#include "architecture/name_patterns.hpp"

#include <fnmatch.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace moeline {
namespace {

constexpr std::array<const char*, 3> kBeforeLayers = {"model.", "model.language_model.", "language_model.model."};

}  // namespace

std::string from_layers(const std::string& name) {
  const std::size_t at = name.find("layers.");
  const bool of_mtp = name.starts_with("mtp.");
  const bool only_modules_before = at != std::string::npos && !of_mtp && name.find_first_of("*?[") >= at;
  return only_modules_before ? name.substr(at) : name;
}

NamePatterns::NamePatterns(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const std::string name = from_layers(entry);
    const std::size_t wild = name.find_first_of("*?[");
    if (entry.starts_with("re:")) {
      expressions_.push_back(std::make_shared<re2::RE2>("^(?:" + entry.substr(3) + ")", re2::RE2::Quiet));
      if (!expressions_.back()->ok()) throw std::invalid_argument(entry);
    } else if (wild == std::string::npos) {
      name.starts_with("layers.") ? void(modules_.insert(name)) : parts_.push_back("." + name + ".");
    } else if (wild + 1 == name.size() && name.back() == '*') {
      beginnings_.push_back(name.substr(0, wild));
    } else {
      globs_.push_back(name);
    }
  }
}

// The path of the module itself, or of one around it.
bool NamePatterns::match_path(const std::string& path) const {
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), path.c_str(), 0) == 0; };
  return modules_.contains(path) || std::any_of(globs_.begin(), globs_.end(), matches);
}

bool NamePatterns::match(const std::string& name) const {
  const std::string dotted = "." + name + ".";
  if (std::any_of(parts_.begin(), parts_.end(),
                  [&](const auto& part) { return dotted.find(part) != std::string::npos; }) ||
      std::any_of(beginnings_.begin(), beginnings_.end(), [&](const auto& start) { return name.starts_with(start); })) {
    return true;
  }
  for (std::size_t end = name.size(); end != std::string::npos; end = name.rfind('.', end - 1)) {
    if (match_path(name.substr(0, end))) return true;
    if (end == 0) break;
  }
  return std::any_of(expressions_.begin(), expressions_.end(), [&](const auto& expression) {
    return std::any_of(kBeforeLayers.begin(), kBeforeLayers.end(),
                       [&](const char* before) { return re2::RE2::PartialMatch(before + name, *expression); });
  });
}

}  // namespace moeline
