#include "base/given_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace moeline {
namespace {

std::vector<std::pair<std::string, std::string>>& given() {
  static thread_local std::vector<std::pair<std::string, std::string>> texts;
  return texts;
}

}  // namespace

GivenText::GivenText(std::string name, std::string text) { given().emplace_back(std::move(name), std::move(text)); }

GivenText::~GivenText() { given().pop_back(); }

std::optional<std::string> given_text(const std::filesystem::path& name) {
  const auto found =
      std::find_if(given().rbegin(), given().rend(), [&](const auto& each) { return each.first == name; });
  return found == given().rend() ? std::nullopt : std::optional(found->second);
}

}  // namespace moeline
