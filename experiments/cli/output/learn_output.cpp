#include "experiments/cli/output/learn_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "experiments/report/fields.hpp"
#include "schedules/scenario/choices.hpp"

namespace moeline {
namespace {

// An operator of a trace, with what was learnt of it.
struct OperatorRow {
  const OperatorTimes* times = nullptr;
  double before_us = 0, after_us = 0, factor = 1;
};

double us_of(const std::map<std::string, double>& us, const std::string& name) {
  const auto found = us.find(name);
  return found == us.end() ? 0 : found->second;
}

std::vector<OperatorRow> rows_of(const Learning& learning, const LearntTrace& trace) {
  std::vector<OperatorRow> rows;
  for (const OperatorTimes& times : trace.aligned.operators) {
    rows.push_back(
        {&times, us_of(trace.before, times.name), us_of(trace.after, times.name), factor_of(learning, times)});
  }
  return rows;
}

// What an operator took in a trace.
Fields<OperatorTimes> times_fields() {
  return Fields<OperatorTimes>()
      .add("operator", "its name", [](auto& t) { return t.name; }, {.heading = "operator"})
      .add("module", "of the model", [](auto& t) { return t.module; })
      .add("class", "what it counts as", [](auto& t) { return t.task_class; })
      .add("kernels", "names in the trace; none: others do its work", [](auto& t) { return t.kernels; })
      .add("count", "kernels in the trace's step", [](auto& t) { return t.count; }, {.heading = "kernels"})
      .add("executions", "of the operator in the predicted step", [](auto& t) { return t.executions; },
           {.heading = "times"})
      .add("measured_us", "what they add to the step, us", [](auto& t) { return t.measured_us; },
           {.heading = "measured us", .format = "{:.1f}"});
}

std::string longest_kernel(const OperatorTimes& times) {
  return times.kernels.empty() ? "-" : one_line(times.kernels.front(), 60);
}

Fields<OperatorRow> operator_fields() {
  return Fields<OperatorRow>()
      .all([](auto& r) -> const OperatorTimes& { return *r.times; }, times_fields())
      .add("before_us", "predicted without what was learnt of kernels", &OperatorRow::before_us,
           {.heading = "before us", .format = "{:.1f}"})
      .add("after_us", "predicted with it", &OperatorRow::after_us, {.heading = "after us", .format = "{:.1f}"})
      .add("factor", "by which its kernels take longer than the set below; 0: others do its work", &OperatorRow::factor,
           {.decimals = 4, .heading = "factor", .format = "{:.2f}"})
      .column("as", [](auto& r) { return longest_kernel(*r.times); });
}

Fields<Setting> setting_fields() {
  return Fields<Setting>()
      .add("key", "of the scenario", &Setting::key, {.heading = "setting"})
      .add("value", "as YAML", &Setting::value)
      .column("value", [](auto& s) { return one_line(s.value, 44); }, {.align = 'l'})
      .add("how", "how it is known", [](auto& s) { return name_of(s.how); },
           {.words = words_to(HowKnown::guessed), .heading = "how"})
      .add("why", "from what", &Setting::why, {.heading = "from"})
      .add("tried", "of a guess that is a number: another value", [](auto& s) { return if_any(s.tried); })
      .add("change", "by how much of itself the step grows with it", &Setting::change, {.decimals = 4, .least = kAny})
      .column("what another value would change",
              [](auto& s) { return s.change ? fmt::format("{}: {:+.1f} %", s.tried, 100 * *s.change) : ""; },
              {.align = 'l'});
}

Fields<UnassignedKernel> unassigned_fields() {
  return Fields<UnassignedKernel>()
      .add("kernel", "name", &UnassignedKernel::name)
      .add("count", "in the step", &UnassignedKernel::count, {.heading = "kernels"})
      .add("us", "what they add to the step", &UnassignedKernel::us, {.heading = "us", .format = "{:.1f}"})
      .column("without an operator", [](auto& k) { return one_line(k.name, 90); });
}

Fields<LearntTrace> step_fields() {
  return Fields<LearntTrace>()
      .add("measured", "from the step's first kernel to the end of its last", &LearntTrace::measured_us)
      .add("before", "predicted by the settings that names and annotations tell", &LearntTrace::before_us)
      .add("settled", "with what times tell of settings as well: experts reached", &LearntTrace::settled_us)
      .add("after", "with the learnt kernels", &LearntTrace::after_us);
}

// A trace's part of the report.
struct TraceReport {
  const Learning& learning;
  const LearntTrace& trace;
};

Fields<TraceReport> trace_fields() {
  return Fields<TraceReport>()
      .add("file", "the trace", [](auto& t) { return t.trace.file; })
      .add("assigned", "share of the step's kernel time that has an operator",
           [](auto& t) { return t.trace.aligned.assigned; }, {.decimals = 5, .most = 1})
      .object(
          "step_us", "us of the step", [](auto& t) { return t.trace; }, step_fields())
      .list(
          "settings", "of its scenario, in order", [](auto& t) { return t.trace.settings.all(); }, setting_fields())
      .list(
          "operators", "in the order of a step", [](auto& t) { return rows_of(t.learning, t.trace); },
          operator_fields())
      .list(
          "unassigned", "kernels that no operator has, the longest first",
          [](auto& t) { return t.trace.aligned.unassigned; }, unassigned_fields())
      .add("warnings", "what to know of it", [](auto& t) { return t.trace.warnings; });
}

std::vector<TraceReport> others(const LearnReport& report) {
  std::vector<TraceReport> traces;
  for (std::size_t i = 1; i < report.learning.traces.size(); ++i) {
    traces.push_back({report.learning, report.learning.traces[i]});
  }
  return traces;
}

Fields<LearnReport> learn_fields() {
  return output_fields<LearnReport>()
      .all(
          [](auto& r) {
            return TraceReport{r.learning, r.learning.traces.front()};
          },
          trace_fields())
      .list("further_traces", "those given behind the first", others, trace_fields())
      .add("machine", "that the learnt one extends", [](auto& r) { return r.learning.machine; })
      .add("kernel_set", "its name", [](auto& r) { return r.learning.kernel_set; })
      .add("over", "the set that it multiplies", [](auto& r) { return r.learning.kernels.over; })
      .add("host_us_per_kernel", "of a step that a host launched kernel by kernel",
           [](auto& r) {
             return only_if(r.learning.kernels.host_us_per_kernel > 0, r.learning.kernels.host_us_per_kernel);
           })
      .values("classes", "factor of each class", [](auto& r) {
        std::vector<std::pair<std::string, double>> factors;
        for (const auto& [name, learnt] : r.learning.kernels.classes) factors.emplace_back(name, learnt.factor);
        return factors;
      });
}

std::string against(double predicted, double measured) {
  return fmt::format("{:.0f} us, {:+.1f} %", predicted, 100 * (predicted / measured - 1));
}

// The answer before the tables.
std::string answer(const LearntTrace& trace) {
  const ObservedStep& step = trace.step;
  const std::string kind =
      step.kind.empty() ? "the whole trace" : fmt::format("'{}', the median of {}", step.kind, step.of_kind);
  std::string text =
      fmt::format("{}: {}\nThe step takes {:.0f} us. Predicted from what the trace says of its settings: {}",
                  trace.file, kind, trace.measured_us, against(trace.before_us, trace.measured_us));
  if (trace.settled_us != trace.before_us) {
    text += fmt::format("; with the experts that its tokens reached: {}", against(trace.settled_us, trace.measured_us));
  }
  return text + fmt::format("; with the kernels learnt from it: {}.\n{:.1f} % of the kernels' time has an operator.\n",
                            against(trace.after_us, trace.measured_us), 100 * trace.aligned.assigned);
}

// Furthest from the prediction, by time.
std::string worst(const Learning& learning, const LearntTrace& trace) {
  std::vector<OperatorRow> rows = rows_of(learning, trace);
  std::stable_sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return std::abs(a.before_us - a.times->measured_us) > std::abs(b.before_us - b.times->measured_us);
  });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, rows.size()); ++i) {
    words.push_back(
        fmt::format("{} ({:+.0f} us)", rows[i].times->name, rows[i].before_us - rows[i].times->measured_us));
  }
  return fmt::format("Furthest off before: {}.\n", fmt::join(words, ", "));
}

// Where two traces disagree on an operator.
std::string disagreements(const Learning& learning) {
  std::string text;
  for (const auto& [name, learnt] : learning.kernels.operators) {
    std::vector<std::string> each;
    double least = 1e300, most = 0;
    for (const LearntTrace& trace : learning.traces) {
      for (const OperatorTimes& times : trace.aligned.operators) {
        if (times.name != name || times.simulated_us == 0) continue;
        const double factor = times.measured_us / times.simulated_us;
        least = std::min(least, factor);
        most = std::max(most, factor);
        each.push_back(fmt::format("{:.2f}", factor));
      }
    }
    constexpr double kAlike = 1.15;
    if (each.size() > 1 && most > kAlike * least) {
      text += fmt::format("The traces disagree on {}: {} times its prediction, {:.2f} is taken.\n", name,
                          fmt::join(each, ", "), learnt.factor);
    }
  }
  return text;
}

std::string what_next(const LearnReport& report) {
  const bool decodes = report.learning.kernels.phase == "decode";
  return fmt::format("{0}/scenario.yaml runs it: moeline simulate {0}/scenario.yaml --set workload.{1}\n",
                     report.folder, decodes ? "batch_size=64" : "tokens=4096");
}

}  // namespace

std::string to_json(const LearnReport& report) { return learn_fields().json(report); }

std::string learn_schema() {
  return output_schema("learn", "`moeline learn TRACE -o DIR --format json`: what a trace teaches",
                       learn_fields().described());
}

std::string to_csv(const LearnReport& report) {
  std::string text = "trace,operator,class,kernels,executions,measured_us,before_us,after_us,factor\n";
  for (const LearntTrace& trace : report.learning.traces) {
    for (const OperatorRow& row : rows_of(report.learning, trace)) {
      text += fmt::format("\"{}\",\"{}\",{},{},{},{:.3f},{:.3f},{:.3f},{:.4f}\n", trace.file, row.times->name,
                          row.times->task_class, row.times->count, row.times->executions, row.times->measured_us,
                          row.before_us, row.after_us, row.factor);
    }
  }
  return text;
}

std::string to_table(const LearnReport& report) {
  std::string text;
  for (const LearntTrace& trace : report.learning.traces) {
    text += answer(trace) + worst(report.learning, trace) + "\n" + setting_fields().table(trace.settings.all()).text();
    text += "\n" + operator_fields().table(rows_of(report.learning, trace)).text() + "\n";
    if (!trace.aligned.unassigned.empty()) text += unassigned_fields().table(trace.aligned.unassigned).text() + "\n";
  }
  return text + disagreements(report.learning) + what_next(report);
}

Page learn_page(const LearnReport& report) {
  Page page;
  page.title = "What a trace says of a step";
  for (const LearntTrace& trace : report.learning.traces) {
    TextSection section{.title = trace.file};
    section.lines = {answer(trace), worst(report.learning, trace)};
    section.svg = &trace == &report.learning.traces.front() ? report.picture : "";
    section.tables = {operator_fields().table(rows_of(report.learning, trace)),
                      setting_fields().table(trace.settings.all())};
    if (!trace.aligned.unassigned.empty())
      section.tables.push_back(unassigned_fields().table(trace.aligned.unassigned));
    page.before.push_back(std::move(section));
  }
  page.source_title = "machine.yaml";
  page.source = report.learning.machine_yaml;
  return page;
}

namespace {

// An operator on both sides, as compare has it.
struct ComparedOperator {
  const OperatorTimes* times = nullptr;
  double predicted_us = 0;

  [[nodiscard]] bool is_on_both_sides() const { return times->measured_us > 0 && predicted_us > 0; }
  [[nodiscard]] std::optional<double> error() const {
    return is_on_both_sides() ? std::optional(predicted_us / times->measured_us - 1) : std::nullopt;
  }
};

std::vector<ComparedOperator> compared_operators(const LearntTrace& trace) {
  std::vector<ComparedOperator> operators;
  for (const OperatorTimes& times : trace.aligned.operators) {
    if (times.executions > 0) operators.push_back({&times, us_of(trace.before, times.name)});
  }
  return operators;
}

// Of the operators on both sides, by their measured time.
double mean_abs_error(const LearntTrace& trace) {
  double off = 0, of = 0;
  for (const ComparedOperator& each : compared_operators(trace)) {
    off += std::abs(each.predicted_us - each.times->measured_us);
    of += each.times->measured_us;
  }
  return of > 0 ? off / of : 0;
}

Fields<ComparedOperator> compared_operator_fields() {
  return Fields<ComparedOperator>()
      .all([](auto& o) -> const OperatorTimes& { return *o.times; }, times_fields())
      .add("predicted_us", "the same, predicted", &ComparedOperator::predicted_us,
           {.heading = "predicted us", .format = "{:.1f}"})
      .add("error", "predicted / measured - 1", &ComparedOperator::error,
           {.decimals = 5, .least = kAny, .heading = "error", .format = "+%"})
      .column("as", [](auto& o) { return longest_kernel(*o.times); });
}

Fields<LearntTrace> comparison_fields() {
  const auto error = [](auto& t) { return t.before_us / t.measured_us - 1; };
  return output_fields<LearntTrace>()
      .add("assigned", "share of the step's kernel time that has an operator",
           [](auto& t) { return t.aligned.assigned; }, {.decimals = 5, .most = 1})
      .add("measured_us", "from the step's first kernel to the end of its last", &LearntTrace::measured_us)
      .add("predicted_us", "the same part of the predicted step", &LearntTrace::before_us)
      .add("span_error", "predicted / measured - 1", error, {.decimals = 5, .least = kAny})
      .add("mean_abs_error", "sum of |predicted - measured| over operators, over the sum of measured", mean_abs_error,
           {.decimals = 5})
      .list("operators", "in the order of a step", compared_operators, compared_operator_fields())
      .list(
          "unassigned", "kernels that no operator has, the longest first", [](auto& t) { return t.aligned.unassigned; },
          unassigned_fields())
      .add("warnings", "what to know of it", &LearntTrace::warnings);
}

std::string comparison_answer(const LearntTrace& trace) {
  return fmt::format(
      "{}: the step takes {:.0f} us, predicted {}; operators are off by {:.1f} % of its time, each by itself.\n"
      "{:.1f} % of the kernels' time has an operator.\n",
      trace.file, trace.measured_us, against(trace.before_us, trace.measured_us), 100 * mean_abs_error(trace),
      100 * trace.aligned.assigned);
}

}  // namespace

std::string operators_json(const LearntTrace& trace) { return comparison_fields().json(trace); }

Describe operators_described() { return comparison_fields().described(); }

std::string operators_csv(const LearntTrace& trace) {
  std::string text = "operator,class,kernels,executions,measured_us,predicted_us\n";
  for (const ComparedOperator& each : compared_operators(trace)) {
    text += fmt::format("\"{}\",{},{},{},{:.3f},{:.3f}\n", each.times->name, each.times->task_class, each.times->count,
                        each.times->executions, each.times->measured_us, each.predicted_us);
  }
  return text;
}

std::string operators_table(const LearntTrace& trace) {
  std::string text =
      comparison_answer(trace) + "\n" + compared_operator_fields().table(compared_operators(trace)).text() + "\n";
  if (!trace.aligned.unassigned.empty()) text += unassigned_fields().table(trace.aligned.unassigned).text() + "\n";
  return text;
}

Page operators_page(const LearntTrace& trace, const std::string& picture) {
  TextSection section{.title = trace.file};
  section.lines = {comparison_answer(trace)};
  section.svg = picture;
  section.tables = {compared_operator_fields().table(compared_operators(trace))};
  if (!trace.aligned.unassigned.empty()) section.tables.push_back(unassigned_fields().table(trace.aligned.unassigned));
  Page page;
  page.title = "A predicted step and a measured one, by operators";
  page.before = {std::move(section)};
  return page;
}

std::vector<Picture> layer_pictures(const LearntTrace& trace) {
  return {{"measured: a layer in the middle of the step", lanes_of_phases(trace.measured_layer, {})},
          {"predicted", lanes_of_phases(trace.simulated_layer, {})}};
}

}  // namespace moeline
