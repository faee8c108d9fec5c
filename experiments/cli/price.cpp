// moeline price: what single kernels cost on a machine, and how we know.
#include "hardware/price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/text_table.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/kernels_output.hpp"
#include "experiments/cli/output/provenance_help.hpp"
#include "hardware/parse_op.hpp"

namespace moeline {
namespace {

struct PriceOptions {
  std::string hardware;
  std::string kernels;
  std::vector<std::string> ops;
  std::vector<std::string> assignments;
  std::string format = "table";
  bool strict = false;
};

struct PricedOp {
  RequestedOp requested;
  Price price;  // of all its kernels

  [[nodiscard]] double sum(double Operator::*amount) const {
    return std::accumulate(requested.kernels.begin(), requested.kernels.end(), 0.0,
                           [&](double before, const Operator& op) { return before + op.*amount; });
  }
  [[nodiscard]] double tflops() const { return sum(&Operator::flops) / price.solo_us / 1e6; }
  [[nodiscard]] double memory_GBps() const { return sum(&Operator::bytes) / price.solo_us / 1e3; }
};

const char* name_of(Hold hold) {
  return hold == Hold::resident ? "resident" : hold == Hold::elastic ? "elastic" : "nothing";
}

std::string to_json(const std::vector<PricedOp>& priced, const std::string& hardware) {
  Json json;
  json.open().add("schema_version", 1).add("hardware", hardware).open_list("ops");
  for (const PricedOp& each : priced) {
    const auto& [requested, price] = each;
    json.open().add("op", requested.text).add("solo_us", price.solo_us);
    json.open("demands").add("sms", price.sms).add("hold", name_of(price.hold)).add("hbm_GBps", price.hbm_GBps);
    json.add("nvlink_GBps", price.nvlink_GBps).add("nic_GBps", price.nic_GBps).close();
    json.add("provenance", name_of(price.provenance));
    if (!price.note.empty()) json.add("provenance_note", price.note.text());
    if (price.gain != 1) json.add("correction", price.gain, 4);
    if (!price.kernel_set.empty()) json.add("kernel_set", price.kernel_set);
    if (!price.bound_by.empty()) json.add("bound_by", price.bound_by);
    json.add("flops", each.sum(&Operator::flops), 0).add("bytes", each.sum(&Operator::bytes), 0).close();
  }
  return json.close_list().close().text();
}

std::string to_table(const std::vector<PricedOp>& priced) {
  TextTable table("rrrrrrlllll");
  table.row({"us", "SMs", "TFLOP/s", "memory", "NVLink", "NIC", "bound by", "provenance", "kernel set", "note", "op"});
  for (const PricedOp& each : priced) {
    const Price& p = each.price;
    table.row({fmt::format("{:.2f}", p.solo_us), fmt::format("{}", p.sms), fmt::format("{:.0f}", each.tflops()),
               fmt::format("{:.0f}", each.memory_GBps()), fmt::format("{:.1f}", p.nvlink_GBps),
               fmt::format("{:.1f}", p.nic_GBps), p.bound_by, name_of(p.provenance), p.kernel_set, note_of(p),
               each.requested.text});
  }
  return table.text() +
         "memory, NVLink and NIC: GB/s (links: each direction), while the kernel runs alone; L2 adds to memory's.\n";
}

// "hardware.nic_GBps=25" or "nic_GBps=25".
std::vector<std::string> overrides_of(const std::vector<std::string>& assignments) {
  constexpr std::string_view kHardware = "hardware.";
  std::vector<std::string> overrides;
  for (const std::string& each : assignments) {
    overrides.push_back(each.starts_with(kHardware) ? each.substr(kHardware.size()) : each);
  }
  return overrides;
}

int run(const PriceOptions& options, const Console& console) {
  const HardwareProfile profile = load_profile(options.hardware, overrides_of(options.assignments));
  const KernelSet kernels = profile.kernels(options.kernels);
  std::vector<PricedOp> priced;
  for (const std::string& text : options.ops) {
    RequestedOp requested = parse_op(text, profile.facts);
    const Price price = price_all(requested.kernels, requested.conditions, profile.facts, kernels);
    priced.push_back({std::move(requested), price});
  }
  console.print(options.format == "json" ? to_json(priced, spelt_as(profile.name, options.hardware))
                                         : to_table(priced));
  const bool covered =
      std::all_of(priced.begin(), priced.end(), [](const PricedOp& each) { return is_covered(each.price.provenance); });
  if (!options.strict || covered) return kDone;
  console.fail("--strict: not every price is covered by measurements");
  return kInfeasible;
}

}  // namespace

void add_price(CLI::App& app, Console& console) {
  auto options = std::make_shared<PriceOptions>();
  CLI::App* command = app.add_subcommand("price", "what single kernels cost on a machine, and how that is known");
  command->add_option("hardware", options->hardware, "a name in hwprofiles, or a path")->required();
  command->add_option("op", options->ops, "kernels")->required();
  command->add_option("--kernels", options->kernels, "kernel set; default: for each family the newest that has it");
  command->add_option("--set", options->assignments, "machine facts: hardware.nic_GBps=25")->allow_extra_args(false);
  command->add_option("--format", options->format)->transform(one_of({"table", "json"}));
  command->add_flag("--strict", options->strict, "exit code 1 where a price is not covered by measurements");
  command->footer(op_help() + "\n" + kProvenanceHelp);
  command->callback([options, &console] { console.exit_code = run(*options, console); });
}

}  // namespace moeline
