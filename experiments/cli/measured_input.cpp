#include "experiments/cli/measured_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/spec.hpp"
#include "experiments/cli/progress_bar.hpp"
#include "moe/module_tree.hpp"
#include "trace/step_windows.hpp"
#include "trace/trace_records.hpp"
#include "trace/window.hpp"

namespace moeline {
namespace {

struct StepRange {
  std::uint32_t first = 0, last = 0;
};

std::optional<StepRange> parse_steps(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = whole_number<std::uint32_t>(std::string_view(text).substr(0, dash));
  const auto last =
      dash == std::string::npos ? first : whole_number<std::uint32_t>(std::string_view(text).substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return StepRange{*first, *last};
}

std::optional<std::int64_t> parse_us(const std::string& text) {
  const std::optional<std::int64_t> ns = ns_from_us(text);
  return ns && *ns >= 0 ? ns : std::nullopt;
}

// What the trace's own events cover, since its first.
struct Extent {
  std::int64_t first_ns = 0, last_start_ns = 0, last_end_ns = 0;
};

Extent extent_of(const Trace& trace) {
  Extent extent{trace.gpu_events.front().start_ns, trace.gpu_events.back().start_ns, 0};
  for (const GpuEvent& event : trace.gpu_events) extent.last_end_ns = std::max(extent.last_end_ns, event.end_ns);
  return extent;
}

double us_of(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

TimeWindow window_of_times(const Trace& trace, const WindowOptions& options, const std::string& file) {
  constexpr std::int64_t kRounding = 1'000;  // as analyze prints times
  const Extent extent = extent_of(trace);
  const std::int64_t from = options.from.empty() ? 0 : *parse_us(options.from);
  const std::int64_t to = options.to.empty() ? extent.last_end_ns - extent.first_ns + 1 : *parse_us(options.to);
  const auto outside = [&](const char* option, const std::string& value) {
    return SpecError(
        file, 0,
        fmt::format("{} {}: its GPU events start from 0 to {:.3f} us after the first, and end by {:.3f} us", option,
                    value, us_of(extent.last_start_ns - extent.first_ns), us_of(extent.last_end_ns - extent.first_ns)));
  };
  if (extent.first_ns + from > extent.last_start_ns) throw outside("--from", options.from);
  if (extent.first_ns + to > extent.last_end_ns + kRounding) throw outside("--to", options.to);
  return {extent.first_ns + from, extent.first_ns + to};
}

TimeWindow window_of_steps(const Trace& trace, const WindowOptions& options, const KernelMap& map,
                           const std::string& file) {
  const StepRange wanted = *parse_steps(options.steps);
  const std::vector<StepWindow> steps = step_windows(trace, interpret(trace, map));
  if (steps.empty()) throw SpecError(file, 0, fmt::format("--steps {}: it has no steps", options.steps));
  StepRange has{trace.steps[steps.front().step].number, 0};
  std::optional<TimeWindow> window;
  for (const StepWindow& step : steps) {
    const std::uint32_t number = trace.steps[step.step].number;
    has = {std::min(has.first, number), std::max(has.last, number)};
    if (number < wanted.first || number > wanted.last) continue;
    if (!window) window = TimeWindow{step.time.start_ns, step.time.end_ns};
    window = TimeWindow{std::min(window->from_ns, step.time.start_ns), std::max(window->to_ns, step.time.end_ns)};
  }
  if (!window || wanted.first < has.first || wanted.last > has.last) {
    throw SpecError(file, 0, fmt::format("--steps {}: it has steps {} to {}", options.steps, has.first, has.last));
  }
  return *window;
}

}  // namespace

bool has_window(const WindowOptions& options) {
  return !(options.steps.empty() && options.from.empty() && options.to.empty());
}

std::vector<Option> window_options(WindowOptions& options) {
  return {
      {"--steps", &options.steps, "only steps A-B of a trace, numbered as analyze lists them", NotEmpty{}},
      {"--from", &options.from, "only GPU events of a trace that start at this time: us since its first", NotEmpty{}},
      {"--to", &options.to, "only those that start before this time", NotEmpty{}}};
}

void check_window(const WindowOptions& options) {
  if (!options.steps.empty() && !parse_steps(options.steps)) {
    throw UsageError(fmt::format("--steps '{}': write A-B, such as 3-5", options.steps));
  }
  for (const auto& [option, text] : {std::pair("--from", options.from), std::pair("--to", options.to)}) {
    if (text.empty() || parse_us(text)) continue;
    throw UsageError(fmt::format("{} '{}': write a time in us, such as 1500", option, text));
  }
  if (!options.steps.empty() && !(options.from.empty() && options.to.empty())) {
    throw UsageError("--steps: with --from or --to there are two windows; give one");
  }
  if (!options.from.empty() && !options.to.empty() && *parse_us(options.from) >= *parse_us(options.to)) {
    throw UsageError(fmt::format("--to {}: is not after --from {}", options.to, options.from));
  }
}

Trace in_window(Trace trace, const WindowOptions& options, const KernelMap& map, const std::string& file) {
  if (!has_window(options)) return trace;
  const TimeWindow window =
      options.steps.empty() ? window_of_times(trace, options, file) : window_of_steps(trace, options, map, file);
  Trace part = within(std::move(trace), window);
  if (!part.gpu_events.empty()) return part;
  throw SpecError(file, 0, fmt::format("--from {}, --to {}: no GPU event starts there", options.from, options.to));
}

bool is_scenario(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || is_stdin(path) || given_text(path);
}

std::vector<Option> kernel_map_options(MeasuredInput& input) {
  return {{"--map", &input.map, "YAML file: kernel patterns for phases and classes (model/measured/README.md)"},
          {"--comm-pattern", &input.communication,
           "regular expression: kernels that communicate, instead of NCCL, DeepEP, NVSHMEM, pplx"}};
}

std::vector<Option> measured_input_options(MeasuredInput& input) {
  return joined({{required({"trace", &input.path,
                            "profiler trace: Kineto's (.json, .json.gz), or Nsight Systems' export (.sqlite)"})},
                 kernel_map_options(input),
                 window_options(input.window)});
}

namespace {

void check_modules(const std::string& path) {
  const Spec modules = Spec::load(path).map_or_empty("modules");
  for (const std::string& name : modules.keys()) {
    try {
      (void)parent_of(name);
    } catch (const SpecError& error) {
      throw modules.error(name, error.what());
    }
  }
}

KernelMap load_checked(const std::string& path) {
  KernelMap map = load_kernel_map(path);
  check_modules(path);
  return map;
}

}  // namespace

KernelMap kernel_map_of(const MeasuredInput& input) {
  KernelMap map = input.map.empty() ? KernelMap{} : load_checked(input.map);
  if (input.communication.empty()) return map;
  map.communication = input.communication;
  try {
    (void)KernelClassifier({}, map.communication);
  } catch (const SpecError& error) {
    throw SpecError(std::string("--comm-pattern: ") + error.what());
  }
  return map;
}

Trace load_trace(const MeasuredInput& input, const KernelMap& map, const Console& console) {
  check_window(input.window);
  Trace trace = with_progress(console, [&](const Progress& progress) { return read_trace(input.path, progress); });
  return in_window(std::move(trace), input.window, map, input.path);
}

Measured load_measured(const MeasuredInput& input, const Console& console) {
  const KernelMap map = kernel_map_of(input);
  return on_behalf_of(input.path, [&] { return understand(load_trace(input, map, console), map); });
}

}  // namespace moeline
