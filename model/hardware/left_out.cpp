#include "hardware/left_out.hpp"

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "hardware/derive.hpp"

namespace moeline {
namespace {

constexpr const char* kTable = "hwprofiles/left_out.csv";

using Errors = std::map<std::pair<std::string, std::string>, LeftOutError>;

Errors read_errors() {
  const CsvTable table(home() / kTable);
  table.expect({"kin", "what", "cases", "median_abs_error", "p95_abs_error", "mean_error", "worst_error"});
  Errors errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    errors[{table.text(row, "kin"), table.text(row, "what")}] = {
        .cases = table.integer(row, "cases", 1, 1 << 24),
        .median_abs_error = table.number(row, "median_abs_error"),
        .p95_abs_error = table.number(row, "p95_abs_error"),
        .mean_error = table.number(row, "mean_error"),
        .worst_error = table.number(row, "worst_error")};
  }
  return errors;
}

}  // namespace

Kin kin_of(const MachineFacts& machine, const MachineFacts& like) {
  constexpr double kNear = 0.1;
  if (machine.vendor != like.vendor) return Kin::other_vendor;
  const bool fp8 = machine.fp8_tflops > 0 && like.fp8_tflops > 0;
  const auto flop = [&](const MachineFacts& m) { return flop_per_clock(m, fp8 ? m.fp8_tflops : m.bf16_tflops); };
  const double ratio = flop(machine) / flop(like);
  if (std::abs(ratio - 1) < kNear) return Kin::same_tensor_cores;
  return ratio > 1 ? Kin::faster_tensor_cores : Kin::slower_tensor_cores;
}

const std::string& name_of(Kin kin) {
  static const std::array<std::string, 4> kNames = {"same tensor cores", "faster tensor cores", "slower tensor cores",
                                                    "other vendor"};
  return kNames.at(static_cast<std::size_t>(kin));
}

std::optional<LeftOutError> left_out_error(Kin kin, const std::string& what) {
  static const Errors errors = read_errors();
  const auto found = errors.find({name_of(kin), what});
  if (found == errors.end()) return std::nullopt;
  return found->second;
}

}  // namespace moeline
