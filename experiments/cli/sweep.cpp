// moeline sweep: many scenarios at once, into one table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/parallel.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/sweep_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "experiments/sweep/run_study.hpp"

namespace moeline {
namespace {

struct SweepOptions {
  std::string study;
  std::string output;
  std::string html;
  std::vector<std::string> merge;
  std::string format = "table";
  std::size_t workers = 0;  // 0: as many as there are cores
  bool resume = false;
  bool no_progress = false;
  bool force = false;
};

constexpr const char* kSweepDefinitions = R"(STUDY: a YAML file; experiments/sweep/README.md has its keys.
Every finished point is a row of the SQLite file -o (by default STUDY's name with .sqlite) at once; a killed sweep goes on
with --resume. A point that fails is a row with its reason. The table is the same whatever the number of workers.
A table that is there is continued or left alone, never written over. That of a study on stdin without -o is in memory alone.
--html writes the table as one page of plots that needs no network: the Pareto front of two metrics, lines, a heat map, and
whatever else is chosen there. With --resume it does so of a finished table, without simulating again.
Under a Slurm job array, srun or mpirun each process takes its share of the points, writes a file of its own,
NAME.INDEX-of-COUNT.sqlite, and prints no table; --merge unites the files: all of them, or none where one is bad.
Metrics are those of `moeline simulate`; one that a point does not have is left empty.
Of a study with alternatives (an axis of words, or axes that go together) along an axis of numbers the table ends with which is
best where, by tokens_per_s_per_gpu or the first metric with a direction; decide finds where between two points that turns.)";

// SQLite's own name for it.
constexpr const char* kInMemory = ":memory:";

// One that comes through stdin, or is given by a program, has none.
bool has_file(const Study& study) { return !is_stdin(study.file) && !given_text(study.file); }

std::filesystem::path output_of(const SweepOptions& options, const Study& study, const Share& share) {
  if (options.output.empty() && !has_file(study)) return kInMemory;
  std::filesystem::path path = options.output.empty() ? study.file.stem().string() + ".sqlite" : options.output;
  if (share.count == 1) return path;
  return path.replace_extension(fmt::format("{}-of-{}.sqlite", share.index, share.count));
}

std::string text_of(const Study& study, const std::vector<PointResult>& results, const std::string& format) {
  if (format == "json") return sweep_json(study, results);
  return format == "csv" ? sweep_csv(study, results) : sweep_table(study, results);
}

// Refuses before the simulation what would fail after it.
void check_page(const SweepOptions& options, const Study& study, const Share& share) {
  const std::filesystem::path table = output_of(options, study, share);
  std::vector<std::string> inputs = options.merge;
  inputs.insert(inputs.end(), {options.study, study.scenario.string()});
  check_output({"--html", options.html, FileKind::page}, inputs, options.force);
  const auto place = [](const std::filesystem::path& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
  };
  if (place(options.html) == place(table)) throw UsageError("--html is the file of the table, too");
  if (share.count > 1) {
    throw UsageError("--html: one process has a share of the table; with --merge it is whole");
  }
  if (study.points.size() > kMostPagePoints) {
    throw SpecError(options.study, 0,
                    fmt::format("has {} points, and a page holds at most {}: sweep without --html", study.points.size(),
                                kMostPagePoints));
  }
}

// What many processes would print at once is nobody's table, and the exit code of one would end the others under
// mpirun.
int end_share(const Study& study, const Store& store, const Console& console) {
  const std::vector<bool> stored = store.stored();
  console.note(fmt::format("{}: {} of {} points; --merge unites the shares", store.file().string(),
                           std::count(stored.begin(), stored.end(), true), study.points.size()));
  return kDone;
}

// Its name tells what a file holds: a table called x.csv would be taken for text.
void check_table_name(const std::string& table) {
  const std::vector<std::string> suffixes = {".sqlite", ".sqlite3", ".db"};
  if (table.empty() || known_name(std::filesystem::path(table).extension().string(), suffixes)) return;
  throw UsageError(
      fmt::format("-o {}: the table is an SQLite file, whose name ends in {}; as CSV or JSON it goes to stdout: "
                  "--format csv > FILE",
                  table, fmt::join(suffixes, ", ")));
}

int sweep_command(const SweepOptions& options, const Console& console) {
  check_table_name(options.output);
  const Study study = load_study(options.study);
  const Share share = options.merge.empty() ? share_of_environment() : Share{};
  std::optional<PageTemplate> page_template;
  if (!options.html.empty()) {
    check_page(options, study, share);
    page_template = load_page_template();
  }
  const std::vector<PointResult> united = read_tables(options.merge, study);  // a bad file is no reason to write one
  if (options.merge.empty()) check_loads(study);
  const auto mode = options.resume ? Store::Mode::resume : Store::Mode::create;
  Store store(output_of(options, study, share), study, mode);
  store.add(united);
  if (options.merge.empty()) {
    const std::size_t workers = options.workers > 0 ? options.workers : cores();
    with_progress(
        console, [&](const Progress& progress) { run_study(study, share, workers, store, progress); },
        !options.no_progress);
  }
  if (share.count > 1) return end_share(study, store, console);
  const std::vector<PointResult> results = store.results();
  if (page_template) write_text(options.html, to_html(sweep_page(study, results), *page_template));
  console.print(text_of(study, results, options.format));
  const auto failed =
      std::count_if(results.begin(), results.end(), [](const PointResult& r) { return !r.failure.empty(); });
  console.note(fmt::format("{}: {} of {} points, {} failed", store.file().string(), results.size(), study.points.size(),
                           failed));
  return failed == static_cast<std::ptrdiff_t>(results.size()) ? kInfeasible : kDone;
}

}  // namespace

Command make_sweep(Console& console) {
  auto options = std::make_shared<SweepOptions>();
  return {.name = "sweep",
          .about = "simulate every point of a study, on all cores",
          .options = {required({"study", &options->study, "study file (YAML)"}),
                      {"-o,--output", &options->output, "the SQLite file of the table: NAME.sqlite, .sqlite3 or .db"},
                      {"--html", &options->html, "a page of plots of the table", NotEmpty{}},
                      {"--resume", &options->resume, "go on with the points that the file lacks"},
                      {"--merge", &options->merge, "unite these files of the study instead of simulating"},
                      force_option(options->force),
                      workers_option(options->workers),
                      format_option(options->format, {"table", "json", "csv"}),
                      {"--no-progress", &options->no_progress, "no progress bar, which only a terminal gets anyway"}},
          .footer = kSweepDefinitions,
          .run = [options, &console] { console.exit_code = sweep_command(*options, console); }};
}

}  // namespace moeline
