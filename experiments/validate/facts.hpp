// Published and measured facts, and what predicts them, as they stand in tests/published/*.yaml (README there).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

/// A mapping of one fact, completed key by key by what its file says for all its facts.
class FactSpec {
 public:
  FactSpec(Spec own, Spec common) : own_(std::move(own)), common_(std::move(common)) {}

  void expect(const std::vector<std::string>& keys) const;
  [[nodiscard]] bool has(const std::string& key) const { return own_.has(key) || common_.has(key); }
  /// The mapping in which the key stands, the fact's own first: what is wrong with it is said with its line.
  [[nodiscard]] const Spec& at(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const { return at(key).text(key); }
  /// What follows `--set`; nothing where there is no `set`.
  [[nodiscard]] std::vector<std::string> settings() const;
  /// REQUIRES: has(key).
  [[nodiscard]] FactSpec map(const std::string& key) const;

 private:
  Spec own_, common_;
};

/// Runs `use` on what stands at `key`; what it refuses is refused with the line of the key before it.
template <class Use>
decltype(auto) used(const FactSpec& spec, const std::string& key, Use use) {
  try {
    return use();
  } catch (const SpecError& error) {
    throw spec.at(key).error(key, std::string("cannot be used: ") + error.what());
  }
}

/// What those who made the constants behind a prediction knew of the fact.
enum class FactStatus {
  fitted,      ///< constants were fitted to it: it is shown, and no part of any score
  not_fitted,  ///< none was, but its value was known when they were made
  blind,       ///< it became known only after the last of them was made
};
/// As it stands in files and outputs: "not fitted".
[[nodiscard]] const std::string& name_of(FactStatus status);
/// What stands at `status`. Throws SpecError for another word.
[[nodiscard]] FactStatus read_status(const Spec& spec);

/// The largest error that is no failure.
struct Gate {
  std::string text;  ///< as written: "10 %", "exact", "printed digits"
  double tolerance = 0;
};

struct Fact {
  std::string id{};  ///< SUBJECT.KEY
  std::string key{};
  std::string quantity{}, unit{}, setting{}, source{}, how_read{};
  double measured = 0;
  std::string printed{};       ///< as written
  std::optional<Gate> gate{};  ///< a fact without one is shown, and fails nothing
  FactStatus status = FactStatus::not_fitted;
  std::string fitted{};                          ///< what of it the constants were fitted to; of that status alone
  std::map<std::string, double> stated_nulls{};  ///< values of null models that the file gives
  std::string method{};  ///< key of `prediction`: "simulate", "price", "cross_validate", "model"
  FactSpec prediction;

  /// Of the value as written.
  [[nodiscard]] int decimals() const;
};

/// The facts of one file, which are scored together.
struct Subject {
  std::string name;  ///< of the file
  std::string about;
  std::optional<Gate> mean_gate{};  ///< of the mean absolute error
  std::vector<Fact> facts{};
};

/// Throws SpecError with file, line and key.
[[nodiscard]] Subject read_subject(const Spec& spec);

}  // namespace moeline
