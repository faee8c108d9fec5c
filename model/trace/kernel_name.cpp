#include "trace/kernel_name.hpp"

#include <vector>

namespace moeline {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr auto kNowhere = std::string_view::npos;

// Brackets around a place of a name. A '>' closes nothing where the innermost bracket is no '<', as in "(2 > 1)", nor
// behind a '-', as in "->".
class Brackets {
 public:
  [[nodiscard]] bool none() const { return open_.empty(); }
  void pass(char c, char before) {
    if (c == '<' || c == '(' || c == '{') open_.push_back(c);
    const char opening = c == ')' ? '(' : c == '}' ? '{' : c == '>' && before != '-' ? '<' : '\0';
    if (!open_.empty() && open_.back() == opening) open_.pop_back();
  }

 private:
  std::vector<char> open_;
};

// Where the parameters begin, and the last blank in front of them, both outside all brackets.
struct Parts {
  std::size_t blank = kNowhere;
  std::size_t parameters = kNowhere;
};

Parts parts_of(std::string_view name) {
  Parts parts;
  Brackets brackets;
  std::size_t blank = kNowhere;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (brackets.none() && name[i] == ' ') blank = i;
    if (brackets.none() && name[i] == '(' && !name.substr(i).starts_with(kAnonymous)) parts = {blank, i};
    brackets.pass(name[i], i > 0 ? name[i - 1] : '\0');
  }
  return parts.parameters == kNowhere ? Parts{blank, kNowhere} : parts;
}

// Only templates are demangled with what they return; in any other name a blank is part of it.
std::string_view without_return_type(std::string_view name) {
  const auto [blank, parameters] = parts_of(name);
  if (blank == kNowhere) return name;
  const bool is_template = name.substr(0, parameters).find('<', blank) != kNowhere;
  return is_template || name.starts_with("void ") ? name.substr(blank + 1) : name;
}

std::string_view without_trailing_blanks(std::string_view name) {
  return name.substr(0, name.find_last_not_of(' ') + 1);
}

}  // namespace

std::string_view subject_of(std::string_view name) {
  name = without_return_type(name);
  for (const std::string_view wrapper : {"cutlass::device_kernel<", "cutlass::Kernel<", "cutlass::Kernel2<"}) {
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  }
  std::size_t end = name.find_first_of("<(>");
  while (end != kNowhere && name.substr(end).starts_with(kAnonymous)) {
    end = name.find_first_of("<(>", end + kAnonymous.size());
  }
  return without_trailing_blanks(name.substr(0, end));
}

}  // namespace moeline
