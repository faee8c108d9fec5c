// The table of calib/schema.md, row by row. Plain C++: moeline's tests read what it writes.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "case.hpp"
#include "metric.hpp"

namespace moeline::bench {

/// What the table says about the machine, before its rows.
struct Header {
  std::string device;
  int sms = 0;
  std::string compute_capability;
  std::string driver, toolkit, cublas;
  int sm_clock_mhz = 0, memory_clock_mhz = 0;
  std::string commit, preset, started;
};

/// The format has no escapes: what it cannot hold is refused with std::invalid_argument, and nothing is written. So is
/// what would make a reader refuse the whole table.
class TableWriter {
 public:
  TableWriter(std::ostream& out, const Header& header);
  /// All samples of one case, or nothing: half a case would cost the table. A case is measured once, and every metric
  /// has samples.
  void measured(const std::string& key, const Case& c, const std::vector<Metric>& metrics);
  /// `value`: from 1e-3 to 1e9, which no time of a kernel in microseconds leaves unless its measurement failed.
  void row(const std::string& key, const Case& c, const std::string& metric, const std::string& unit, int sample,
           double value);
  /// Line breaks and the like within the reason become spaces: it is another's message.
  void skipped(const std::string& key, const Case& c, std::string reason);
  /// The line without which a table counts as cut off.
  void finish();

 private:
  std::ostream& out_;
  std::set<std::string> measured_;  ///< keys and parameters
  long rows_ = 0;
};

}  // namespace moeline::bench
