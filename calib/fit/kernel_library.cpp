#include "calib/fit/kernel_library.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr std::string_view kMatchesSms = "deepep_v2-2026-04";  // DeepEP's second version
// DeepEP's normal mode copies the own node's tokens since its pull request 130 (April 2025), its low-latency mode uses
// NVLink since pull request 173 (opened on 22 May 2025).
constexpr std::string_view kNormalCopiesSince = "2025-04", kLowLatencyNvlinkSince = "2025-06";

// NAME-DATE: what follows the first "-" starts with a year, "2025-02" or "2025-late".
std::string date_of(const std::string& kernel_set) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  if (kernel_set.find_first_not_of(kPlain) != std::string::npos) {
    throw SpecError(
        fmt::format("kernel set '{}' may hold letters, digits, '-', '_' and '.' alone", one_line(kernel_set)));
  }
  const std::size_t dash = kernel_set.find('-');
  const std::string date = dash == std::string::npos ? "" : kernel_set.substr(dash + 1);
  const bool has_year = date.size() > 5 && date[4] == '-' && date.find_first_not_of("0123456789") == 4;
  if (dash == 0 || !has_year) {
    throw SpecError(
        fmt::format("kernel set '{}' must be named NAME-DATE, the date from the first '-' on and with its "
                    "year first: deepseek-2025-02, open-2025-late",
                    kernel_set));
  }
  return date;
}

TileSet tiles_of(const std::string& date) {
  constexpr std::string_view kWideSince = "2025-04";
  return date < kWideSince ? TileSet::narrow : TileSet::wide;
}

}  // namespace

KernelLibrary library_of(const std::string& kernel_set) {
  const std::string date = date_of(kernel_set);
  return {.date = date,
          .tiles = tiles_of(date),
          .normal_over_nic = date < kNormalCopiesSince,
          .low_latency_over_nic = date < kLowLatencyNvlinkSince,
          .matches_sms_to_nic = kernel_set == kMatchesSms};
}

}  // namespace moeline
