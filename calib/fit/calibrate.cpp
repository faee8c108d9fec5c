#include "calib/fit/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calib/fit/assess.hpp"
#include "calib/fit/attention_observations.hpp"
#include "calib/fit/bench_observations.hpp"
#include "calib/fit/deepep_observations.hpp"
#include "calib/fit/fit_form.hpp"
#include "calib/fit/gemm_observations.hpp"
#include "calib/fit/kernel_library.hpp"
#include "calib/fit/solve.hpp"
#include "calib/fit/trace_observations.hpp"

namespace moeline {
namespace {

using Observations = std::vector<Observation>;

struct Tables {
  Observations observations;
  std::vector<std::string> sources;

  void add(const Observations& more, const std::string& source) {
    observations.insert(observations.end(), more.begin(), more.end());
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
  }
};

// What a table is read for.
struct Setting {
  const Architecture& model;
  const MachineFacts& machine;
  const std::string& kernel_set;
  KernelLibrary library;
};

// A kind of table; all but the training trace.
struct TableReader {
  bool (*is)(const CsvTable& table);
  Observations (*read)(const CsvTable& table, const Setting& s);
  const char* source;
  bool transfers = false;  // DeepEP's: what transfers beside compute kernels are measured in multiples of
};

template <const char* column>
bool has(const CsvTable& table) {
  return table.has(column);
}

constexpr char kNormal[] = "dispatch_transmit_us", kLowLatency[] = "dispatch_avg_t_us";
constexpr char kPublished[] = "logical_bandwidth_GBps", kHold[] = "holds_sms_us", kFlashMla[] = "flash_mla_bound";
constexpr char kGraphGap[] = "graph_gap_us", kSpeedSpread[] = "speed_spread";

// A figure that is a constant by itself.
template <Constant constant, const char* column>
Observations figures(const CsvTable& table, const Setting& /*s*/) {
  Observations observations;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Observation figure{.family = std::string(group_of(static_cast<std::size_t>(constant))),
                       .measured_us = table.positive(row, column),
                       .noise = Noise::timed};
    figure.curves = {{{{constant, 1}}, {}}};
    observations.push_back(figure);
  }
  return observations;
}

// The first that fits.
constexpr TableReader kReaders[] = {
    {has<kNormal>, [](const CsvTable& t, const Setting& s) { return normal_observations(t, s.model, s.machine); },
     "ai-dynamo/aiconfigurator's DeepEP tables of H100", true},
    {has<kLowLatency>,
     [](const CsvTable& t, const Setting& s) { return low_latency_observations(t, s.model, s.machine, s.library); },
     "ai-dynamo/aiconfigurator's DeepEP tables of H100", true},
    {has<kPublished>,
     [](const CsvTable& t, const Setting& s) { return published_observations(t, s.model, s.machine, s.kernel_set); },
     "DeepEP's published figures", true},
    {has<kHold>, [](const CsvTable& t, const Setting& s) { return hold_observations(t, s.model, s.machine); },
     "two figures of what low-latency kernels hold SMs for", true},
    {has<kFlashMla>,
     [](const CsvTable& t, const Setting& s) { return flash_mla_observations(t, s.kernel_set, s.machine); },
     "FlashMLA's published figures"},
    {has<kGraphGap>, figures<Constant::graph_gap, kGraphGap>,
     "one public figure of the gap between kernels of a CUDA graph"},
    {has<kSpeedSpread>, figures<Constant::speed_spread, kSpeedSpread>,
     "the spread of GPU speeds that barriers of layers 0, 1 of the training trace show"},
    {is_dense_gemm_table,
     [](const CsvTable& t, const Setting& s) { return dense_gemm_observations(t, s.machine, s.library.tiles); },
     "alibaba/InferSim's GEMM tables of H800"},
    {is_grouped_gemm_table,
     [](const CsvTable& t, const Setting& s) { return grouped_gemm_observations(t, s.machine, s.library.tiles); },
     "alibaba/InferSim's GEMM tables of H800"},
    {is_published_gemm_table,
     [](const CsvTable& t, const Setting& s) {
       return published_gemm_observations(t, s.machine, s.kernel_set, s.library.tiles);
     },
     "DeepGEMM's published figures"},
    {is_attention_table, [](const CsvTable& t, const Setting& s) { return attention_observations(t, s.machine); },
     "alibaba/InferSim's attention tables of H800"},
};

bool is_training_trace(const CsvTable& table) { return table.has("launch_us"); }

const TableReader& reader_of(const CsvTable& table) {
  for (const TableReader& reader : kReaders) {
    if (reader.is(table)) return reader;
  }
  throw SpecError(table.file(), 1,
                  "is not a table that calibrate knows: attributed kernels of a trace (column launch_us), DeepEP's "
                  "benchmarks (dispatch_transmit_us, dispatch_avg_t_us), kernel tables (latency_us or up_proj_us), "
                  "published figures as in calib/data, or calib/bench's (calib/schema.md)");
}

// What the tables together do not tell is the fault of no line.
Constants solve_tables(const std::vector<std::filesystem::path>& files, const Observations& observations) {
  const std::string others = files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "";
  return on_behalf_of(files.front().string() + others, [&] { return solve(observations); });
}

// Transfers by themselves, which those of a trace are held against.
Constants solve_alone(const std::vector<std::filesystem::path>& files, const Setting& s,
                      const Observations& transfers) {
  Constants alone;
  alone.fill(kUnknown);
  if (!transfers.empty()) alone = solve_tables(files, transfers);
  set_own_node_constants(s.library, alone);
  return alone;
}

void add_trace(const CsvTable& table, const Setting& s, const std::vector<int>& layers, const Constants& alone,
               Tables& tables) {
  const Observations observations = trace_observations(table, layers, s.model, s.machine, alone);
  tables.add(observations,
             fmt::format("layers {} of deepseek-ai/profile-data train.json (H800, EP64, 20 communication SMs)",
                         fmt::join(layers, ", ")));
}

void drop(const std::vector<std::string>& keys, BenchTable& table) {
  for (const std::string& key : keys) {
    std::erase_if(table.measurements, [&](const Measurement& m) { return m.key == key; });
  }
}

void add_bench(const BenchTable& table, const Setting& s, Tables& tables) {
  tables.add(bench_observations(table, s.machine, s.library.tiles),
             fmt::format("calib/bench on {}, toolkit {}, cuBLAS {}, commit {}, {}", table.header.at("device"),
                         table.header.at("toolkit"), table.header.at("cublas"), table.header.at("commit"),
                         table.header.at("started").substr(0, 10)));
}

// One machine's times are no other's, and each holds a gap that must be measured too.
void check_benches(const std::vector<BenchTable>& benches, bool other_kernels) {
  if (benches.empty()) return;
  const std::string& device = benches.front().header.at("device");
  for (const BenchTable& table : benches) {
    if (table.header.at("device") == device) continue;
    throw benches.front().error_at(
        "device", fmt::format("is {}, and {} was measured on {}", device, table.file, table.header.at("device")));
  }
  if (other_kernels) {
    throw benches.front().error_at(
        "device", fmt::format("is {}: cannot be fitted together with kernels that others timed elsewhere", device));
  }
  const auto has_gap = [](const BenchTable& table) {
    return std::any_of(table.measurements.begin(), table.measurements.end(), [](const Measurement& m) {
      return m.key == "launch" && m.metric == "time" && m.words.at("mode") == "stream";
    });
  };
  if (std::any_of(benches.begin(), benches.end(), has_gap)) return;
  throw SpecError(
      benches.front().file, 0,
      "times of kernels contain the gap to the next one, and no table measures it (key launch, mode=stream)");
}

void expect_different(const std::vector<std::filesystem::path>& files) {
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& file : files) {
    std::error_code failed;
    if (seen.insert(std::filesystem::weakly_canonical(file, failed)).second) continue;
    throw SpecError(file.string(), 0, "is given twice");
  }
}

// What was never left out of the fit belongs to its range all the same.
void take_errors(const FamilyFit& from, FamilyFit& fit) {
  fit.held_out = true;
  fit.kernels = from.kernels;
  fit.median_abs_error = from.median_abs_error;
  fit.p95_abs_error = from.p95_abs_error;
  fit.worst_error = from.worst_error;
  fit.mean_error = from.mean_error;
}

// What the fit must not see, throughout.
void leave_out(const std::string& fold, Observations& observations) {
  std::vector<std::string> folds;
  for (const Observation& o : observations) {
    if (!o.fold.empty() && std::find(folds.begin(), folds.end(), o.fold) == folds.end()) folds.push_back(o.fold);
  }
  if (std::erase_if(observations, [&](const Observation& o) { return o.fold == fold; }) > 0) return;
  throw UnknownName(unknown_name("fold", fold, folds));
}

// The set borrows them: they are no constants of its own.
void give(const CalibrationRequest& request, Observations& observations) {
  Constants given;
  given.fill(kUnknown);
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::find(request.given.begin(), request.given.end(), group_of(i)) != request.given.end()) {
      given[i] = request.lender[i];
    }
  }
  for (Observation& o : observations) {
    for (Curve& curve : o.curves) give(given, curve);
  }
}

// Of each family with enough pairs of executions to tell: sum of differences over what a deviation of 1 would give.
void set_jitters(const Observations& observations, KernelSet& set) {
  constexpr int kFewest = 4;
  struct Sums {
    double differences = 0, at_one = 0;
    int pairs = 0;
  };
  std::map<std::string, Sums> families;
  for (const Observation& o : observations) {
    if (o.varies.empty()) continue;
    Sums& sums = families[o.varies];
    sums.differences += o.measured_us;
    sums.at_one += o.curves.front().always.front().feature;
    ++sums.pairs;
  }
  for (const auto& [family, sums] : families) {
    const auto fit = set.fits.find(family);
    if (fit != set.fits.end() && sums.pairs >= kFewest) fit->second.jitter = sums.differences / sums.at_one;
  }
}

// All that the files hold, told apart by their columns.
struct Read {
  Tables tables;
  Observations transfers;  // of these
  std::vector<CsvTable> traces;
  std::vector<BenchTable> benches;
};

Read read_tables(const std::vector<std::filesystem::path>& files, const CalibrationRequest& request,
                 const Setting& setting) {
  expect_different(files);
  Read read;
  bool other_kernels = false;  // timed by others: not their all-to-all
  for (const std::filesystem::path& file : files) {
    if (is_bench_table(file)) {
      read.benches.push_back(read_bench_table(file));
      drop(request.without, read.benches.back());
      add_bench(read.benches.back(), setting, read.tables);
      continue;
    }
    const CsvTable table(file);
    if (is_training_trace(table)) {
      read.traces.push_back(table);
      continue;
    }
    const TableReader& reader = reader_of(table);
    const Observations observations = reader.read(table, setting);
    read.tables.add(observations, reader.source);
    other_kernels = other_kernels || !reader.transfers;
    if (reader.transfers) read.transfers.insert(read.transfers.end(), observations.begin(), observations.end());
  }
  check_benches(read.benches, other_kernels || !read.traces.empty());
  return read;
}

// A training trace is of a GPU at work. Tables of kernels are of a few repetitions on a rested one. What a bench of the
// user's saw, nobody noted.
Clock clock_of(const Read& read) {
  if (!read.traces.empty()) return Clock::sustained;
  return read.benches.empty() ? Clock::burst : Clock::unknown;
}

KernelSet empty_set(const CalibrationRequest& request, const Setting& setting, const Tables& tables, Clock clock) {
  KernelSet set;
  set.clock = clock;
  set.name = request.kernels;
  set.date = setting.library.date;
  set.tiles = setting.library.tiles;
  set.by_name_only = request.by_name_only;
  set.source = fmt::format("least squares on {}", fmt::join(tables.sources, "; "));
  set.fitted_on = setting.machine;
  set.origins.fill(set.name);
  return set;
}

Constants fitted_constants(const std::vector<std::filesystem::path>& files, const Setting& setting,
                           const Observations& observations) {
  Constants constants = solve_tables(files, observations);
  set_own_node_constants(setting.library, constants);
  set_unfitted_overheads(constants);
  for (double& constant : constants) constant = digits(constant, 5);
  return constants;
}

void set_fits(const Observations& observations, const Predictions& fitted, KernelSet& set) {
  set.fits = assess(observations, fitted);
  for (const char* spread : {"jitter", "speed"}) set.fits.erase(spread);  // single differences have no error
  for (auto& [family, fit] : set.fits) {
    fit.kernel_set = set.name;
    fit.tiles = set.tiles;
    if (fit.clock == Clock::unknown) fit.clock = set.clock;
  }
  set_jitters(observations, set);
}

}  // namespace

Calibration calibrate(const std::vector<std::filesystem::path>& files, const CalibrationRequest& request,
                      const Architecture& model, const MachineFacts& machine) {
  if (files.empty()) throw SpecError("there is no table to fit constants to");
  const Setting setting{model, machine, request.kernels, library_of(request.kernels)};
  Read read = read_tables(files, request, setting);
  auto& [tables, transfers, traces, benches] = read;
  Observations& observations = tables.observations;
  if (!request.left_out.empty()) {
    leave_out(request.left_out, observations);
    std::erase_if(transfers, [&](const Observation& o) { return o.fold == request.left_out; });
  }
  give(request, observations);
  for (const CsvTable& trace : traces) {
    add_trace(trace, setting, request.layers, solve_alone(files, setting, transfers), tables);
  }
  Calibration result;
  result.kernels = empty_set(request, setting, tables, clock_of(read));
  result.kernels.constants = fitted_constants(files, setting, observations);
  result.fitted = predict(observations, result.kernels.constants);
  set_fits(observations, result.fitted, result.kernels);
  if (request.cross_validate) {
    result.left_out = predict_left_out(observations);
    for (const auto& [family, fit] : assess(observations, result.left_out)) {
      take_errors(fit, result.kernels.fits[family]);
    }
  }
  result.observations = std::move(observations);
  result.benches = std::move(benches);
  return result;
}

}  // namespace moeline
