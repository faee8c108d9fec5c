#include "calib/fit/bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace moeline {

namespace {

using Names = std::vector<std::string>;

std::vector<BenchKey> kernel_keys() {
  const Names time = {"time"};
  const Names prompt = {"batch", "heads", "kv_heads", "query_len", "kv_len", "qk_dim", "v_dim"};
  const Names tensor = {"rows", "columns", "bytes"};
  const BenchWord scaling = {"scaling", {"1x128", "mx32"}};
  return {{"gemm_fp8", {"m", "n", "k"}, {scaling}, {"sms"}, time},
          {"gemm_fp8_masked", {"groups", "m", "n", "k"}, {scaling}, {}, time},
          {"gemm_bf16", {"m", "n", "k"}, {}, {"sms"}, time},
          {"gemm_bf16_grouped", {"groups", "m", "n", "k"}, {}, {}, time},
          {"gemm_bf16_batched", {"groups", "m", "n", "k"}, {}, {}, time},
          {"attention_forward", prompt, {}, {}, time},
          {"attention_backward", prompt, {}, {}, time},
          {"mla_decode", {"batch", "heads", "query_len", "kv_len"}, {}, {}, time},
          {"streaming", tensor, {}, {}, time},
          {"rowwise", tensor, {}, {}, time},
          {"cast_transpose", tensor, {}, {}, time},
          {"swiglu", tensor, {}, {}, time},
          {"strided", tensor, {}, {}, time},
          {"small", {"blocks"}, {}, {}, time}};
}

Names names_of(const std::vector<BenchKey>& keys) {
  Names names;
  for (const BenchKey& key : keys) names.push_back(key.name);
  return names;
}

std::vector<BenchKey> all_keys() {
  std::vector<BenchKey> keys = kernel_keys();
  keys.push_back({"launch", {}, {{"mode", {"stream", "graph"}}}, {}, {"time", "host"}});
  keys.push_back({"copy", {"bytes"}, {}, {}, {"time"}});
  keys.push_back({"contention",
                  {"sms"},
                  {{"kernel", names_of(kernel_keys())}, {"beside", {"spin", "copy", "kernel"}}},
                  {},
                  {"time", "time_alone", "copy_time", "copy_time_alone"}});
  return keys;
}

}  // namespace

const std::vector<BenchKey>& bench_keys() {
  static const std::vector<BenchKey> keys = all_keys();
  return keys;
}

const BenchKey* find_bench_key(const std::string& name) {
  const std::vector<BenchKey>& keys = bench_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const BenchKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

BenchKey contention_of(const BenchKey& kernel) {
  BenchKey key = *find_bench_key("contention");
  key.shape.insert(key.shape.end(), kernel.shape.begin(), kernel.shape.end());
  key.words.insert(key.words.end(), kernel.words.begin(), kernel.words.end());
  if (!kernel.optional.empty()) key.optional = {"kernel_sms"};
  return key;
}

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

class BenchReader {
 public:
  explicit BenchReader(const std::filesystem::path& path) : text_(read_text(path)) { table_.file = path.string(); }

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
      read_header(std::string(text.substr(0, colon)), std::string(value));
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

  void read_header(const std::string& name, const std::string& value) {
    table_.header[name] = value;
    table_.header_lines[name] = line_;
    const bool counts = name == "sms" || name == "sm_clock_mhz" || name == "memory_clock_mhz";
    if (counts && whole_number(name, value) < 1) refuse(fmt::format("{} must be above 0", name));
    if (name == "started") check_date(value);
  }

  void read_columns(std::string_view line) {
    if (line != kColumns) refuse(fmt::format("the columns must be '{}'", kColumns));
    for (const char* name : kHeader) {
      if (!table_.header.contains(name)) refuse(fmt::format("the header has no line '# {}: ...'", name));
    }
    in_rows_ = true;
  }

  // 2026-11-21T20:53:14Z; the month names the kernel set.
  void check_date(const std::string& started) const {
    int year = 0, month = 0, day = 0;
    const bool read = std::sscanf(started.c_str(), "%4d-%2d-%2dT", &year, &month, &day) == 3;
    if (read && started.size() > 10 && started[7] == '-' && month >= 1 && month <= 12 && day >= 1 && day <= 31) return;
    refuse(fmt::format("started must be a date like 2026-11-21T20:53:14Z, not '{}'", one_line(started, 40)));
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
    samples.push_back(time_us(cells[5]));
    ++rows_;
  }

  // Contention has the parameters of the kernel that it names, too.
  BenchKey key_of(const Measurement& m) const {
    const BenchKey& key = known(m.key, "key");
    if (key.name != "contention") return key;
    for (const std::string& parameter : split(m.parameters, ';')) {
      if (!parameter.starts_with("kernel=")) continue;
      check_name("kernel", parameter.substr(7), key.words.front().values);
      return contention_of(*find_bench_key(parameter.substr(7)));
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
    std::vector<std::string> needed = key.shape;
    for (const BenchWord& word : key.words) needed.push_back(word.name);
    std::vector<std::string> names = needed;
    names.insert(names.end(), key.optional.begin(), key.optional.end());
    for (const std::string& parameter : split(m.parameters, ';')) {
      const std::size_t equals = parameter.find('=');
      const std::string name = parameter.substr(0, equals);
      check_name("parameter", name, names);
      if (m.shape.contains(name) || m.words.contains(name)) refuse(fmt::format("parameter '{}' is repeated", name));
      const std::string value = equals == std::string::npos ? "" : parameter.substr(equals + 1);
      const auto word =
          std::find_if(key.words.begin(), key.words.end(), [&](const BenchWord& each) { return each.name == name; });
      if (word == key.words.end()) {
        m.shape[name] = whole_number(name, value);
      } else {
        check_name(name.c_str(), value, word->values);
        m.words[name] = value;
      }
    }
    for (const std::string& name : needed) {
      if (!m.shape.contains(name) && !m.words.contains(name)) refuse(fmt::format("parameter '{}' is missing", name));
    }
    check_shape(m);
  }

  // What no kernel can have.
  void check_shape(const Measurement& m) const {
    constexpr double kMost = 1e13;
    const double device_sms = std::stod(table_.header.at("sms"));
    const bool twice = m.key == "contention" && m.words.at("beside") == "kernel";
    for (const auto& [name, value] : m.shape) {
      if (name == "sms" && twice) {
        if (value != 0) refuse("sms must be 0 where beside=kernel");
        continue;
      }
      const bool sms = name == "sms" || name == "kernel_sms";
      const double most = sms ? device_sms : kMost;
      if (value < 1 || value > most) {
        refuse(fmt::format("{} must be from 1 to {:.0f}, not {}", name, most, shortest(value)));
      }
    }
    if (m.shape.contains("kv_heads") && std::fmod(m.at("heads"), m.at("kv_heads")) != 0) {
      refuse(fmt::format("kv_heads {} must divide heads {}", m.at("kv_heads"), m.at("heads")));
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

  double time_us(const std::string& text) const {
    constexpr double kShortest = 1e-3, kLongest = 1e9;
    const double value = number("value", text);
    if (value < kShortest || value > kLongest) {
      refuse(fmt::format("value must be from {} to {:.0e} us, not {}", kShortest, kLongest, shortest(value)));
    }
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

  // What is measured beside a neighbour means nothing without the times alone.
  void check_metrics(const Measurement& m) const {
    if (m.key != "contention") return;
    std::vector<const char*> needed = {"time", "time_alone"};
    if (m.words.at("beside") == "copy") needed.insert(needed.end(), {"copy_time", "copy_time_alone"});
    for (const char* metric : needed) {
      if (place_.contains(fmt::format("{} {} {}", m.key, m.parameters, metric))) continue;
      throw SpecError(table_.file, m.line, fmt::format("has a {}, but no {}", m.metric, metric));
    }
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

SpecError BenchTable::error_at(const std::string& name, const std::string& message) const {
  return {file, header_lines.at(name), fmt::format("{} {}", name, message)};
}

bool is_bench_table(const std::filesystem::path& file) {
  if (is_stdin(file)) return read_text(file).starts_with(kFormat);
  std::ifstream stream(file, std::ios::binary);
  std::string start(kFormat.size(), '\0');
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kFormat;
}

BenchTable read_bench_table(const std::filesystem::path& file) { return BenchReader(file).read(); }

}  // namespace moeline
