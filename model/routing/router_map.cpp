#include "routing/router_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "routing/destinations.hpp"

namespace moeline {
namespace {

constexpr int kMostExperts = 4096;
constexpr int kMostToken = 1'000'000'000;

std::vector<std::string> expert_columns(const CsvTable& table) {
  std::vector<std::string> names;
  while (table.has(fmt::format("expert{}", names.size()))) names.push_back(fmt::format("expert{}", names.size()));
  if (names.empty()) throw SpecError(table.file(), 1, "a router map needs columns expert0, expert1, ...");
  std::vector<std::string> known = {"token", "layer", "rank"};
  known.insert(known.end(), names.begin(), names.end());
  table.expect(known);
  return names;
}

// The experts of one row, all different.
std::vector<std::size_t> experts_in(const CsvTable& table, std::size_t row, const std::vector<std::string>& columns,
                                    int experts) {
  std::vector<std::size_t> chosen;
  for (const std::string& column : columns) {
    const auto expert = static_cast<std::size_t>(table.integer(row, column, 0, experts - 1));
    if (std::find(chosen.begin(), chosen.end(), expert) != chosen.end()) {
      throw SpecError(table.file(), table.line(row), fmt::format("expert {} is chosen twice", expert));
    }
    chosen.push_back(expert);
  }
  return chosen;
}

int home_in(const CsvTable& table, std::size_t row, int token, const RouterLimits& limits) {
  if (!table.has("rank")) return token;
  return table.integer(row, "rank", 0, limits.ranks > 0 ? limits.ranks - 1 : kMostToken);
}

std::vector<int> layers_of(const CsvTable& table) {
  std::set<int> layers;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    layers.insert(table.integer(row, "layer", 0, kMostToken));
    if (layers.size() > kMostRoutedLayers) {
      throw SpecError(table.file(), table.line(row), fmt::format("has more than {} layers", kMostRoutedLayers));
    }
  }
  return {layers.begin(), layers.end()};
}

}  // namespace

RouterMap read_router_map(const CsvTable& table, const RouterLimits& limits) {
  const std::vector<std::string> columns = expert_columns(table);
  RouterMap map{0, columns.size(), layers_of(table), {}};
  map.tokens.resize(map.layers.size());
  std::set<std::pair<int, int>> seen;
  std::size_t largest = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int layer = table.integer(row, "layer", 0, kMostToken);
    const int token = table.integer(row, "token", 0, kMostToken);
    if (!seen.emplace(layer, token).second) {
      throw SpecError(table.file(), table.line(row), fmt::format("token {} is repeated in layer {}", token, layer));
    }
    const auto position = std::lower_bound(map.layers.begin(), map.layers.end(), layer) - map.layers.begin();
    MappedTokens& tokens = map.tokens[static_cast<std::size_t>(position)];
    tokens.homes.push_back(home_in(table, row, token, limits));
    for (const std::size_t expert :
         experts_in(table, row, columns, limits.experts > 0 ? limits.experts : kMostExperts)) {
      tokens.experts.push_back(expert);
      largest = std::max(largest, expert);
    }
  }
  map.experts = limits.experts > 0 ? limits.experts : static_cast<int>(largest) + 1;
  return map;
}

Loads loads_of(const RouterMap& map) {
  Loads loads;
  for (const MappedTokens& tokens : map.tokens) {
    loads.emplace_back(static_cast<std::size_t>(map.experts));
    for (const std::size_t expert : tokens.experts) loads.back()[expert] += 1;
  }
  return loads;
}

double other_nodes_per_token(const RouterMap& map, std::size_t layer, const Placement& placement) {
  Destinations nodes(placement, map.experts, Destinations::Level::node);
  const MappedTokens& tokens = map.tokens[layer];
  const int node_size = placement.gpus / placement.nodes;
  double sum = 0;
  for (std::size_t i = 0; i < tokens.homes.size(); ++i) {
    const std::span<const std::size_t> experts(&tokens.experts[i * map.top_k], map.top_k);
    sum += nodes.expected_others(experts, tokens.homes[i] % placement.gpus / node_size);
  }
  return sum / static_cast<double>(tokens.homes.size());
}

}  // namespace moeline
