#include "experiments/packaging/describe/commands.hpp"

#include <sstream>

namespace moeline {
namespace {

// "TEXT:{table,json}" of a check by one_of.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream words(type.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

ValueType type_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return ValueType::flag;
  const std::string type = option.get_type_name();
  if (type.starts_with("INT") || type.starts_with("UINT")) return ValueType::integer;
  return type.starts_with("FLOAT") ? ValueType::real : ValueType::text;
}

DescribedOption described(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  const auto& letters = option.get_snames();
  DescribedOption result;
  result.name = option.get_positional() ? option.get_name(true) : names.empty() ? letters.front() : names.front();
  if (!letters.empty() && !names.empty()) result.letter = letters.front();
  result.about = option.get_description();
  result.type = type_of(option);
  result.is_list = option.get_expected_max() > 1;
  result.is_required = option.get_required();
  result.choices = choices_of(option.get_type_name());
  return result;
}

}  // namespace

std::vector<DescribedCommand> described(const CLI::App& program) {
  std::vector<DescribedCommand> commands;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    DescribedCommand& result = commands.emplace_back();
    result.name = command->get_name();
    result.about = command->get_description();
    result.text = command->get_footer();
    for (const CLI::Option* option : command->get_options()) {
      if (option == command->get_help_ptr()) continue;
      (option->get_positional() ? result.arguments : result.options).push_back(described(*option));
    }
  }
  return commands;
}

}  // namespace moeline
