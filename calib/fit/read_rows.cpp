#include "calib/fit/read_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "trace/gzip_stream.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20U;  // unpacked, of which a few KB may make any size

// zlib passes what is no gzip through as it is.
bool has_gzip_mark(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return stream.get() == 0x1f && stream.get() == 0x8b;
}

std::string unpacked(const std::filesystem::path& file) {
  GzipStream stream(file);
  if (!has_gzip_mark(file)) throw SpecError(file.string(), 0, "is called .gz and is not gzip");
  std::string text;
  while (!stream.at_end()) {
    text.push_back(stream.Take());
    if (text.size() > kLargest) throw SpecError(file.string(), 0, "is larger than 256 MiB, unpacked");
  }
  return text;
}

bool is_gzip(const std::filesystem::path& file) { return file.extension() == ".gz"; }

// The manifest names tables by their folder, and unpacked.
std::string name_in_manifest(const std::filesystem::path& file) {
  return file.parent_path().filename().string() + "/" + table_name(file) + ".csv";
}

}  // namespace

std::string table_name(const std::filesystem::path& file) {
  const std::filesystem::path plain = is_gzip(file) ? file.stem() : file.filename();
  return plain.extension() == ".csv" ? plain.stem().string() : plain.string();
}

CsvTable read_table(const std::filesystem::path& file) {
  return is_gzip(file) ? CsvTable(file, unpacked(file)) : CsvTable(file);
}

std::optional<ManifestEntry> manifest_entry(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(file, failed);
  const std::filesystem::path path = whole.parent_path().parent_path() / "manifest.csv";
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  const CsvTable manifest(path);
  for (std::size_t row = 0; row < manifest.rows(); ++row) {
    if (manifest.text(row, "file") != name_in_manifest(whole)) continue;
    return ManifestEntry{manifest.text(row, "device_of_rows"), manifest.text(row, "backend"),
                         manifest.text(row, "backend_version"), manifest.text(row, "commit")};
  }
  return std::nullopt;
}

namespace {

// What each rule leaves out is counted once, for the first that applies.
std::vector<StackReading> rows_asked_for(const StackTable& table, const RowKind& kind, RowLog& log) {
  std::vector<StackReading> readings;
  std::map<std::string, std::size_t> left_out;
  for (std::size_t row = 0; row < table.csv.rows(); ++row) {
    if (!meets(kind.where, table.csv, row)) continue;
    const auto rule = std::find_if(kind.leave_out.begin(), kind.leave_out.end(),
                                   [&](const LeaveOut& each) { return meets(each.conditions, table.csv, row); });
    if (rule != kind.leave_out.end()) {
      ++left_out[rule->reason];
      continue;
    }
    readings.push_back({op_of(kind, table.csv, row), row, table.csv.positive(row, kind.time) * kind.us_per_unit});
  }
  for (const auto& [reason, rows] : left_out) log.note(kind, rows, "left out: " + reason);
  return readings;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One OP measured several times counts once.
std::vector<StackReading> merged(const RowKind& kind, std::vector<StackReading> readings, RowLog& log) {
  std::map<std::string, std::vector<double>> times;
  for (const StackReading& reading : readings) times[reading.op].push_back(reading.us);
  const std::size_t before = readings.size();
  std::set<std::string> seen;
  std::erase_if(readings, [&](const StackReading& reading) { return !seen.insert(reading.op).second; });
  std::size_t repeated = 0;
  std::vector<double> deviations;
  for (StackReading& reading : readings) {
    const std::vector<double>& all = times.at(reading.op);
    reading.us = median(all);
    if (all.size() == 1) continue;
    ++repeated;
    for (const double us : all) deviations.push_back(us / reading.us - 1);
  }
  log.compare(kind, "the same table", repeated, deviations);
  log.note(kind, before - readings.size(), "were repeats: the median counts");
  return readings;
}

// What another table has of the same kernels by itself. Without that table no row is left.
void take_off(const StackTable& table, const RowKind& kind, const std::vector<StackTable>& tables,
              std::vector<StackReading>& readings, RowLog& log) {
  if (kind.less.file.empty()) return;
  std::map<std::string, double> part;
  for (const StackTable& other : tables) {
    if (other.name != kind.less.file) continue;
    for (std::size_t row = 0; row < other.csv.rows(); ++row) {
      part[cells_of(other, kind.less.by, row)] = other.csv.positive(row, kind.time) * kind.us_per_unit;
    }
  }
  for (StackReading& reading : readings) {
    const auto found = part.find(cells_of(table, kind.less.by, reading.row));
    reading.us = found == part.end() ? 0 : reading.us - found->second;
  }
  const std::size_t before = readings.size();
  std::erase_if(readings, [](const StackReading& reading) { return reading.us <= 0; });
  log.note(kind, before - readings.size(), fmt::format("left out: more than that, or nothing, in {}", kind.less.file));
}

// Rows that another version of the stack ran much faster.
void drop_by_witness(const RowKind& kind, const std::vector<StackTable>& tables, std::vector<StackReading>& readings,
                     RowLog& log) {
  if (kind.witness.above == 0) return;
  const auto witness = std::find_if(tables.begin(), tables.end(),
                                    [&](const StackTable& other) { return other.name.starts_with(kind.witness.file); });
  if (witness == tables.end()) return;
  std::map<std::string, double> there;
  for (std::size_t row = 0; row < witness->csv.rows(); ++row) {
    if (!meets(kind.where, witness->csv, row)) continue;
    there[op_of(kind, witness->csv, row)] = witness->csv.positive(row, kind.time) * kind.us_per_unit;
  }
  std::vector<double> deviations;
  for (const StackReading& reading : readings) {
    const auto other = there.find(reading.op);
    if (other != there.end()) deviations.push_back(reading.us / other->second - 1);
  }
  log.compare(kind, witness->name, deviations.size(), deviations);
  const std::size_t before = readings.size();
  std::erase_if(readings, [&](const StackReading& reading) {
    const auto other = there.find(reading.op);
    return other != there.end() && reading.us > kind.witness.above * other->second;
  });
  log.note(kind, before - readings.size(),
           fmt::format("left out: above {} times their time in {}", kind.witness.above, witness->name));
}

// How much work a row is, by column: the larger the more.
std::vector<double> work_of(const StackTable& table, const Spikes& spikes, const StackReading& reading) {
  std::vector<double> work;
  for (const std::string& column : spikes.rising) work.push_back(table.csv.number(reading.row, column));
  for (const std::string& column : spikes.falling) work.push_back(-table.csv.number(reading.row, column));
  return work;
}

// Least time of any row with no less work: on a grid of the values that occur, from its far corner on.
class Envelope {
 public:
  void add(const std::vector<double>& work, double us) {
    axes_.resize(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) axes_[i].push_back(work[i]);
    points_.emplace_back(work, us);
  }

  void close() {
    constexpr std::size_t kMostCells = 10'000'000;
    std::size_t cells = 1;
    for (std::vector<double>& axis : axes_) {
      std::sort(axis.begin(), axis.end());
      axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
      cells *= axis.size();
      if (cells > kMostCells) throw SpecError("spikes: the columns have too many values to be compared on a grid");
    }
    least_.assign(cells, std::numeric_limits<double>::infinity());
    for (const auto& [work, us] : points_) least_[place(work)] = std::min(least_[place(work)], us);
    std::size_t stride = 1;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      for (std::size_t i = cells; i-- > 0;) {
        if (i / stride % axis->size() + 1 < axis->size()) least_[i] = std::min(least_[i], least_[i + stride]);
      }
      stride *= axis->size();
    }
  }

  [[nodiscard]] double at(const std::vector<double>& work) const { return least_[place(work)]; }

 private:
  [[nodiscard]] std::size_t place(const std::vector<double>& work) const {
    std::size_t index = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto at = std::lower_bound(axes_[i].begin(), axes_[i].end(), work[i]) - axes_[i].begin();
      index = index * axes_[i].size() + static_cast<std::size_t>(at);
    }
    return index;
  }

  std::vector<std::vector<double>> axes_;
  std::vector<std::pair<std::vector<double>, double>> points_;
  std::vector<double> least_;  // by cell, the last axis fastest
};

void drop_spikes(const StackTable& table, const RowKind& kind, std::vector<StackReading>& readings, RowLog& log) {
  const Spikes& spikes = kind.spikes;
  if (spikes.above == 0) return;
  std::map<std::string, Envelope> envelopes;
  for (const StackReading& reading : readings) {
    envelopes[cells_of(table, spikes.same, reading.row)].add(work_of(table, spikes, reading), reading.us);
  }
  for (auto& [cells, envelope] : envelopes) envelope.close();
  const std::size_t before = readings.size();
  std::erase_if(readings, [&](const StackReading& reading) {
    const Envelope& envelope = envelopes.at(cells_of(table, spikes.same, reading.row));
    return reading.us > spikes.above * envelope.at(work_of(table, spikes, reading));
  });
  log.note(kind, before - readings.size(), fmt::format("left out: above {} times a row with more work", spikes.above));
}

}  // namespace

std::string cells_of(const StackTable& table, const std::vector<std::string>& columns, std::size_t row) {
  std::string cells;
  for (const std::string& column : columns) cells += column + " " + table.csv.text(row, column) + " ";
  return cells;
}

std::vector<StackReading> read_rows(const StackTable& table, const RowKind& kind, const std::vector<StackTable>& tables,
                                    RowLog& log) {
  std::vector<StackReading> readings = merged(kind, rows_asked_for(table, kind, log), log);
  if (readings.empty()) log.say(kind.name + ": no row is left");
  take_off(table, kind, tables, readings, log);
  drop_by_witness(kind, tables, readings, log);
  drop_spikes(table, kind, readings, log);
  return readings;
}

}  // namespace moeline
