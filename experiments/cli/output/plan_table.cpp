// The answer to a plan as a person reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/cli/output/plan_output.hpp"
#include "experiments/cli/output/provenance.hpp"

namespace moeline {
namespace {

std::string joined(const std::vector<std::string>& lines, const char* indent = "") {
  std::string text;
  for (const std::string& line : lines) text += indent + line + "\n";
  return text;
}

std::string best_text(const Deployment& d) {
  return joined(answer_lines(d)) + "\n" + sides_table(d).text("  ") + "\n" + memory_table(d).text("  ") + "\n  " +
         known_line("prefill's kernels'", d.prefill.known) + "\n  " + known_line("decode's kernels'", d.decode.known) +
         "\n";
}

std::string others(const std::vector<Deployment>& deployments) {
  constexpr std::size_t kShown = 11;
  const std::size_t count = deployments.size() - 1;
  const std::string more = count > kShown ? fmt::format("  and {} more (--format csv)\n", count - kShown) : "";
  return others_table(deployments, kShown).text("  ") + more;
}

std::string front_table(const Answer& answer) {
  constexpr std::size_t kShown = 16;
  const std::vector<TradeOff> front = pareto_front(answer.trade_offs);
  const std::size_t every = (front.size() + kShown - 1) / kShown;
  TextTable table("rrrll");
  table.row({"tokens/s/user", "TPOT ms", "tokens/s/GPU", "machine", "decode"});
  for (std::size_t i = 0; i < front.size(); i += every) {
    const TradeOff& point = front[i];
    table.row({fmt::format("{:.1f}", point.tokens_per_s_per_user),
               fmt::format("{:.1f}", 1e3 / point.tokens_per_s_per_user),
               fmt::format("{:.1f}", point.tokens_per_s_per_gpu), point.choice.hardware, describe(point.choice)});
  }
  const std::string some = every > 1 ? fmt::format("  one of {} of {} points\n", every, front.size()) : "";
  return table.text("  ") + some;
}

std::string flags_text(const Plan& plan, const Deployment& d) {
  std::string text;
  for (const ProgramCommands& each : launch_texts(plan, d)) text += "\n" + each.text;
  return text;
}

std::string impossible_text(const Answer& answer) {
  if (answer.impossible.empty()) return "";
  return "\nleft out before anything was simulated\n" + joined(impossible_lines(answer), "  ");
}

std::string nothing_text(const Plan& plan, const Answer& answer) {
  const std::string text = "\nno deployment is within the limits\n" + nearest_line(plan, answer) + "\n";
  return answer.nearest ? text + "\n" + best_text(*answer.nearest) : text;
}

std::string confirmed_text(const PlanResult& result) {
  return "\n" + served_line(result) + "\n" + served_table(result).text("  ");
}

std::string course_text(const Course& course) {
  TextTable table("rrrrr");
  table.row({"part of the day", "load", "prefill units", "decode units", "GPUs"});
  for (std::size_t i = 0; i < course.parts.size(); ++i) {
    const CoursePart& part = course.parts[i];
    const std::string gpus = part.gpus > 0 ? fmt::format("{}", part.gpus) : "not served";
    table.row({fmt::format("{}", i + 1), fmt::format("{:.2f}", part.load), fmt::format("{}", part.prefill_units),
               fmt::format("{}", part.decode_units), gpus});
  }
  return fmt::format("\nalong the day, of the same units as many as it takes: {:.1f} GPUs on average, {} at most\n{}",
                     course.mean_gpus, course.most_gpus, table.text("  "));
}

}  // namespace

std::string plan_table(const PlanResult& result) {
  const std::vector<Deployment>& deployments = result.answer.deployments;
  std::string text = joined(question_lines(result.plan));
  if (deployments.empty()) return text + nothing_text(result.plan, result.answer) + impossible_text(result.answer);
  text += "\n" + best_text(deployments.front());
  if (result.promises) text += confirmed_text(result);
  if (result.course) text += course_text(*result.course);
  if (deployments.size() > 1) text += "\nthe others\n" + others(deployments);
  if (!result.answer.trade_offs.empty()) {
    text += "\nif TPOT were not limited: decode with the same prefill, of which nothing else is better in both\n" +
            front_table(result.answer);
  }
  if (!result.sensitivities.empty()) {
    text += "\nif an assumption is wrong\n" + sensitivity_table(result).text("  ");
  }
  return text + impossible_text(result.answer) + flags_text(result.plan, deployments.front());
}

}  // namespace moeline
