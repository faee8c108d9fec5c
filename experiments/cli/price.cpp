// moeline price: what single kernels cost on a machine, and how we know.
#include "hardware/price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/text_table.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/report/fields.hpp"
#include "hardware/kernel_library.hpp"
#include "hardware/parse_op.hpp"
#include "schedules/scenario/choices.hpp"

namespace moeline {
namespace {

struct PriceOptions {
  std::string hardware;
  std::string kernels;
  std::string attention_backend = "usual", moe_backend = "usual";
  std::vector<std::string> ops;
  std::vector<std::string> assignments;
  std::string format = "table";
  bool strict = false;
};

struct PricedKernel {
  std::string name;
  Price price;
};

struct PricedOp {
  RequestedOp requested;
  Price price;                        // of all its kernels
  std::vector<PricedKernel> kernels;  // each, in launch order

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

struct Prices {
  std::string hardware;
  std::vector<PricedOp> ops;
};

Fields<Price> demand_fields() {
  return Fields<Price>()
      .add("sms", "SMs", &Price::sms)
      .add("hold", "resident: blocks stay until its end; elastic: it takes SMs that are left",
           [](auto& p) { return name_of(p.hold); }, {.words = {"resident", "elastic", "nothing"}})
      .add("hbm_GBps", "GB/s of memory", &Price::hbm_GBps)
      .add("nvlink_GBps", "GB/s of NVLink, each direction", &Price::nvlink_GBps)
      .add("nic_GBps", "GB/s of the NIC, each direction", &Price::nic_GBps);
}

Fields<PricedOp> op_fields() {
  return Fields<PricedOp>()
      .add("op", "as it was asked", [](auto& op) { return op.requested.text; })
      .add("solo_us", "us alone", [](auto& op) { return op.price.solo_us; })
      .object("demands", "what it takes while it runs alone", &PricedOp::price, demand_fields())
      .all(&PricedOp::price, provenance_fields(true))
      .list("kernels", "of which it consists, in launch order", &PricedOp::kernels,
            Fields<PricedKernel>()
                .add("kernel", "name", &PricedKernel::name)
                .add("solo_us", "us alone", [](auto& k) { return k.price.solo_us; })
                .add("sms", "SMs", [](auto& k) { return k.price.sms; }))
      .add("flops", "FLOPs", [](auto& op) { return op.sum(&Operator::flops); }, {.decimals = 0})
      .add("bytes", "bytes of memory", [](auto& op) { return op.sum(&Operator::bytes); }, {.decimals = 0});
}

Fields<Prices> price_fields() {
  return output_fields<Prices>()
      .add("hardware", "machine", &Prices::hardware)
      .list("ops", "each OP", &Prices::ops, op_fields());
}

Fields<PricedOp> op_columns() {
  return Fields<PricedOp>()
      .column("us", [](auto& op) { return op.price.solo_us; }, {.format = "{:.2f}"})
      .column("SMs", [](auto& op) { return op.price.sms; })
      .column("TFLOP/s", &PricedOp::tflops, {.format = "{:.0f}"})
      .column("memory", &PricedOp::memory_GBps, {.format = "{:.0f}"})
      .column("NVLink", [](auto& op) { return op.price.nvlink_GBps; }, {.format = "{:.1f}"})
      .column("NIC", [](auto& op) { return op.price.nic_GBps; }, {.format = "{:.1f}"})
      .column("bound by", [](auto& op) { return op.price.bound_by; })
      .column("provenance", [](auto& op) { return name_of(op.price.provenance); })
      .column("kernel set", [](auto& op) { return op.price.kernel_set; })
      .column("note", [](auto& op) { return note_of(op.price); })
      .column("op", [](auto& op) { return op.requested.text; });
}

// A transfer's kernels are told apart: some hold few SMs, and some take all.
std::string kernels_text(const std::vector<PricedOp>& ops) {
  std::string text;
  for (const PricedOp& op : ops) {
    if (op.kernels.size() < 2 || !is_communication(op.requested.kernels.front().family)) continue;
    text += fmt::format("{}:\n", op.requested.text);
    for (const PricedKernel& kernel : op.kernels) {
      text += fmt::format("  {:.2f} us on {} SMs, bound by {}: {}\n", kernel.price.solo_us, kernel.price.sms,
                          kernel.price.bound_by, kernel.name);
    }
  }
  return text;
}

constexpr const char* kUnits =
    "memory, NVLink and NIC: GB/s (links: each direction), while the kernel runs alone; L2 adds to memory's. bound by: "
    "what\n"
    "it would gain most from; latency: neither units nor memory are at half of their peak.\n";

// "hardware.nic_GBps=25" or "nic_GBps=25".
std::vector<std::string> overrides_of(const std::vector<std::string>& assignments) {
  constexpr std::string_view kHardware = "hardware.";
  std::vector<std::string> overrides;
  for (const std::string& each : assignments) {
    overrides.push_back(each.starts_with(kHardware) ? each.substr(kHardware.size()) : each);
  }
  return overrides;
}

Libraries libraries_of(const PriceOptions& options) {
  return {.attention = choice_of<AttentionBackend>(options.attention_backend),
          .experts = choice_of<MoeBackend>(options.moe_backend)};
}

int run(const PriceOptions& options, const Console& console) {
  const HardwareProfile profile = load_profile(options.hardware, overrides_of(options.assignments));
  const KernelSet kernels = kernels_by(profile, options.kernels, "", libraries_of(options));
  Prices prices{spelt_as(profile.name, options.hardware), {}};
  for (const std::string& text : options.ops) {
    RequestedOp requested = parse_op(text, profile.facts);
    const Price price = price_all(requested.kernels, requested.conditions, profile.facts, kernels);
    std::vector<PricedKernel> apart;
    for (const Operator& op : requested.kernels) {
      const PriceConditions own = conditions_among(requested.kernels, op, requested.conditions, profile.facts);
      apart.push_back({op.name, moeline::price(op, own, profile.facts, kernels)});
    }
    prices.ops.push_back({std::move(requested), price, std::move(apart)});
  }
  console.print(options.format == "json" ? price_fields().json(prices)
                                         : op_columns().table(prices.ops).text() + kernels_text(prices.ops) + kUnits);
  const bool covered = std::all_of(prices.ops.begin(), prices.ops.end(),
                                   [](const PricedOp& each) { return is_covered(each.price.provenance); });
  if (!options.strict || covered) return kDone;
  console.fail("--strict: not every price is covered by measurements");
  return kInfeasible;
}

}  // namespace

std::string price_schema() {
  return output_schema("price", "`moeline price HARDWARE OP... --format json`", price_fields().described());
}

Command make_price(Console& console) {
  auto options = std::make_shared<PriceOptions>();
  return {.name = "price",
          .about = "what single kernels cost on a machine, and how that is known",
          .options = {required({"hardware", &options->hardware, "a name in hwprofiles, or a path"}),
                      required({"op", &options->ops, "kernels"}),
                      {"--kernels", &options->kernels, "kernel set; default: for each family the newest that has it"},
                      {"--attention-backend", &options->attention_backend, "as a scenario's key",
                       words_of<AttentionBackend>()},
                      {"--moe-backend", &options->moe_backend, "as a scenario's key", words_of<MoeBackend>()},
                      single_words({"--set", &options->assignments, "machine facts: hardware.nic_GBps=25"}),
                      format_option(options->format, {"table", "json"}),
                      strict_option(options->strict)},
          .footer = op_help() + "\n" + kProvenanceHelp,
          .run = [options, &console] { console.exit_code = run(*options, console); }};
}

}  // namespace moeline
