#include "experiments/sweep/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLongest = 1000;  // it is read anew for every point
constexpr int kDeepest = 100;           // brackets in each other

using ValueOf = std::function<double(const std::string& key)>;

// A recursive descent over the text: comparison of sums of products of numbers, keys and brackets.
class Parser {
 public:
  Parser(std::string_view text, const ValueOf& value_of) : text_(text), value_of_(value_of) {}

  bool comparison() {
    const double left = sum();
    const std::string sign = comparison_sign();
    const double right = sum();
    if (at_ < text_.size()) fail(fmt::format("does not end at '{}'", text_.substr(at_)));
    if (sign == "==") return left == right;
    if (sign == "!=") return left != right;
    if (sign == "<=") return left <= right;
    if (sign == ">=") return left >= right;
    return sign == "<" ? left < right : left > right;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw SpecError(fmt::format("'{}' {}", text_, why)); }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // The next character where it is one of these, which then lies behind; else 0.
  char take(std::string_view any_of) {
    skip_blanks();
    if (at_ == text_.size() || any_of.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }

  std::string comparison_sign() {
    skip_blanks();
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return std::string(sign);
    }
    fail("compares nothing: one of == != < <= > >= stands between two sides");
  }

  double sum() {
    double value = product();
    while (const char sign = take("+-")) value = sign == '+' ? value + product() : value - product();
    return value;
  }

  double product() {
    double value = atom();
    while (const char sign = take("*/%")) {
      const double by = atom();
      if (sign != '*' && by == 0) fail("divides by 0");
      value = sign == '*' ? value * by : sign == '/' ? value / by : std::fmod(value, by);
    }
    return value;
  }

  double atom() {
    if (take("(") != 0) {
      if (++depth_ > kDeepest) fail("is nested too deeply");
      const double value = sum();
      if (take(")") == 0) fail("lacks a closing bracket");
      --depth_;
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" ()+-*/%=!<>").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) fail("lacks a number or a key");
    const auto number = as_number<double>(word);
    return number ? *number : value_of_(word);
  }

  std::string_view text_;
  const ValueOf& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Condition::Condition(std::string text, const std::vector<std::string>& keys) : text_(std::move(text)) {
  if (text_.size() > kLongest) throw SpecError(fmt::format("one of more than {} characters", kLongest));
  const ValueOf known = [&](const std::string& key) -> double {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) throw SpecError(unknown_name("axis", key, keys));
    return NAN;  // as yet any number: only what divides by a written 0 is refused
  };
  (void)Parser(text_, known).comparison();
}

bool Condition::holds(const std::map<std::string, std::string>& values) const {
  const ValueOf value = [&](const std::string& key) {
    const std::string& written = values.at(key);
    if (const auto number = as_number<double>(written)) return *number;
    throw SpecError(fmt::format("'{}' needs numbers, and {} has '{}'", text_, key, written));
  };
  return Parser(text_, value).comparison();
}

}  // namespace moeline
