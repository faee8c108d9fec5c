// moeline hardware derive: a machine that nobody has measured, on the kernels of one that was.
#include <fmt/format.h>

#include <memory>

#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/left_out_output.hpp"
#include "experiments/cli/output_file.hpp"
#include "hardware/derive.hpp"

namespace moeline {
namespace {

struct HardwareOptions {
  std::string action, machine, like, output;
  std::string format = "yaml";
  bool force = false;
};

struct DerivedFamily {
  std::string name, how;
  std::optional<LeftOutError> error;
};

struct Derivation {
  std::string profile, like;
  Kin kin{};
  std::vector<DerivedFamily> families{};
  std::optional<LeftOutError> decode{}, prefill{};
};

constexpr const char* kHardwareDefinitions =
    R"(derive writes a profile: the facts of MACHINE, a name of list hardware or a file of facts (name: and facts: as in
hwprofiles; its README has every key), and whose kernels it has. --like names that machine; without it the nearest is taken that was
measured: of the same generation or else of the one before, then by its facts. The profile is a machine like any other: `hardware:
FILE` in a scenario, or `moeline init decode MODEL FILE`.
What carries over: constants of the measured machine's curves, which are start-ups in microseconds and times over what the peaks of
tensor cores, HBM and links allow; the peaks are MACHINE's own. Corrections measured at one machine's shapes do not.
errors: of predicted / by its own kernels - 1, over pairs of measured machines of which one was derived from the other so
(experiments/studies/machine_left_out), by whether their SMs have the same tensor cores; empty where no such pair was tried.)";

Derivation derivation_of(const HardwareProfile& machine, const std::string& like, const std::string& derived) {
  const auto measured = known_profile(like);
  Derivation result{.profile = derived, .like = like, .kin = kin_of(machine.facts, measured->facts)};
  for (const auto& [name, fit] : measured->kernels("").fits)
    result.families.push_back({name, what_carries_over(fit), left_out_error(result.kin, name)});
  result.decode = left_out_error(result.kin, "decode step");
  result.prefill = left_out_error(result.kin, "prefill step");
  return result;
}

Fields<DerivedFamily> family_fields() {
  const auto of_error = [](double LeftOutError::*number) {
    return [=](const DerivedFamily& f) {
      return or_null(only_if(f.error.has_value(), f.error.value_or(LeftOutError{}).*number));
    };
  };
  return Fields<DerivedFamily>()
      .add("family", "family of kernels", &DerivedFamily::name)
      .add("how", "what comes from the measured machine", &DerivedFamily::how)
      .add("median_abs_error", "of machines left out; null: none was tried", of_error(&LeftOutError::median_abs_error))
      .add("p95_abs_error", "the same, 95 % quantile", of_error(&LeftOutError::p95_abs_error));
}

Fields<Derivation> derivation_fields() {
  const auto step = [](std::optional<LeftOutError> Derivation::*error) {
    return [=](const Derivation& d) { return (d.*error).has_value() ? &*(d.*error) : nullptr; };
  };
  return output_fields<Derivation>()
      .add("profile", "the profile, as YAML", &Derivation::profile)
      .add("like", "whose kernels it has", &Derivation::like)
      .add("kin", "what the two share", [](auto& d) { return name_of(d.kin); }, {.words = words_to(Kin::other_vendor)})
      .list("families", "of that machine's default kernels", &Derivation::families, family_fields())
      .object("decode_step", "errors of decode steps of machines left out", step(&Derivation::decode),
              left_out_fields())
      .object("prefill_step", "the same of prefill", step(&Derivation::prefill), left_out_fields());
}

void run(const HardwareOptions& options, const Console& console) {
  check_output({"-o", options.output, FileKind::profile}, {options.machine, options.like}, options.force);
  const HardwareProfile machine = load_profile(options.machine);
  const std::string like = options.like.empty() ? nearest_measured(machine) : known_profile(options.like)->name;
  const std::string derived = derive(machine, like);
  if (options.like.empty()) console.note(fmt::format("kernels of {}, the nearest machine that was measured", like));
  if (!options.output.empty()) write_text(options.output, derived);
  if (options.format == "json")
    console.print(derivation_fields().json(derivation_of(machine, like, derived)));
  else if (options.output.empty())
    console.print(derived);
}

}  // namespace

std::string hardware_schema() {
  return output_schema("hardware",
                       "`moeline hardware derive MACHINE --format json`: its profile, and how far off others were",
                       derivation_fields().described());
}

Command make_hardware(Console& console) {
  auto options = std::make_shared<HardwareOptions>();
  return {.name = "hardware",
          .about = "a machine that nobody has measured, on the kernels of one that was",
          .options = {required({"action", &options->action, "derive", OneOf{"derive"}}),
                      required({"machine", &options->machine, "a name of list hardware, or a file of facts"}),
                      {"--like", &options->like, "machine whose kernels it has (the nearest that was measured)",
                       NotEmpty{}},
                      {"-o,--output", &options->output, "write the profile to this file", NotEmpty{}},
                      format_option(options->format, {"yaml", "json"}, "of the result on stdout"),
                      force_option(options->force)},
          .footer = kHardwareDefinitions,
          .run = [options, &console] { run(*options, console); }};
}

}  // namespace moeline
