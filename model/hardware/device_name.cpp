#include "hardware/device_name.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/file.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

// "NVIDIA A100-SXM4-80GB" -> nvidia a100 sxm4 80gb
std::vector<std::string> words_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::isalnum(c) ? static_cast<char>(std::tolower(c)) : ' '; });
  std::istringstream stream(name);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool has_word(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The word that names a profile: "gb200" of gb200-nvl72.
std::string first_word(const std::string& profile) { return profile.substr(0, profile.find('-')); }

bool tells_another_board(const std::vector<std::string>& words) {
  constexpr const char* kOthers[] = {"pcie", "nvl", "3e", "mig"};
  return std::any_of(std::begin(kOthers), std::end(kOthers), [&](const char* word) { return has_word(words, word); });
}

// "80gb" -> 80
std::optional<double> gigabytes_in(const std::string& word) {
  double size = 0;
  const char* const end = word.data() + word.size();
  const auto [unit, error] = std::from_chars(word.data(), end, size);
  if (error != std::errc() || std::string_view(unit, end) != "gb") return std::nullopt;
  return size;
}

// Names round, 79.6 GiB to "80GB".
bool tells_other_memory(const std::vector<std::string>& words, double memory_gib) {
  constexpr double kRounding = 0.1;
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const std::optional<double> size = gigabytes_in(word);
    return size && std::abs(*size - memory_gib) > kRounding * memory_gib;
  });
}

}  // namespace

std::optional<std::string> profile_named_by(const std::string& device) {
  const std::vector<std::string> words = words_of(device);
  if (tells_another_board(words)) return std::nullopt;
  for (const std::string& name : names_in("hwprofiles")) {
    if (!has_word(words, first_word(name))) continue;
    if (!tells_other_memory(words, load_profile(name).facts.memory_gib)) return name;
  }
  return std::nullopt;
}

bool is_another_machine(const std::string& profile, const std::string& device) {
  const std::vector<std::string> named = words_of(profile), words = words_of(device);
  const std::vector<std::string> machines = names_in("hwprofiles");
  return std::any_of(machines.begin(), machines.end(), [&](const std::string& machine) {
    return has_word(named, first_word(machine)) && !has_word(words, first_word(machine));
  });
}

}  // namespace moeline
