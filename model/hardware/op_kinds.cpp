#include "hardware/op_kinds.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace moeline {
namespace {

constexpr std::size_t kShown = 80;  // characters of an op in a message

bool ends_in_word(const std::string& text) { return std::isalnum(static_cast<unsigned char>(text.back())) != 0; }

// "a=1,b=2" as a mapping; the op is its file.
Spec keys_of(const std::string& text) {
  const std::string place = text.substr(0, kShown);
  const std::size_t colon = text.find(':');
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::string keys;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string pair = rest.substr(0, comma);
    const std::size_t equals = pair.find('=');
    const bool plain = pair.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-=") ==
                       std::string::npos;
    if (equals == std::string::npos || equals == 0 || !plain || !ends_in_word(pair)) {
      throw SpecError(place, 0, fmt::format("'{}' is not key=value", pair.substr(0, kShown)));
    }
    if (comma + 1 == rest.size()) throw SpecError(place, 0, "ends with a comma");
    keys += pair.substr(0, equals) + ": " + pair.substr(equals + 1) + "\n";
    rest = comma < rest.size() ? rest.substr(comma + 1) : "";
  }
  return Spec::parse(place, keys.empty() ? "{}" : keys);
}

}  // namespace

OpKeys::OpKeys(const std::string& text, std::vector<std::string> known) : spec_(keys_of(text)) {
  known.insert(known.end(), {"sms", "clock"});
  spec_.expect(known);
}

PriceConditions OpKeys::conditions(const MachineFacts& machine, int sms) const {
  constexpr double kSlowest = 0.01, kFastest = 2;
  const auto all = static_cast<int>(machine.sms);
  return {.sms = spec_.integer_or("sms", 1, all, std::min(sms, all)),
          .clock = number_or("clock", kSlowest, kFastest, 1)};
}

RequestedOp OpKeys::requested(const std::string& text, std::vector<Operator> kernels,
                              const MachineFacts& machine) const {
  if (spec_.has("l2") && choice("l2", {"cold", "hot"}) == "hot") {
    for (Operator& op : kernels) op.hot = true;
  }
  return {text, std::move(kernels), conditions(machine)};
}

}  // namespace moeline
