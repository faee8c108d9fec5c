#include "experiments/cli/output/modules_output.hpp"

#include <fmt/format.h>

#include "base/text_table.hpp"

namespace moeline {
namespace {

const char* name_of(BoundBy bound) {
  switch (bound) {
    case BoundBy::compute:
      return "compute";
    case BoundBy::memory:
      return "memory";
    case BoundBy::communication:
      return "communication";
    case BoundBy::launch:
      return "launch";
    case BoundBy::unknown:
      break;
  }
  return "unknown";
}

double us_of(const ModuleRow& row, ModelPass pass) { return row.use.us[static_cast<std::size_t>(pass)]; }

void add_flops(Json& json, const ModuleRow& row) {
  if (!row.knows_flops) {
    json.null("macs").null("flops");
    return;
  }
  json.add("macs", row.use.flops() / 2, 0).add("flops", row.use.flops(), 0);
  json.add("forward_flops", row.use.forward_flops, 0).add("backward_flops", row.use.backward_flops, 0);
  json.add("recomputed_flops", row.use.recomputed_flops, 0);
}

void add_times(Json& json, const ModuleRow& row) {
  json.add("us", row.use.total_us()).add("forward_us", us_of(row, ModelPass::forward));
  json.add("backward_us", us_of(row, ModelPass::backward));
  json.add("recomputation_us", us_of(row, ModelPass::recomputation));
}

// "b_proj" of "attention/b_proj", as far to the right as it is deep.
std::string title_of(const ModuleRow& row) {
  return std::string(2 * static_cast<std::size_t>(row.depth), ' ') + row.module.substr(row.module.rfind('/') + 1);
}

// In millions; "-" for nothing.
std::string millions(double value) { return value == 0 ? "-" : fmt::format("{:.1f}", value / 1e6); }
std::string us(double value) { return value == 0 ? "-" : fmt::format("{:.1f}", value); }

std::vector<std::string> cells_of(const ModuleRow& row, double span_us) {
  const std::optional<double> tflops = row.tflops();
  const std::optional<BoundBy> bound = row.bound_by();
  return {title_of(row),
          row.parameters ? millions(*row.parameters) : "?",
          row.knows_flops ? millions(row.use.flops() / 2e3) : "?",
          row.knows_flops ? millions(row.use.flops() / 1e3) : "?",
          us(us_of(row, ModelPass::forward)),
          us(us_of(row, ModelPass::backward)),
          us(us_of(row, ModelPass::recomputation)),
          us(row.use.total_us()),
          percent(row.use.total_us() / span_us),
          tflops && *tflops > 0 ? fmt::format("{:.1f}", *tflops) : "-",
          bound ? name_of(*bound) : "-"};
}

}  // namespace

void add_modules(Json& json, const ModuleTable& table) {
  if (table.tokens) json.add("tokens_per_gpu", *table.tokens, 3);
  json.open_list("modules");
  for (const ModuleRow& row : table.rows) {
    json.open().add("module", row.module);
    row.parent.empty() ? json.null("parent") : json.add("parent", row.parent);
    json.add("depth", row.depth);
    row.parameters ? json.add("parameters", *row.parameters, 0) : json.null("parameters");
    add_flops(json, row);
    add_times(json, row);
    if (!table.is_measured) json.add("alone_us", row.use.alone_us).add("gap_us", row.use.gap_us);
    const std::optional<double> tflops = row.tflops();
    tflops ? json.add("tflops", *tflops) : json.null("tflops");
    json.add("share", row.use.total_us() / table.span_us, 5);
    const std::optional<BoundBy> bound = row.bound_by();
    bound ? json.add("bound_by", name_of(*bound)) : json.null("bound_by");
    json.close();
  }
  json.close_list();
}

std::string to_table(const std::string& title, const ModuleTable& table) {
  TextTable text("lrrrrrrrrrl");
  text.row({"module", "parameters, M", "GMAC", "GFLOP", "forward us", "backward us", "recompute us", "all us",
            "of step", "TFLOP/s", "bound by"});
  for (const ModuleRow& row : table.rows) text.row(cells_of(row, table.span_us));
  std::string of = table.tokens ? fmt::format(", {:.0f} tokens", *table.tokens) : "";
  return fmt::format("{}: {:.1f} us of one GPU{}\n\n{}", title, table.span_us, of, text.text());
}

}  // namespace moeline
