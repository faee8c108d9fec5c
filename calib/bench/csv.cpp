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

/// A line of the header. No quotes: readers write its words into files that have them.
void require_header(const std::string& text) { require_plain(text, "\r\n\"\\", "a line of the header"); }

void require_header(int number, const char* what) {
  if (number <= 0) throw std::invalid_argument(std::string(what) + " must be above 0, not " + std::to_string(number));
}

/// Six significant digits where they matter, and never an exponent.
std::string decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, value >= 100 ? "%.3f" : "%.6f", value);
  return text;
}

std::string line_of(const std::string& key, const Case& c, const std::string& metric, const std::string& unit,
                    int sample, double value) {
  constexpr double least = 1e-3, most = 1e9;
  for (const auto* text : {&key, &metric, &unit}) require_plain(*text, ",\"\r\n ", "a name");
  require_plain(c);
  const std::string number = decimal(value);
  if (!std::isfinite(value) || std::stod(number) < least || std::stod(number) > most)
    throw std::invalid_argument(metric + " of " + key + " " + to_string(c) + " is no time: " + number);
  return key + ',' + to_string(c) + ',' + metric + ',' + unit + ',' + std::to_string(sample) + ',' + number + '\n';
}

}  // namespace

TableWriter::TableWriter(std::ostream& out, const Header& header) : out_(out) {
  for (const auto* text : {&header.device, &header.compute_capability, &header.driver, &header.toolkit, &header.cublas,
                           &header.commit, &header.preset, &header.started})
    require_header(*text);
  require_header(header.sms, "sms");
  require_header(header.sm_clock_mhz, "sm_clock_mhz");
  require_header(header.memory_clock_mhz, "memory_clock_mhz");
  out << "# moeline calibration 1\n"
      << "# device: " << header.device << "\n# sms: " << header.sms
      << "\n# compute_capability: " << header.compute_capability << "\n# driver: " << header.driver
      << "\n# toolkit: " << header.toolkit << "\n# cublas: " << header.cublas
      << "\n# sm_clock_mhz: " << header.sm_clock_mhz << "\n# memory_clock_mhz: " << header.memory_clock_mhz
      << "\n# commit: " << header.commit << "\n# preset: " << header.preset << "\n# started: " << header.started
      << "\nkey,parameters,metric,unit,sample,value\n";
}

void TableWriter::measured(const std::string& key, const Case& c, const std::vector<Metric>& metrics) {
  std::string lines;
  long rows = 0;
  for (const auto& [name, unit, samples] : metrics) {
    if (samples.empty()) throw std::invalid_argument(name + " of " + key + " " + to_string(c) + " has no samples");
    for (std::size_t i = 0; i < samples.size(); ++i, ++rows)
      lines += line_of(key, c, name, unit, static_cast<int>(i), samples[i]);
  }
  if (!measured_.insert(key + " " + to_string(c)).second)
    throw std::invalid_argument(key + " " + to_string(c) + " was measured before");
  out_ << lines;
  rows_ += rows;
}

void TableWriter::row(const std::string& key, const Case& c, const std::string& metric, const std::string& unit,
                      int sample, double value) {
  out_ << line_of(key, c, metric, unit, sample, value);
  ++rows_;
}

void TableWriter::skipped(const std::string& key, const Case& c, std::string reason) {
  require_plain(key, ",\"\r\n ", "a name");
  require_plain(c);
  std::replace_if(
      reason.begin(), reason.end(), [](char x) { return static_cast<unsigned char>(x) < ' '; }, ' ');
  require_plain(reason, "", "an empty reason");
  out_ << "# skipped: " << key << ' ' << to_string(c) << ": " << reason << '\n';
}

void TableWriter::finish() { out_ << "# rows: " << rows_ << '\n' << std::flush; }

}  // namespace moeline::bench
