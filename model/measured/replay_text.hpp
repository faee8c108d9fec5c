// The graph of a measured trace for others' tools: Graphviz, and JSON.
#pragma once

#include <string>
#include <string_view>

#include "measured/release.hpp"

namespace moeline {

/// How the texts below begin, and those of no other program.
inline constexpr std::string_view kGraphvizStart = "digraph moeline {\n";
inline constexpr std::string_view kGraphJsonStart = "{\n\"program\": \"moeline\",\n";

/// The graph for others' tools.
[[nodiscard]] std::string to_graphviz(const Measured& measured);
[[nodiscard]] std::string to_graph_json(const Measured& measured);

}  // namespace moeline
