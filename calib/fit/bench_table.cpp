#include "calib/fit/bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "calib/fit/bench_schema.hpp"

namespace moeline {
namespace {

constexpr std::string_view kFormat = "# moeline calibration ";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kColumns = "key,parameters,metric,unit,sample,value";
constexpr std::string_view kSkipped = "skipped: ", kRows = "rows: ";
constexpr const char* kHeader[] = {"device", "sms",          "compute_capability", "driver", "toolkit", "cublas",
                                   "preset", "sm_clock_mhz", "memory_clock_mhz",   "commit", "started"};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : text_(read_text(path)) { table_.file = path.string(); }

  BenchTable read() {
    std::istringstream stream(text_);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      read_line(line);
    }
    if (!counted_) refuse(fmt::format("the table was cut off: its last line must be '# {}{}'", kRows, rows_));
    for (const Measurement& m : table_.measurements) check_metrics(m);
    return std::move(table_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw SpecError(table_.file, line_, why); }

  void read_line(const std::string& line) {
    if (counted_) refuse("nothing may follow the count of rows");
    if (line_ == 1) {
      read_format(line);
    } else if (line.starts_with("# ")) {
      read_comment(std::string_view(line).substr(2));
    } else if (!in_rows_) {
      read_columns(line);
    } else {
      read_row(line);
    }
  }

  void read_format(std::string_view line) const {
    if (!line.starts_with(kFormat)) refuse(fmt::format("the first line must be '{}{}'", kFormat, kVersion));
    const std::string_view version = line.substr(kFormat.size());
    if (version != kVersion) refuse(fmt::format("format {} is not known, only {}", one_line(version, 20), kVersion));
  }

  void read_comment(std::string_view text) {
    if (!in_rows_) {
      const std::size_t colon = text.find(": ");
      if (colon == std::string_view::npos) refuse("a line of the header must be '# name: value'");
      const std::string_view value = text.substr(colon + 2);
      if (value.find_first_of("\"\\") != std::string_view::npos) refuse("a line of the header holds '\"' or '\\'");
      table_.header[std::string(text.substr(0, colon))] = value;
    } else if (text.starts_with(kSkipped)) {
      table_.skipped.emplace_back(one_line(text.substr(kSkipped.size()), 200));
    } else if (text.starts_with(kRows)) {
      const double count = whole_number("rows", std::string(text.substr(kRows.size())));
      if (count != rows_) refuse(fmt::format("{} rows are counted, {} are there", count, rows_));
      counted_ = true;
    } else {
      refuse(fmt::format("after the header a comment must begin with '# {}' or '# {}'", kSkipped, kRows));
    }
  }

  void read_columns(std::string_view line) {
    if (line != kColumns) refuse(fmt::format("the columns must be '{}'", kColumns));
    for (const char* name : kHeader) {
      if (!table_.header.contains(name)) refuse(fmt::format("the header has no line '# {}: ...'", name));
    }
    whole_number("sms", table_.header.at("sms"));
    in_rows_ = true;
  }

  void read_row(const std::string& line) {
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() != 6) refuse(fmt::format("has {} cells, its header 6", cells.size()));
    Measurement m;
    m.key = cells[0];
    m.parameters = cells[1];
    m.metric = cells[2];
    m.line = line_;
    const std::string name = fmt::format("{} {} {}", m.key, m.parameters, m.metric);
    const auto [found, is_new] = place_.emplace(name, table_.measurements.size());
    if (is_new) {
      const BenchKey key = key_of(m);
      read_parameters(key, m);
      check_name("metric", m.metric, key.metrics);
      table_.measurements.push_back(std::move(m));
    }
    if (cells[3] != "us") refuse(fmt::format("the unit of {} is us, not '{}'", cells[2], one_line(cells[3], 20)));
    std::vector<double>& samples = table_.measurements[found->second].samples;
    if (whole_number("sample", cells[4]) != static_cast<double>(samples.size())) {
      refuse(fmt::format("sample {} stands where {} should", cells[4], samples.size()));
    }
    samples.push_back(positive("value", cells[5]));
    ++rows_;
  }

  // Contention has the parameters of the kernel that it names, too.
  BenchKey key_of(const Measurement& m) const {
    const BenchKey& key = known(m.key, "key");
    if (key.name != "contention") return key;
    for (const std::string& parameter : split(m.parameters, ';')) {
      if (parameter.starts_with("kernel=")) return contention_of(known(parameter.substr(7), "kernel"));
    }
    refuse("parameter 'kernel' is missing");
  }

  const BenchKey& known(const std::string& name, const char* what) const {
    if (const BenchKey* key = find_bench_key(name)) return *key;
    std::vector<std::string> names;
    for (const BenchKey& key : bench_keys()) names.push_back(key.name);
    refuse(unknown_name(what, one_line(name, 40), names));
  }

  void check_name(const char* what, const std::string& name, const std::vector<std::string>& names) const {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      refuse(unknown_name(what, one_line(name, 40), names));
    }
  }

  void read_parameters(const BenchKey& key, Measurement& m) const {
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::vector<std::string> names = key.shape;
    for (const auto* more : {&key.words, &key.optional}) names.insert(names.end(), more->begin(), more->end());
    for (const std::string& parameter : split(m.parameters, ';')) {
      const std::size_t equals = parameter.find('=');
      const std::string name = parameter.substr(0, equals);
      check_name("parameter", name, names);
      if (m.shape.contains(name) || m.words.contains(name)) refuse(fmt::format("parameter '{}' is repeated", name));
      const std::string value = equals == std::string::npos ? "" : parameter.substr(equals + 1);
      if (is_in(key.words, name)) {
        m.words[name] = value;
      } else {
        m.shape[name] = whole_number(name, value);
      }
    }
    for (const auto* needed : {&key.shape, &key.words}) {
      for (const std::string& name : *needed) {
        if (!m.shape.contains(name) && !m.words.contains(name)) refuse(fmt::format("parameter '{}' is missing", name));
      }
    }
  }

  double number(const std::string& name, const std::string& text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      refuse(fmt::format("{}: '{}' is not a number", name, one_line(text, 40)));
    }
    return value;
  }

  double positive(const std::string& name, const std::string& text) const {
    const double value = number(name, text);
    if (!(value > 0)) refuse(fmt::format("{} must be above 0, not {}", name, shortest(value)));
    return value;
  }

  double whole_number(const std::string& name, const std::string& text) const {
    constexpr double kMost = 1e15;
    const double value = number(name, text);
    if (value < 0 || value > kMost || value != std::trunc(value)) {
      refuse(fmt::format("{} must be a whole number, not {}", name, shortest(value)));
    }
    return value;
  }

  // What is measured beside a neighbour means nothing without the time alone.
  void check_metrics(const Measurement& m) const {
    if (m.metric != "time" || m.key != "contention") return;
    if (place_.contains(fmt::format("{} {} time_alone", m.key, m.parameters))) return;
    throw SpecError(table_.file, m.line, "has a time, but no time_alone");
  }

  std::string text_;
  BenchTable table_;
  std::map<std::string, std::size_t> place_;  // of measurements, by key, parameters and metric
  int line_ = 0;
  int rows_ = 0;
  bool in_rows_ = false;
  bool counted_ = false;
};

}  // namespace

double Measurement::median() const {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

bool is_bench_table(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line.starts_with(kFormat);
}

BenchTable read_bench_table(const std::filesystem::path& file) { return Reader(file).read(); }

}  // namespace moeline
