#include "experiments/packaging/describe/commands.hpp"

#include <type_traits>

namespace moeline {
namespace {

template <class T>
struct Value {
  using Type = T;
};
template <class T>
struct Value<std::optional<T>> : Value<T> {};
template <class T>
struct Value<std::vector<T>> : Value<T> {};

ValueType type_of(const Option& option) {
  const auto by_target = [](const auto* target) {
    using Type = typename Value<std::remove_cvref_t<decltype(*target)>>::Type;
    if (std::is_same_v<Type, bool>) return ValueType::flag;
    if (std::is_integral_v<Type>) return ValueType::integer;
    return std::is_floating_point_v<Type> ? ValueType::real : ValueType::text;
  };
  return option.type_name.empty() ? std::visit(by_target, option.target) : ValueType::text;
}

bool is_list(const Target& target) {
  return std::holds_alternative<std::vector<int>*>(target) || std::holds_alternative<std::vector<std::string>*>(target);
}

// "-o,--output" has a letter and a name, "-o" is its name.
void take_names(const std::string& names, DescribedOption& option) {
  const std::size_t comma = names.find(',');
  if (comma != std::string::npos) option.letter = names.substr(1, comma - 1);
  const std::string name = comma == std::string::npos ? names : names.substr(comma + 1);
  option.name = name.substr(name.find_first_not_of('-'));
}

DescribedOption described(const Option& option) {
  DescribedOption result;
  take_names(option.names, result);
  result.about = option.help;
  result.type = type_of(option);
  result.is_list = is_list(option.target);
  result.is_required = option.is_required;
  if (const OneOf* choices = std::get_if<OneOf>(&option.check)) result.choices = *choices;
  return result;
}

}  // namespace

std::vector<DescribedCommand> described(const std::vector<Command>& commands) {
  std::vector<DescribedCommand> all;
  for (const Command& command : commands) {
    DescribedCommand& result = all.emplace_back(DescribedCommand{command.name, command.about, command.footer, {}, {}});
    for (const Option& option : command.options) {
      (option.is_argument() ? result.arguments : result.options).push_back(described(option));
    }
  }
  return all;
}

}  // namespace moeline
