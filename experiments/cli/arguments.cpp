#include "experiments/cli/arguments.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {

Option required(Option option) {
  option.is_required = true;
  return option;
}

Option single_words(Option option) {
  option.list = ListOf::single_words;
  return option;
}

Option comma_separated(Option option) {
  option.list = ListOf::comma_separated;
  return option;
}

Option needs(const std::string& name, Option option) {
  option.needs = name;
  return option;
}

std::vector<Option> joined(std::initializer_list<std::vector<Option>> groups) {
  std::vector<Option> all;
  for (const std::vector<Option>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

Option format_option(std::string& format, OneOf formats, const std::string& help) {
  return {"--format", &format, help, std::move(formats)};
}

Option force_option(bool& force) { return {"--force", &force, "write also over files that moeline did not write"}; }

Option workers_option(std::size_t& workers) {
  return {"--workers", &workers, "threads (as many as there are cores)", Between{1, 1024}};
}

Option ranks_option(std::vector<std::string>& ranks) {
  return needs("--html", comma_separated({"--ranks", &ranks,
                                          "all, or 0,5,7: whose kernels --html shows; by default rank 0 and the one "
                                          "that the end waited for most"}));
}

Option strict_option(bool& strict) {
  return {"--strict", &strict, "exit code 1 where a price is not covered by measurements"};
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
