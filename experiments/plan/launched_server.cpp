#include "experiments/plan/launched_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace moeline {
namespace {

namespace fs = std::filesystem;

// The first line of a file of the zoo ends "... config.json (ORGANIZATION/NAME)."
std::string hugging_face_id(const std::string& zoo_name) {
  const std::string text = read_text(home() / "model/zoo" / (zoo_name + ".yaml"));
  const std::string before = "config.json (";
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return zoo_name;
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find(')', begin) - begin);
}

}  // namespace

std::vector<LaunchedServer> launched_servers(const Deployment& d, int gpus_per_node) {
  LaunchedServer prefill{
      .role = "prefill", .units = d.prefill.all_units(), .prefill = &d.prefill_choice, .memory = d.prefill.memory};
  prefill.unit = d.prefill_choice.unit;
  prefill.mode = d.prefill_choice.mode;
  prefill.redundant_experts = d.prefill_choice.redundant_experts;
  LaunchedServer decode{
      .role = "decode", .units = d.decode.all_units(), .decode = &d.decode_choice, .memory = d.decode.memory};
  decode.unit = d.decode_choice.unit;
  decode.mode = d.decode_choice.mode;
  decode.redundant_experts = d.decode_choice.redundant_experts;
  std::vector<LaunchedServer> all = {prefill, decode};
  if (d.colocated) {
    decode.role = "serve";
    decode.prefill = &d.prefill_choice;
    decode.mixes = d.mixed;
    all = {decode};
  }
  for (LaunchedServer& server : all) {
    server.mtp = d.decode_choice.mtp;
    server.nodes = nodes_of_unit(server.gpus(), gpus_per_node);
  }
  return all;
}

double static_share(const GpuMemory& m) { return (m.held.weights + m.room) / (m.capacity - m.runtime); }

double share_of_all(const GpuMemory& m, double start_bytes) {
  const double start = std::max(0.0, start_bytes - m.held.activations);
  return std::min(1.0, (m.runtime + m.rest() + start + m.room) / m.capacity);
}

double share_of_free(const GpuMemory& m) { return m.room / (m.capacity - m.runtime - m.rest()); }

void add_flags(Flags& flags, const Flags& more) { flags.insert(flags.end(), more.begin(), more.end()); }

std::string joined(const Flags& flags) { return fmt::format("{}", fmt::join(flags, " \\\n  ")); }

std::string for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '.' ||
           c == '-' || c == '_';
  });
  return plain ? text : quoted + "'";
}

std::string rounded_share(double value) { return shortest(std::floor(value * 1000 + 1e-6) / 1000); }

std::string served_model(const Plan& plan, const Architecture& model) {
  const std::vector<std::string> zoo = names_in("model/zoo");
  if (std::find(zoo.begin(), zoo.end(), plan.model) != zoo.end()) return hugging_face_id(plan.model);
  const fs::path path = beside(plan.file, plan.model);
  std::error_code failed;
  if (fs::is_directory(path, failed)) return path.string();
  return path.filename() == "config.json" ? path.parent_path().string() : model.name;
}

void note_one_batch(const LaunchedServer& s, std::vector<std::string>& notes) {
  if (s.decodes_by("single-batch")) notes.emplace_back("nothing overlaps one batch; the plan does (single-batch)");
  if (s.decodes_by("per-expert")) notes.emplace_back("nothing overlaps groups of experts; the plan does (per-expert)");
}

LaunchCommand launch_command(const LaunchedServer& server, const Flags& flags, std::vector<std::string> notes) {
  return {server.role, server.units, server.nodes, joined(flags), std::move(notes)};
}

}  // namespace moeline
