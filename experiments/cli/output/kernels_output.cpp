#include "experiments/cli/output/kernels_output.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text_table.hpp"

namespace moeline {
namespace {

constexpr double kShown = 5e-4;  // what is less is 0.0 %

// What speaks against the price, and what chance adds to it.
std::string note_of(const StepKernel& kernel) {
  std::string note = note_of(kernel.price);
  if (std::abs(kernel.by_chance()) < kShown) return note;
  if (!note.empty()) note += ", ";
  return note + fmt::format("by chance {}", signed_percent(kernel.by_chance()));
}

std::vector<std::string> cells_of(const StepKernel& kernel, double all_us) {
  const Price& price = kernel.price;
  return {fmt::format("{:.1f}", kernel.us),
          percent(kernel.us / all_us),
          fmt::format("{:.10g}", std::round(kernel.times * 10) / 10),
          fmt::format("{:.2f}", kernel.each_us()),
          fmt::format("{}", price.sms),
          kernel.flops > 0 ? fmt::format("{:.0f}", kernel.flops / kernel.each_us() / 1e6) : "-",
          fmt::format("{:.0f}", price.hbm_GBps),
          price.bound_by,
          name_of(price.provenance),
          price.kernel_set,
          note_of(kernel),
          kernel.name,
          kernel.op.value_or("-")};
}

}  // namespace

std::string note_of(const Price& price) {
  if (price.gain == 1) return price.note.text();
  const std::string corrected = fmt::format("corrected {:+.1f} %", 100 * (price.gain - 1));
  return price.note.empty() ? corrected : price.note.text() + ", " + corrected;
}

void add_kernels(Json& json, const StepKernels& step) {
  json.add("kernels_us", step.all_us()).add("kernels_on_this_gpu_us", step.on_this_us).open_list("kernels");
  for (const StepKernel& kernel : step.kernels) {
    json.open().add("kernel", kernel.name).add("module", kernel.module);
    json.add("times", kernel.times, 4).add("us", kernel.us).add("each_us", kernel.each_us());
    json.add("sms", kernel.price.sms).add("provenance", name_of(kernel.price.provenance));
    if (!kernel.price.note.empty()) json.add("provenance_note", kernel.price.note.text());
    if (!kernel.price.kernel_set.empty()) json.add("kernel_set", kernel.price.kernel_set);
    if (!kernel.price.bound_by.empty()) json.add("bound_by", kernel.price.bound_by);
    kernel.op ? json.add("op", *kernel.op) : json.null("op");
    json.add("op_us", kernel.price.solo_us).close();
  }
  json.close_list();
}

std::string to_table(const std::string& title, const StepKernels& step, double span_us) {
  const double all_us = step.all_us();
  TextTable text("rrrrrrrllllll");
  text.row({"us alone", "of all", "times", "us each", "SMs", "TFLOP/s", "HBM", "bound by", "provenance", "kernel set",
            "note", "kernel", "op"});
  for (const StepKernel& kernel : step.kernels) text.row(cells_of(kernel, all_us));
  const double slower = step.on_this_us / all_us - 1;
  const std::string on_this = std::abs(slower) < kShown ? "" : fmt::format(" ({} on this GPU)", signed_percent(slower));
  return fmt::format(
      "{}: {:.1f} us; the kernels of one GPU are charged {:.1f} us alone{}, {} of it as OPs of `moeline price`\n\n{}",
      title, span_us, all_us, on_this, percent(step.with_op_us() / all_us), text.text());
}

}  // namespace moeline
