#include "measured/replay_text.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text.hpp"
#include "measured/names.hpp"

namespace moeline {
namespace {

std::string id_of(Node node) { return fmt::format("{}{}", node.is_call ? "c" : "k", node.index); }

std::string us(std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3); }

std::vector<bool> calls_used(const Measured& m) {
  std::vector<bool> used(m.trace.calls.size(), false);
  for (const Dependency& edge : m.dependencies) {
    if (edge.before.is_call) used[edge.before.index] = true;
    if (edge.after.is_call) used[edge.after.index] = true;
  }
  return used;
}

}  // namespace

std::string to_graphviz(const Measured& m) {
  std::string out;
  out.append(kGraphvizStart).append(" rankdir=LR;\n node [shape=box];\n");
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    const std::string label = fmt::format("{}\n{}\n{} us, stream {}", kernel_name(m, i), phase_name(m, i),
                                          us(event.end_ns - event.start_ns), event.stream);
    out += fmt::format(" k{} [label={}];\n", i, json_text(label));
  }
  const std::vector<bool> used = calls_used(m);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) out += fmt::format(" c{} [label=launch, shape=ellipse];\n", i);
  }
  for (const Dependency& edge : m.dependencies) {
    out += fmt::format(" {} -> {} [label={}];\n", id_of(edge.before), id_of(edge.after), name_of(edge.reason));
  }
  out += fmt::format("}}\n");
  return out;
}

std::string to_graph_json(const Measured& m) {
  std::string out;
  out.append(kGraphJsonStart).append("\"schema_version\": 1,\n\"nodes\": [\n");
  bool first = true;
  const auto next = [&] { out += std::exchange(first, false) ? "" : ",\n"; };
  for (std::uint32_t i = 0; i < m.trace.gpu_events.size(); ++i) {
    const GpuEvent& event = m.trace.gpu_events[i];
    next();
    out += fmt::format(
        R"({{"id": "k{}", "kernel": {}, "class": "{}", "rank": {}, "stream": {}, "phase": {}, "start_us": {}, "dur_us": {}}})",
        i, json_text(m.trace.name(event)), name_of(m.meaning.classes[i]), m.trace.rank(event), event.stream,
        json_text(phase_name(m, i)), us(event.start_ns), us(event.end_ns - event.start_ns));
  }
  const std::vector<bool> used = calls_used(m);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    next();
    out += fmt::format(R"({{"id": "c{}", "class": "host", "start_us": {}}})", i, us(m.trace.calls[i].start_ns));
  }
  out += fmt::format("\n],\n\"edges\": [\n");
  first = true;
  for (const Dependency& edge : m.dependencies) {
    next();
    out +=
        fmt::format(R"({{"from": "{}", "to": "{}", "reason": "{}", "seen": {}, "of": {}, "when": "{}"}})",
                    id_of(edge.before), id_of(edge.after), name_of(edge.reason), edge.evidence.seen, edge.evidence.of,
                    edge.order == Order::end_to_start || edge.order == Order::end_to_end ? "end" : "start");
  }
  out += fmt::format("\n]\n}}\n");
  return out;
}

}  // namespace moeline
