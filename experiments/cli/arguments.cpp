#include "experiments/cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

// CLI11 takes whatever follows an option that needs a value.
CLI::Validator no_option_of(const CLI::App& command) {
  const auto refusal = [&command](const std::string& text) -> std::string {
    const bool is_long = text.starts_with("--") && text.size() > 2 && std::isalpha(static_cast<unsigned char>(text[2]));
    const bool is_option =
        is_long || (text.size() == 2 && text[0] == '-' && command.get_option_no_throw(text) != nullptr);
    return is_option ? fmt::format("a value is missing before '{}'", text) : "";
  };
  return {refusal, "", ""};
}

}  // namespace

CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "", ""};
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(names, ","));
  const auto refusal = [names = std::move(names)](std::string& text) -> std::string {
    const std::optional<std::string> known = known_name(text, names);
    if (!known) return unknown_name("value", text, names);
    text = *known;
    return "";
  };
  return {refusal, shown, ""};
}

void refuse_options_as_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (option->nonpositional() && option->get_items_expected_min() > 0) option->transform(no_option_of(*command));
    }
  }
}

std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                    const std::set<std::uint32_t>& simulated) {
  if (texts == std::vector<std::string>{"all"}) return simulated;
  std::set<std::uint32_t> ranks;
  for (const std::string& text : texts) {
    const auto rank = as_number<std::uint32_t>(text);
    if (!rank || !simulated.contains(*rank)) {
      throw SpecError(
          fmt::format("{}: '{}' is not among the simulated ranks, 0 to {}", option, text, simulated.size() - 1));
    }
    ranks.insert(*rank);
  }
  return ranks;
}

}  // namespace moeline
