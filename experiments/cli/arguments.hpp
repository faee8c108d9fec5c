// What a command takes, as data: program.cpp alone speaks to the library that parses it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "experiments/cli/console.hpp"

namespace moeline {

/// Where a value goes; its type is what help says and what a refusal is about. A flag has a bool.
using Target = std::variant<bool*, int*, unsigned*, std::size_t*, double*, std::string*, std::filesystem::path*,
                            std::optional<int>*, std::optional<std::size_t>*, std::optional<double>*, std::vector<int>*,
                            std::vector<std::string>*>;

/// For options whose argument must not be empty, as that of a forgotten shell variable is.
struct NotEmpty {};
/// One of these names, in their spelling whatever the case; a refusal says which one is near.
using OneOf = std::vector<std::string>;
template <class T>
struct Between {
  T least{}, most{};
};
template <class T>
Between(T, T) -> Between<T>;  // clang 14 asks for it
using Check = std::variant<std::monostate, NotEmpty, OneOf, Between<int>, Between<double>>;

/// How the values of a list are told apart: words up to the next option; one word for each time that the option is
/// given; words, and commas in them.
enum class ListOf : std::uint8_t { words, single_words, comma_separated };

struct Option {
  std::string names;  ///< "-o,--output"; without dashes an argument by position
  Target target;
  std::string help{};
  Check check{};
  ListOf list = ListOf::words;
  bool is_required = false;
  std::string needs{}, excludes{};  ///< the name of an option before it
  std::string type_name{};          ///< instead of that of the target's type

  [[nodiscard]] bool is_argument() const { return !names.starts_with('-'); }
};

struct Command {
  std::string name, about;
  std::vector<Option> options;
  std::string footer{};                    ///< below the options in help; empty: the program's
  std::function<void()> run;               ///< holds what the options point to
  std::set<std::string>* given = nullptr;  ///< gets the names of the options that were typed, as "--html"
};

// Short forms of what many options have.

[[nodiscard]] Option required(Option option);
[[nodiscard]] Option single_words(Option option);
[[nodiscard]] Option comma_separated(Option option);
[[nodiscard]] Option needs(const std::string& name, Option option);
[[nodiscard]] std::vector<Option> joined(std::initializer_list<std::vector<Option>> groups);

// Options of many commands.

[[nodiscard]] Option format_option(std::string& format, OneOf formats, const std::string& help = "");
[[nodiscard]] Option force_option(bool& force);
[[nodiscard]] Option workers_option(std::size_t& workers);
[[nodiscard]] Option ranks_option(std::vector<std::string>& ranks);  ///< stands behind --html
[[nodiscard]] Option strict_option(bool& strict);

/// "all", or numbers; none of them: empty. Throws SpecError for one that was not simulated.
[[nodiscard]] std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                                  const std::set<std::uint32_t>& simulated);

}  // namespace moeline
