#include "experiments/validate/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace moeline {
namespace {

const std::vector<std::string> kStatuses = {"fitted", "not fitted", "blind"};  // by FactStatus
const std::vector<std::string> kMethods = {"simulate", "price", "cross_validate", "model"};

// "10 %" or "10%"; nothing else.
std::optional<double> percent(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return rest == "%" || rest == " %" ? std::optional(value / 100) : std::nullopt;
}

Gate read_percent(const Spec& spec, const std::string& key, const char* otherwise = "") {
  const std::string text = spec.text(key);
  if (const auto tolerance = percent(text)) return {text, *tolerance};
  throw spec.error(key, fmt::format("must be a tolerance like 10 %{}, not '{}'", otherwise, text.substr(0, 40)));
}

// Half a unit of the last digit that is written.
double rounding(const Fact& fact) { return 0.5 * std::pow(10.0, -fact.decimals()); }

std::optional<Gate> read_gate(const FactSpec& spec, const Fact& fact) {
  constexpr double kExact = 1e-12;  // what arithmetic in doubles leaves of "equal"
  if (!spec.has("gate")) return std::nullopt;
  const std::string text = spec.text("gate");
  if (text == "none") return std::nullopt;
  if (text == "exact") return Gate{text, kExact};
  if (text == "printed digits") return Gate{text, rounding(fact) / fact.measured};
  return read_percent(spec.at("gate"), "gate", ", exact, printed digits or none");
}

std::map<std::string, double> read_stated_nulls(const FactSpec& spec) {
  std::map<std::string, double> values;
  if (!spec.has("stated_nulls")) return values;
  const Spec stated = spec.at("stated_nulls").map("stated_nulls");
  for (const std::string& name : stated.keys()) values[name] = stated.number(name, -1e30, 1e30);
  return values;
}

std::string read_fitted(const FactSpec& spec, FactStatus status) {
  if (status == FactStatus::fitted) return spec.text("fitted");
  if (spec.has("fitted")) {
    throw spec.at("fitted").error("fitted", fmt::format("belongs to the status fitted, not '{}'", name_of(status)));
  }
  return "";
}

std::string read_method(const FactSpec& spec, const Spec& own) {
  std::string found;
  for (const std::string& method : kMethods) {
    if (!spec.has(method)) continue;
    if (!found.empty()) throw spec.at(method).error(method, "stands beside " + found + "; a fact has one prediction");
    found = method;
  }
  if (found.empty())
    throw own.error("simulate",
                    fmt::format("is missing, and so are {}, {} and {}", kMethods[1], kMethods[2], kMethods[3]));
  return found;
}

Fact read_fact(const std::string& subject, const std::string& key, const FactSpec& spec, const Spec& own) {
  const std::string method = read_method(spec, own);
  Fact fact{.id = subject + "." + key, .key = key, .method = method, .prediction = spec.map(method)};
  fact.quantity = spec.text("quantity");
  fact.measured = own.number("value", 1e-30, 1e30);
  fact.printed = own.text("value");
  fact.unit = spec.text("unit");
  fact.setting = spec.text("setting");
  fact.source = spec.text("source");
  fact.how_read = spec.text("how_read");
  fact.gate = read_gate(spec, fact);
  fact.status = read_status(spec.at("status"));
  fact.fitted = read_fitted(spec, fact.status);
  if (fact.status == FactStatus::fitted && fact.gate) {
    throw spec.at("gate").error("gate", "cannot be held against a fact that constants were fitted to");
  }
  fact.stated_nulls = read_stated_nulls(spec);
  return fact;
}

}  // namespace

FactStatus read_status(const Spec& spec) {
  const std::string status = spec.choice("status", kStatuses);
  return static_cast<FactStatus>(std::find(kStatuses.begin(), kStatuses.end(), status) - kStatuses.begin());
}

const std::string& name_of(FactStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

int Fact::decimals() const {
  const std::size_t point = printed.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(printed.size() - point - 1);
}

void FactSpec::expect(const std::vector<std::string>& keys) const {
  own_.expect(keys);
  common_.expect(keys);
}

const Spec& FactSpec::at(const std::string& key) const { return own_.has(key) || !common_.has(key) ? own_ : common_; }

std::vector<std::string> FactSpec::settings() const {
  return has("set") ? at("set").texts("set") : std::vector<std::string>{};
}

FactSpec FactSpec::map(const std::string& key) const { return {at(key).map(key), common_.map_or_empty(key)}; }

Subject read_subject(const Spec& spec) {
  spec.expect({"about", "mean_gate", "common", "facts"});
  Subject subject{.name = std::filesystem::path(spec.file()).stem().string(), .about = spec.text("about")};
  if (spec.has("mean_gate")) subject.mean_gate = read_percent(spec, "mean_gate");
  std::vector<std::string> keys = {"quantity", "unit",         "setting",  "source", "how_read",       "gate", "status",
                                   "fitted",   "stated_nulls", "simulate", "price",  "cross_validate", "model"};
  const Spec common = spec.map_or_empty("common");
  common.expect(keys);
  keys.emplace_back("value");
  const Spec facts = spec.map("facts");
  for (const std::string& key : facts.keys()) {
    const Spec own = facts.map(key);
    own.expect(keys);
    subject.facts.push_back(read_fact(subject.name, key, FactSpec(own, common), own));
  }
  if (subject.facts.empty()) throw spec.error("facts", "must hold at least one");
  return subject;
}

}  // namespace moeline
