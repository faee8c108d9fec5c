#include "calib/fit/kernel_library.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

// DeepSeek's own kernels of February 2025, and DeepEP's second version.
constexpr std::string_view kOverNic = "deepseek-2025-02";
constexpr std::string_view kMatchesSms = "deepep_v2-2026-04";

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
  std::string date = date_of(kernel_set);
  const TileSet tiles = tiles_of(date);
  return {std::move(date), tiles, kernel_set == kOverNic, kernel_set == kMatchesSms};
}

}  // namespace moeline
