#include "csv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace moeline::bench {
namespace {

void require_plain(const std::string& text, const char* forbidden, const char* what) {
  if (!text.empty() && text.find_first_of(forbidden) == std::string::npos) return;
  throw std::invalid_argument(std::string(what) + " cannot stand in the table: '" + text + "'");
}

void require_plain(const Case& c) {
  require_plain(to_string(c), ",\"\r\n ", "parameters");
  for (const auto& [name, value] : c.parameters) {
    require_plain(name, ";=:", "a parameter's name");
    require_plain(value, ";=:", "a parameter's value");
  }
}

/// Six significant digits where they matter, and never an exponent.
std::string decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, value >= 100 ? "%.3f" : "%.6f", value);
  return text;
}

}  // namespace

TableWriter::TableWriter(std::ostream& out, const Header& header) : out_(out) {
  for (const auto* text : {&header.device, &header.compute_capability, &header.driver, &header.toolkit, &header.cublas,
                           &header.commit, &header.preset, &header.started})
    require_plain(*text, "\r\n", "a line of the header");
  out << "# moeline calibration 1\n"
      << "# device: " << header.device << "\n# sms: " << header.sms
      << "\n# compute_capability: " << header.compute_capability << "\n# driver: " << header.driver
      << "\n# toolkit: " << header.toolkit << "\n# cublas: " << header.cublas
      << "\n# sm_clock_mhz: " << header.sm_clock_mhz << "\n# memory_clock_mhz: " << header.memory_clock_mhz
      << "\n# commit: " << header.commit << "\n# preset: " << header.preset << "\n# started: " << header.started
      << "\nkey,parameters,metric,unit,sample,value\n";
}

void TableWriter::row(const std::string& key, const Case& c, const std::string& metric, const std::string& unit,
                      int sample, double value) {
  for (const auto* text : {&key, &metric, &unit}) require_plain(*text, ",\"\r\n ", "a name");
  require_plain(c);
  const std::string number = decimal(value);
  if (!std::isfinite(value) || std::stod(number) <= 0)
    throw std::invalid_argument(metric + " of " + key + " " + to_string(c) + " is not positive: " + number);
  out_ << key << ',' << to_string(c) << ',' << metric << ',' << unit << ',' << sample << ',' << number << '\n';
  ++rows_;
}

void TableWriter::skipped(const std::string& key, const Case& c, std::string reason) {
  require_plain(key, ",\"\r\n ", "a name");
  require_plain(c);
  std::replace_if(
      reason.begin(), reason.end(), [](char x) { return x == '\n' || x == '\r'; }, ' ');
  require_plain(reason, "", "an empty reason");
  out_ << "# skipped: " << key << ' ' << to_string(c) << ": " << reason << '\n';
}

void TableWriter::finish() { out_ << "# rows: " << rows_ << '\n' << std::flush; }

}  // namespace moeline::bench
