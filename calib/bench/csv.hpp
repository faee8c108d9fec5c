// The table of calib/schema.md, row by row. Plain C++: moeline's tests read what it writes.
#pragma once

#include <ostream>
#include <string>

#include "case.hpp"

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

/// The format has no escapes: what it cannot hold is refused with std::invalid_argument, and nothing is written.
class TableWriter {
 public:
  TableWriter(std::ostream& out, const Header& header);
  /// `value`: positive and finite.
  void row(const std::string& key, const Case& c, const std::string& metric, const std::string& unit, int sample,
           double value);
  /// Line breaks within the reason become spaces: it is another's message.
  void skipped(const std::string& key, const Case& c, std::string reason);
  /// The line without which a table counts as cut off.
  void finish();

 private:
  std::ostream& out_;
  long rows_ = 0;
};

}  // namespace moeline::bench
