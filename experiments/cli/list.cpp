// moeline list: what there is, and what a profile knows.
#include <fmt/format.h>

#include <memory>

#include "base/file.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/family_list.hpp"
#include "experiments/cli/output/hardware_table.hpp"
#include "experiments/cli/output/list_json.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

void list_hardware(const std::string& name, const Console& console) {
  console.print(hardware_table(load_profile(name)));
}

void list_model(const std::string& name, const Console& console) {
  console.print(read_text(find_named("model", name, "model/zoo")));
}

void list_schedule(const std::string& name, const Console& console) {
  const ScheduleKind& schedule = schedule_named(name);
  if (schedule.pipeline) {
    console.print(
        "# a whole pipeline: F&B by the plan of dualpipe-chunk; or slots that take what slot_costs_ms says\n");
    return;
  }
  console.print(schedule.plan.empty() ? "# no overlap plan: one phase at a time\n"
                                      : read_text(home() / "schedules" / (schedule.plan + ".yaml")));
}

void list_json(const std::string& kind, const std::string& name, const Console& console) {
  std::string text;
  if (kind == "models") text = name.empty() ? models_json() : model_json(name);
  if (kind == "families") text = families_json(name);
  if (kind == "hardware") text = name.empty() ? machines_json() : machine_json(load_profile(name));
  if (kind == "schedules") text = name.empty() ? schedules_json() : schedule_json(name);
  console.print(text);
}

void list(const std::string& kind, const std::string& name, const Console& console) {
  if (kind == "families") {
    console.print(families_table(name));
  } else if (name.empty()) {
    const std::vector<std::string> names = kind == "models"     ? names_in("model/zoo")
                                           : kind == "hardware" ? names_in("hwprofiles")
                                                                : schedule_names();
    for (const std::string& each : names) console.print(fmt::format("{}\n", each));
  } else if (kind == "models") {
    list_model(name, console);
  } else if (kind == "hardware") {
    list_hardware(name, console);
  } else {
    list_schedule(name, console);
  }
}

}  // namespace

void add_list(CLI::App& app, Console& console) {
  auto kind = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>("table");
  CLI::App* command =
      app.add_subcommand("list", "models, families of models, hardware or schedules, or what one of them holds");
  command->add_option("kind", *kind, "models, families, hardware or schedules")
      ->required()
      ->transform(one_of({"models", "families", "hardware", "schedules"}));
  command->add_option("name", *name, "print this one");
  command->add_option("--format", *format, "of the result on stdout")->transform(one_of({"table", "json"}));
  command->callback([kind, name, format, &console] {
    *format == "json" ? list_json(*kind, *name, console) : list(*kind, *name, console);
  });
}

}  // namespace moeline
