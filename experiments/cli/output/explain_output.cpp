#include "experiments/cli/output/explain_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/report/fields.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

std::string of_span(Time time, Time span) { return fmt::format("{:.1f} %", 100 * ratio(time, span)); }

std::string reason_table(const Explanation& e) {
  std::array<Time, kPathReasons> times{};
  for (const PathStep& step : e.path) times[static_cast<std::size_t>(step.reason)] += step.end - step.start;
  TextTable table("lrr");
  for (std::size_t i = 0; i < kPathReasons; ++i) {
    if (times[i] > Time::zero()) {
      table.row({name_of(static_cast<PathReason>(i)), us_text(times[i]), of_span(times[i], e.span)});
    }
  }
  return table.text("  ");
}

// The largest, until they make up nearly all.
std::string blame_table(const Explanation& e) {
  constexpr double kNearlyAll = 0.95;
  TextTable table("lrr");
  Time sum{};
  for (const Blame& blame : e.blame) {
    table.row({title_of(blame), us_text(blame.time), of_span(blame.time, e.span)});
    sum += blame.time;
    if (ratio(sum, e.span) > kNearlyAll) break;
  }
  return table.text("  ") + fmt::format("  ... the rest {}\n", us_text(e.span - sum));
}

// What to optimise next.
std::string sensitivity_table(const Explanation& e) {
  TextTable table("lrrrrrl");
  table.row(sensitivity_head());
  const std::vector<std::vector<std::string>> rows = sensitivity_rows(e.sensitivities);
  for (const std::vector<std::string>& row : rows) table.row(row);
  std::string text = table.text("  ");
  if (text.find('~') != std::string::npos) {
    text += "  ~: gains and elasticity disagree, since neighbours slow each other down or paths tie: simulate it\n";
  }
  return text + fmt::format("  {} of {} items; JSON has all elasticities\n", rows.size(), e.sensitivities.size());
}

std::string bound_table(const Explanation& e) {
  TextTable table("lrr");
  for (const Bound& bound : e.bounds) table.row({bound.what, us_text(bound.time), of_span(bound.time, e.span)});
  return table.text("  ");
}

std::string idle_table(const Explanation& e) {
  constexpr std::size_t kShown = 8;
  Time sum{}, shown{};
  for (const Blame& blame : e.idle) sum += blame.time;
  TextTable table("lrr");
  for (std::size_t i = 0; i < std::min(kShown, e.idle.size()); ++i) {
    table.row({title_of(e.idle[i]), us_text(e.idle[i].time), of_span(e.idle[i].time, e.span)});
    shown += e.idle[i].time;
  }
  return fmt::format("\nwhy {0} is not all it takes: {1} us of its work, and {2} us without, while the end waits for\n",
                     e.idle_of, us_text(e.span - sum), us_text(sum)) +
         table.text("  ") + fmt::format("  ... the rest {}\n", us_text(sum - shown));
}

// Where the next path lies.
std::string alternative_table(const Explanation& e) {
  constexpr std::size_t kShown = 5;
  TextTable table("llr");
  for (std::size_t i = 0; i < std::min(kShown, e.alternatives.size()); ++i) {
    const Alternative& a = e.alternatives[i];
    table.row({a.phase, a.kernel, us_text(a.slack)});
  }
  return table.text("  ");
}

std::string longest_table(const Explanation& e, const TaskGraph& graph) {
  constexpr std::size_t kShown = 10;
  std::vector<PathStep> longest = e.path;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const PathStep& a, const PathStep& b) { return a.end - a.start > b.end - b.start; });
  longest.resize(std::min(longest.size(), kShown));
  TextTable table("rrlll");
  table.row({"at us", "us", "phase", "kernel", "why"});
  for (const PathStep& step : longest) {
    table.row({us_text(step.start - e.start), us_text(step.end - step.start), phase_of(step, graph),
               short_kernel_name(graph.task_name(step.task)), name_of(step.reason)});
  }
  return table.text("  ");
}

// All of what explain has to say.
struct Explained {
  const Explanation& explanation;
  const std::optional<ModuleTable>& modules;
  const std::optional<StepKernels>& kernels;
};

Fields<Blame> blame_fields(int decimals) {
  return Fields<Blame>()
      .add("what", "phase and kernels, and why", [](auto& b) { return title_of(b); })
      .add("us", "us", &Blame::time, {.decimals = decimals});
}

Fields<Bound> bound_fields() {
  return Fields<Bound>().add("what", "phase and kernels, and why", &Bound::what).add("us", "us", &Bound::time);
}

// `graph`: of the steps.
Fields<PathStep> path_fields(Time start, const TaskGraph* graph) {
  return Fields<PathStep>()
      .add("phase", "phase; empty where there is none", [=](auto& s) { return phase_of(s, *graph); })
      .add("kernel", "kernel", [=](auto& s) { return short_kernel_name(graph->task_name(s.task)); })
      .add("stream", "stream of a rank", [=](auto& s) { return graph->streams()[graph->label(s.task).stream].id; },
           {.least = kAny})
      .add("start_us", "us from the begin", [=](auto& s) { return s.start - start; }, {.decimals = 6})
      .add("us", "us", [](auto& s) { return s.end - s.start; }, {.decimals = 6})
      .add("why", "why this time passes", [](auto& s) { return name_of(s.reason); },
           {.words = words_to(PathReason::unexplained)});
}

Fields<SpanSensitivity> sensitivity_fields() {
  const As share{.decimals = 6, .least = kAny};
  const auto gains = Fields<Gains>()
                         .add("gain_10", "share of the span saved with a tenth less of its time", &Gains::tenth, share)
                         .add("gain_50", "with half of it", &Gains::half, share)
                         .add("gain_100", "with none of it", &Gains::all, share);
  return Fields<SpanSensitivity>()
      .add("what", "a class of kernels, a link, the SMs", &SpanSensitivity::what)
      .add("elasticity", "d ln span / d ln of its time or capacity", &SpanSensitivity::elasticity, share)
      .all(&SpanSensitivity::gains, gains)
      .add("knee", "share of its time after whose removal hardly anything more is gained", &SpanSensitivity::knee,
           {.decimals = 4})
      .add("then", "what the end waits for longer once the item takes no time",
           [](auto& s) { return s.gains ? std::optional(s.gains->then) : std::nullopt; });
}

Fields<Alternative> alternative_fields() {
  return Fields<Alternative>()
      .add("phase", "phase", &Alternative::phase)
      .add("kernel", "kernel", &Alternative::kernel)
      .add("slack_us", "us", &Alternative::slack);
}

Fields<Explanation> explanation_fields(Time start, const TaskGraph* graph) {
  const auto period =
      Fields<Period>()
          .add("period_us", "us that a layer takes at least, where layers repeat", &Period::layer)
          .add("period_layers", "layers that are alike", [](auto& p) { return static_cast<double>(p.layers); });
  return Fields<Explanation>()
      .add("span_us", "us from first start to last end", &Explanation::span)
      .add("schedule", "of a scenario", [](auto& e) { return if_any(e.schedule); })
      .list("blame", "what the end waited for, the largest first; sums to the span", &Explanation::blame,
            blame_fields(6))
      .list("critical_path", "the tasks that the end waited for", &Explanation::path, path_fields(start, graph))
      .list("sensitivities", "what would shorten it", &Explanation::sensitivities, sensitivity_fields())
      .list("bounds", "with these kernels in this order it takes no less than", &Explanation::bounds, bound_fields())
      .add("bound_us", "us, the largest of them", [](auto& e) { return e.bounds.front().time; })
      .add("idle_of", "the busiest resource", [](auto& e) { return if_any(e.idle_of); })
      .list(
          "idle", "why it is not all it takes: what the end waited for without its work",
          [](auto& e) { return e.idle_of.empty() ? nullptr : &e.idle; }, blame_fields(3))
      .list("alternatives", "off that path, and on it if they took so much longer", &Explanation::alternatives,
            alternative_fields())
      .all(&Explanation::period, period)
      .all(&Explanation::known, known_fields());
}

constexpr double kZeroShare = 5e-4;  // what is less is 0.0 %

// What speaks against the price, and what chance adds to it.
std::string note_of_kernel(const StepKernel& kernel) {
  std::string note = note_of(kernel.price);
  if (std::abs(kernel.by_chance()) < kZeroShare) return note;
  if (!note.empty()) note += ", ";
  return note + fmt::format("by chance {}", signed_percent(kernel.by_chance()));
}

Fields<StepKernel> kernel_columns(double all_us) {
  return Fields<StepKernel>()
      .column("us alone", &StepKernel::us, {.format = "{:.1f}"})
      .column("of all", [=](auto& k) { return k.us / all_us; }, {.format = "%"})
      .column("times", [](auto& k) { return std::round(k.times * 10) / 10; }, {.format = "{:.10g}"})
      .column("us each", &StepKernel::each_us, {.format = "{:.2f}"})
      .column("SMs", [](auto& k) { return k.price.sms; })
      .column("TFLOP/s", [](auto& k) { return k.flops > 0 ? fmt::format("{:.0f}", k.flops / k.each_us() / 1e6) : "-"; },
              {.align = 'r'})
      .column("HBM", [](auto& k) { return k.price.hbm_GBps; }, {.format = "{:.0f}"})
      .column("bound by", [](auto& k) { return k.price.bound_by; })
      .column("provenance", [](auto& k) { return name_of(k.price.provenance); })
      .column("kernel set", [](auto& k) { return k.price.kernel_set; })
      .column("note", note_of_kernel)
      .column("kernel", &StepKernel::name)
      .column("op", [](auto& k) { return k.op.value_or("-"); });
}

Fields<StepKernel> kernel_fields() {
  return Fields<StepKernel>()
      .add("kernel", "its name in the trace", &StepKernel::name)
      .add("module", "that it is part of", &StepKernel::module)
      .add("times", "in the step", &StepKernel::times, {.decimals = 4})
      .add("us", "us of all of them, each alone", &StepKernel::us)
      .add("each_us", "us of one alone", &StepKernel::each_us)
      .add("sms", "SMs that it takes", [](auto& k) { return k.price.sms; })
      .all(&StepKernel::price, provenance_fields(false))
      .add("op", "what `moeline price` charges op_us for; null where no OP can say it",
           [](auto& k) { return or_null(k.op); })
      .add("op_us", "us of one alone, of drawn loads at their mean", [](auto& k) { return k.price.solo_us; });
}

Fields<StepKernels> kernels_fields() {
  return Fields<StepKernels>()
      .add("kernels_us", "with --kernels: us of one GPU's kernels, each alone on the mean GPU", &StepKernels::all_us)
      .add("kernels_on_this_gpu_us", "the same on the GPU that is simulated, which may be a slow one",
           &StepKernels::on_this_us)
      .list("kernels", "with --kernels: those of one GPU's step, equal ones as one", &StepKernels::kernels,
            kernel_fields());
}

// As BoundBy has them.
const std::vector<std::string> kBoundWords = {"compute", "memory", "communication", "launch", "unknown"};

double us_of(const ModuleRow& row, ModelPass pass) { return row.use.us[static_cast<std::size_t>(pass)]; }

// "b_proj" of "attention/b_proj", as far to the right as it is deep.
std::string title_of_module(const ModuleRow& row) {
  return std::string(2 * static_cast<std::size_t>(row.depth), ' ') + row.module.substr(row.module.rfind('/') + 1);
}

std::optional<std::string> bound_of(const ModuleRow& row) {
  const std::optional<BoundBy> bound = row.bound_by();
  return bound ? std::optional(kBoundWords[static_cast<std::size_t>(*bound)]) : std::nullopt;
}

// "-" for nothing, "?" for what is not known.
std::string millions(const std::optional<double>& value) {
  if (!value) return "?";
  return *value == 0 ? "-" : fmt::format("{:.1f}", *value / 1e6);
}

std::optional<double> flops_of_row(const ModuleRow& row) { return only_if(row.knows_flops, row.use.flops()); }

Fields<ModuleRow> module_columns(double span_us) {
  Fields<ModuleRow> fields;
  const auto number = [&](const char* heading, auto text) { fields.column(heading, text, {.align = 'r'}); };
  const auto time = [&](const char* heading, auto us) {
    number(heading, [=](const ModuleRow& row) { return us(row) == 0 ? "-" : fmt::format("{:.1f}", us(row)); });
  };
  fields.column("module", title_of_module);
  number("parameters, M", [](const ModuleRow& row) { return millions(row.parameters); });
  number("GMAC", [](const ModuleRow& row) { return millions(only_if(row.knows_flops, row.use.flops() / 2e3)); });
  number("GFLOP", [](const ModuleRow& row) { return millions(only_if(row.knows_flops, row.use.flops() / 1e3)); });
  time("forward us", [](const ModuleRow& row) { return us_of(row, ModelPass::forward); });
  time("backward us", [](const ModuleRow& row) { return us_of(row, ModelPass::backward); });
  time("recompute us", [](const ModuleRow& row) { return us_of(row, ModelPass::recomputation); });
  time("all us", [](const ModuleRow& row) { return row.use.total_us(); });
  number("of step", [=](const ModuleRow& row) { return percent(row.use.total_us() / span_us); });
  time("TFLOP/s", [](const ModuleRow& row) { return std::max(0.0, row.tflops().value_or(0)); });
  fields.column("bound by", [](const ModuleRow& row) { return bound_of(row).value_or("-"); });
  return fields;
}

// Of a trace nothing is known of what a kernel would have taken alone.
Fields<ModuleRow> module_row_fields(double span_us, bool is_measured) {
  const As whole{.decimals = 0};
  return Fields<ModuleRow>()
      .add("module", "its path in the tree", &ModuleRow::module)
      .add("parent", "the module that holds it", [](auto& r) { return or_null(if_any(r.parent)); })
      .add("depth", "0: the whole model", &ModuleRow::depth)
      .add(
          "parameters", "of the whole model", [](auto& r) { return or_null(r.parameters); }, whole)
      .add(
          "macs", "multiply-adds, half of flops",
          [](auto& r) { return or_null(only_if(r.knows_flops, r.use.flops() / 2)); }, whole)
      .add(
          "flops", "of matrix products, forward and backward", [](auto& r) { return or_null(flops_of_row(r)); }, whole)
      .add(
          "forward_flops", "of the forward pass", [](auto& r) { return only_if(r.knows_flops, r.use.forward_flops); },
          whole)
      .add(
          "backward_flops", "of the backward pass",
          [](auto& r) { return only_if(r.knows_flops, r.use.backward_flops); }, whole)
      .add(
          "recomputed_flops", "of recomputation, which is not in flops",
          [](auto& r) { return only_if(r.knows_flops, r.use.recomputed_flops); }, whole)
      .add("us", "us of its kernels", [](auto& r) { return r.use.total_us(); })
      .add("forward_us", "of the forward pass", [](auto& r) { return us_of(r, ModelPass::forward); })
      .add("backward_us", "of the backward pass", [](auto& r) { return us_of(r, ModelPass::backward); })
      .add("recomputation_us", "of recomputation", [](auto& r) { return us_of(r, ModelPass::recomputation); })
      .add("alone_us", "us of its kernels alone, of a scenario",
           [=](auto& r) { return only_if(!is_measured, r.use.alone_us); })
      .add("gap_us", "us of the launch gaps before them, of a scenario",
           [=](auto& r) { return only_if(!is_measured, r.use.gap_us); })
      .add("tflops", "TFLOP/s", [](auto& r) { return or_null(r.tflops()); })
      .add("share", "us over the step", [=](auto& r) { return span_us > 0 ? r.use.total_us() / span_us : 0; },
           {.decimals = 5})
      .add("bound_by", "what most of its time goes by", [](auto& r) { return or_null(bound_of(r)); },
           {.words = kBoundWords});
}

Fields<ModuleTable> modules_fields(double span_us, bool is_measured) {
  return Fields<ModuleTable>()
      .add("tokens_per_gpu", "tokens of one GPU that the modules below see", &ModuleTable::tokens)
      .list("modules", "the tree of the model's modules as one GPU runs them", &ModuleTable::rows,
            module_row_fields(span_us, is_measured));
}

Fields<Explained> explain_fields(Time start, const TaskGraph* graph, double span_us, bool is_measured) {
  return output_fields<Explained>()
      .all([](auto& e) -> const Explanation& { return e.explanation; }, explanation_fields(start, graph))
      .all([](auto& e) { return e.modules ? &*e.modules : nullptr; }, modules_fields(span_us, is_measured))
      .all([](auto& e) { return e.kernels ? &*e.kernels : nullptr; }, kernels_fields());
}

// What would help where the end waits for the host.
std::string host_line(const Explanation& e) {
  constexpr double kBinds = 0.1;
  const auto is_host = [](const SpanSensitivity& s) { return s.what == "class:host" || s.what == "host"; };
  const auto host = std::ranges::find_if(e.sensitivities, is_host);
  if (host == e.sensitivities.end() || host->elasticity < kBinds || !host->gains) return "";
  return fmt::format(
      "the host binds: a processor twice as fast would save {}, CUDA graphs (launch: graph) {} at most; a larger "
      "micro-batch or batch waits for it as long, for more tokens\n",
      percent(host->gains->half), percent(host->gains->all));
}

}  // namespace

std::string to_json(const Explanation& e, const TaskGraph& graph, const std::optional<ModuleTable>& modules,
                    const std::optional<StepKernels>& kernels) {
  const bool is_measured = modules && modules->is_measured;
  return explain_fields(e.start, &graph, modules ? modules->span_us : 0, is_measured).json({e, modules, kernels});
}

std::string explain_schema() {
  return output_schema("explain", "`moeline explain SCENARIO|TRACE --format json`: why it takes as long as it does",
                       explain_fields({}, nullptr, 0, false).described());
}

std::string to_table(const std::string& title, const Explanation& e, const TaskGraph& graph) {
  std::string text = fmt::format("{}: {} us\n", title, us_text(e.span));
  text += "\nalong the tasks that the end waited for, us\n" + reason_table(e);
  text += "\nwhat they are, the largest first\n" + blame_table(e);
  if (!e.sensitivities.empty()) {
    text += "\nwhat would shorten it: share of the span saved with so much less of its time\n" + sensitivity_table(e);
    text += host_line(e);
  }
  text += "\nwith these kernels in this order it takes no less than\n" + bound_table(e);
  if (e.period) {
    text += fmt::format("layers repeat: each of the {} that are alike takes {} us at least\n", e.period->layers,
                        us_text(e.period->layer));
  }
  if (!e.idle_of.empty()) text += idle_table(e);
  if (!e.alternatives.empty()) {
    text += "\noff that path, and on it if they took so much longer, us\n" + alternative_table(e);
  }
  text += "\nthe longest stretches\n" + longest_table(e, graph);
  return e.known ? text + "\n" + known_line("the kernels'", *e.known) + "\n" : text;
}

std::string to_table(const std::string& title, const StepKernels& step, double span_us) {
  const double all_us = step.all_us();
  const double slower = step.on_this_us / all_us - 1;
  const std::string on_this =
      std::abs(slower) < kZeroShare ? "" : fmt::format(" ({} on this GPU)", signed_percent(slower));
  return fmt::format(
      "{}: {:.1f} us; the kernels of one GPU are charged {:.1f} us alone{}, {} of it as OPs of `moeline price`\n\n{}",
      title, span_us, all_us, on_this, percent(step.with_op_us() / all_us),
      kernel_columns(all_us).table(step.kernels).text());
}

std::string to_table(const std::string& title, const ModuleTable& table) {
  const std::string of = table.tokens ? fmt::format(", {:.0f} tokens", *table.tokens) : "";
  return fmt::format("{}: {:.1f} us of one GPU{}\n\n{}", title, table.span_us, of,
                     module_columns(table.span_us).table(table.rows).text());
}

}  // namespace moeline
