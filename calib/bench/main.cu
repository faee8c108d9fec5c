// calib_bench: measures this machine's kernels and writes the table of calib/schema.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "csv.hpp"
#include "facts.hpp"

namespace moeline::bench {
namespace {

enum Exit { ok = 0, failed_case = 1, usage = 2, no_device = 3 };

constexpr const char* kUsage =
    "calib_bench [--preset quick|full] [--only KEY[,KEY]...] [--list] [-o FILE]\n"
    "  --preset  quick: meant to take under 2 minutes on an H200; full (the default): under 9\n"
    "  --only    these facts alone, and launch, without which moeline cannot use a table\n"
    "  --list    the facts' keys\n"
    "  -o        FILE.part while it runs, FILE at the end; without it, standard output\n"
    "exit code: 0 all measured or skipped with a reason, 1 a result was wrong or a call failed,\n"
    "           2 bad options, 3 no CUDA device or the output cannot be written\n";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  Preset preset = Preset::full;
  std::vector<std::string> only;
  std::string output;
  bool list = false;
  bool help = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Preset preset_named(const std::string& name) {
  if (name == "quick") return Preset::quick;
  if (name == "full") return Preset::full;
  throw UsageError("no preset '" + name + "': quick or full");
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size() || arguments[i + 1].empty()) throw UsageError(name + " needs a value");
      return arguments[++i];
    };
    if (name == "--preset")
      options.preset = preset_named(value());
    else if (name == "--only")
      options.only = split(value());
    else if (name == "-o")
      options.output = value();
    else if (name == "--list")
      options.list = true;
    else if (name == "--help" || name == "-h")
      options.help = true;
    else
      throw UsageError("unknown option " + name);
  }
  return options;
}

/// In the order of `facts`, whatever the order of the names. Every time of a kernel contains the gap that `launch`
/// measures, so a table without it would be refused: it is always measured.
std::vector<Fact> chosen(const std::vector<Fact>& facts, const std::vector<std::string>& only) {
  if (only.empty()) return facts;
  const auto is_chosen = [&](const std::string& key) {
    return key == "launch" || std::find(only.begin(), only.end(), key) != only.end();
  };
  for (const auto& name : only)
    if (std::none_of(facts.begin(), facts.end(), [&](const Fact& f) { return f.key == name; }))
      throw UsageError("no fact '" + name + "': see --list");
  std::vector<Fact> result;
  for (const auto& fact : facts)
    if (is_chosen(fact.key)) result.push_back(fact);
  return result;
}

Header header_of(const Device& device, Preset preset) {
  char started[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {device.name,
          device.sms,
          std::to_string(device.major) + "." + std::to_string(device.minor),
          device.driver,
          device.toolkit,
          device.cublas,
          device.sm_clock_mhz,
          device.memory_clock_mhz,
          MOELINE_COMMIT,
          preset == Preset::quick ? "quick" : "full",
          started};
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Measures facts one after another. A case that fails costs itself alone, unless it takes the device with it.
class Runner {
 public:
  Runner(const Bench& bench, Preset preset, TableWriter& table) : bench_(bench), preset_(preset), table_(table) {}

  void measure(const Fact& fact) {
    const auto begin = std::chrono::steady_clock::now();
    const long measured_before = measured_, skipped_before = skipped_;
    const std::string reason = fact.cannot_run(bench_.device);
    for (const Case& c : fact.cases(bench_.device, preset_))
      if (reason.empty())
        measure(fact, c);
      else
        skip(fact, c, reason);
    std::fprintf(stderr, "%-20s %4ld measured %4ld skipped %7.1f s\n", fact.key.c_str(), measured_ - measured_before,
                 skipped_ - skipped_before, seconds_since(begin));
  }

  [[nodiscard]] bool any_failed() const { return failed_; }

 private:
  void measure(const Fact& fact, const Case& c) {
    if (lost_) return skip(fact, c, "the device was lost in an earlier case");
    try {
      table_.measured(fact.key, c, fact.run(bench_, c));
      ++measured_;
    } catch (const Skip& reason) {
      skip(fact, c, reason.what());
      look_at_device();
    } catch (const std::exception& error) {
      failed_ = true;
      std::fprintf(stderr, "%s %s: %s\n", fact.key.c_str(), to_string(c).c_str(), error.what());
      skip(fact, c, error.what());
      look_at_device();
    }
  }

  /// After a fault on the device no call works any more.
  void look_at_device() {
    lost_ = cudaDeviceSynchronize() != cudaSuccess;
    failed_ |= lost_;
  }

  void skip(const Fact& fact, const Case& c, const std::string& reason) {
    table_.skipped(fact.key, c, reason);
    ++skipped_;
  }

  const Bench& bench_;
  Preset preset_;
  TableWriter& table_;
  long measured_ = 0, skipped_ = 0;
  bool failed_ = false, lost_ = false;
};

bool measure_all(const std::vector<Fact>& facts, Preset preset, std::ostream& out) {
  const Bench bench = open_bench();
  std::fprintf(stderr, "%s, %d SMs at %d MHz under load, timer in steps of %d ns, driver %s\n",
               bench.device.name.c_str(), bench.device.sms, bench.device.sm_clock_mhz, bench.device.timer_tick_ns,
               bench.device.driver.c_str());
  const auto begin = std::chrono::steady_clock::now();
  TableWriter table(out, header_of(bench.device, preset));
  Runner runner(bench, preset, table);
  for (const Fact& fact : facts) {
    runner.measure(fact);
    out.flush();
  }
  table.finish();
  std::fprintf(stderr, "%.1f s\n", seconds_since(begin));
  return !runner.any_failed();
}

/// A run that is cut off leaves FILE.part, and never a FILE that looks whole.
bool measure_into(const std::vector<Fact>& facts, const Options& options) {
  if (options.output.empty()) {
    const bool all_good = measure_all(facts, options.preset, std::cout);
    if (!std::cout) throw OutputError("cannot write standard output");
    return all_good;
  }
  const std::string part = options.output + ".part";
  std::ofstream out(part);
  if (!out) throw OutputError("cannot write " + part);
  const bool all_good = measure_all(facts, options.preset, out);
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(part, options.output, error);
  if (!out || error) throw OutputError("cannot write " + options.output);
  return all_good;
}

/// Of what others set for their programs: training frameworks let all streams share one queue of the device, which
/// would run neighbours one after another. The driver reads this when it is first called.
void own_environment() {
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::atoi(blocking) != 0)
    throw UsageError("CUDA_LAUNCH_BLOCKING is set: nothing could be queued before it runs; unset it");
}

int run(const Options& options) {
  if (options.help) {
    std::fputs(kUsage, stdout);
    return ok;
  }
  const auto facts = chosen(all_facts(), options.only);
  if (options.list) {
    for (const auto& fact : facts) std::puts(fact.key.c_str());
    return ok;
  }
  own_environment();
  int devices = 0;
  if (const auto status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "calib_bench: no CUDA device: %s\n", cudaGetErrorString(status));
    return no_device;
  }
  return measure_into(facts, options) ? ok : failed_case;
}

}  // namespace
}  // namespace moeline::bench

int main(int argc, char** argv) {
  using namespace moeline::bench;
  try {
    return run(parse({argv + 1, argv + argc}));
  } catch (const UsageError& error) {
    std::fprintf(stderr, "calib_bench: %s\n%s", error.what(), kUsage);
    return usage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "calib_bench: %s\n", error.what());
    return no_device;
  }
}
