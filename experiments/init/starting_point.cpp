#include "experiments/init/starting_point.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

#include "architecture/architecture.hpp"
#include "base/file.hpp"
#include "experiments/run/best_run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "hardware/profile.hpp"

namespace moeline {
namespace {

constexpr int kMostGpus = 2048;
constexpr int kWidestTp = 8;       // inside a node, beside more ranks of experts
constexpr int kMicroBatches = 16;  // of a rank in a step of training

using Words = std::map<std::string, std::string>;

struct Layout {
  int gpus = 1;
  std::string parallelism;
};

std::string template_of(const std::string& purpose) {
  return read_text(home() / "experiments/init" / (purpose + ".yaml.in"));
}

std::string filled(std::string text, const Words& words) {
  for (const auto& [word, value] : words) {
    const std::string place = "@" + word + "@";
    for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + value.size())) {
      text.replace(at, place.size(), value);
    }
  }
  return text;
}

// Comments behind values stand below each other.
std::string aligned(const std::string& text) {
  constexpr std::size_t kColumn = 40;
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t comment = line.find("  #", begin);
    if (comment < kColumn) line.insert(comment, kColumn - comment, ' ');
    result += line + "\n";
  }
  return result;
}

struct Trial {
  double missing_gib = std::numeric_limits<double>::infinity();  // a layout that the model cannot have
  std::string why{};
};

Trial trial_of(const std::string& text) {
  const GivenText scenario("<scenario>", text);
  try {
    const Run run = best_run("<scenario>");
    const double missing = missing_gib(run);
    return {.missing_gib = missing, .why = missing > 0 ? what_is_over(run) : ""};
  } catch (const SpecError& error) {
    return {.why = error.reason()};
  }
}

// By GPUs: a mixture's experts are spread over them, or each request is, over all or over so many; a dense model's
// requests are.
std::vector<Layout> inference_layouts(const Architecture& model) {
  std::vector<Layout> layouts;
  for (int gpus = 1; gpus <= kMostGpus; gpus *= 2) {
    if (model.n_routed_experts > 0) layouts.push_back({gpus, fmt::format("{{ep: {}}}", gpus)});
    const char* rest = model.n_routed_experts > 0 ? ", ep: {0}}}" : "}}";
    layouts.push_back({gpus, fmt::format(fmt::runtime("{{tp: {0}" + std::string(rest)), gpus)});
    if (model.n_routed_experts > 0 && gpus > kWidestTp)
      layouts.push_back({gpus, fmt::format("{{tp: {}, ep: {}}}", kWidestTp, gpus)});
  }
  return layouts;
}

// By GPUs, of equals those with the shorter pipeline first. Experts are spread inside a node where they can be.
std::vector<Layout> training_layouts(const Architecture& model, int gpus_per_node) {
  std::vector<Layout> layouts;
  for (int gpus = 1; gpus <= kMostGpus; gpus *= 2) {
    for (int pp = 1; pp <= std::min(gpus, 16); pp *= 2) {
      const int ranks = gpus / pp;
      if (model.n_routed_experts > 0) {
        layouts.push_back({gpus, fmt::format("{{pp: {}, ep: {}, dp: {}}}", pp, std::min(ranks, 64), ranks)});
      } else {
        const int tp = std::min(ranks, gpus_per_node);
        layouts.push_back({gpus, fmt::format("{{tp: {}, pp: {}, dp: {}}}", tp, pp, ranks / tp)});
      }
    }
  }
  return layouts;
}

// Number formats of gradients and Adam's moments in Megatron-Bridge's recipes of pretraining (src/megatron/bridge/
// recipes: deepseek/deepseek_v3.py, moonlight/moonlight_16b.py, and what the tuned ones of Qwen3's mixtures share);
// other recipes leave Megatron-Core's own.
struct TrainedFormats {
  const char* model;
  const char *gradients, *moments, *source;
};
constexpr TrainedFormats kOtherFormats = {"", "fp32", "fp32", "Megatron-Core's default"};
constexpr const char* kOfQwen = "as in Megatron-Bridge's tuned recipes of Qwen3's mixtures";
constexpr TrainedFormats kRecipes[] = {
    {"deepseek-v3", "bf16", "bf16", "as in Megatron-Bridge's recipe of DeepSeek-V3"},
    {"moonlight-16b-a3b", "bf16", "bf16", "as in Megatron-Bridge's recipe of Moonlight"},
    {"qwen3-30b-a3b", "fp32", "bf16", kOfQwen},
    {"qwen3-235b-a22b", "fp32", "bf16", kOfQwen}};

Words with_formats(Words words, const Architecture& model) {
  TrainedFormats formats = kOtherFormats;
  for (const TrainedFormats& recipe : kRecipes) {
    if (model.name == recipe.model) formats = recipe;
  }
  words["gradients"] = formats.gradients;
  words["moments"] = formats.moments;
  words["recipe"] = formats.source;
  return words;
}

Words with_layout(Words words, const Layout& layout) {
  words["parallelism"] = layout.parallelism;
  words["gpus"] = std::to_string(layout.gpus);
  words["global_batch_size"] = std::to_string(kMicroBatches * layout.gpus);
  words["why"] =
      fmt::format("on {} GPU{}, the fewest of 1, 2, 4, ... that hold it", layout.gpus, layout.gpus == 1 ? "" : "s");
  return words;
}

// The first whose scenario of this purpose runs, and fits. Where none does, it is told of the one that comes nearest,
// or of the first where the model can have none.
Words fitting(const std::string& purpose, const std::vector<Layout>& layouts, const Words& words) {
  Trial nearest;
  std::string which;
  for (const Layout& layout : layouts) {
    Words tried = with_layout(words, layout);
    const Trial trial = trial_of(filled(template_of(purpose), tried));
    if (trial.missing_gib <= 0) return tried;
    if (!which.empty() && trial.missing_gib >= nearest.missing_gib) continue;
    nearest = trial;
    which = layout.parallelism;
  }
  throw SpecError(fmt::format("{}: none of {} layouts of up to {} {} does; {}: {}", words.at("model"), layouts.size(),
                              kMostGpus, words.at("hardware"), which, nearest.why));
}

// Of a plan: units of as many GPUs as hold the model, and larger ones.
Words with_units(Words words) {
  const int least = std::stoi(words.at("gpus"));
  words["units"] = fmt::format("[{}, {}, {}]", least, 2 * least, 4 * least);
  return words;
}

// Where an older set comes nearer to what was published of the machine than the one that is taken by default.
std::string nearer_kernels(const HardwareProfile& profile) {
  const auto sets = profile.nearest_to_published();
  if (sets.empty()) return "";
  const std::string usual = profile.kernels("").name;
  if (sets.front()->name == usual) return "";
  return fmt::format("; its newest kernels by default, {}; `kernels: {}` is nearer to its published throughput", usual,
                     sets.front()->name);
}

bool is_of_training(const std::string& purpose) { return purpose == "train" || purpose == "training-plan"; }

}  // namespace

const std::vector<std::string>& purposes() {
  static const std::vector<std::string> names = {"decode", "prefill",       "serve", "train",
                                                 "plan",   "training-plan", "study"};
  return names;
}

std::string starting_point(const std::string& purpose, const std::string& model, const std::string& hardware,
                           const std::string& scenario) {
  const Architecture architecture = load_architecture(model);
  const HardwareProfile profile = load_profile(hardware);
  const Words words = {
      {"model", model}, {"hardware", hardware}, {"scenario", scenario}, {"kernels", nearer_kernels(profile)}};
  if (purpose == "study") return aligned(filled(template_of(purpose), words));
  const Words chosen =
      is_of_training(purpose)
          ? fitting("train", training_layouts(architecture, static_cast<int>(profile.facts.gpus_per_node)),
                    with_formats(words, architecture))
          : fitting(purpose == "prefill" ? "prefill" : "decode", inference_layouts(architecture), words);
  return aligned(filled(template_of(purpose), with_units(chosen)));
}

}  // namespace moeline
