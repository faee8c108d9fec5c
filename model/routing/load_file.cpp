#include "routing/load_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/csv.hpp"
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

namespace {

constexpr double kMostLoad = 1e15;  // sums of all experts stay exact enough, and finite
constexpr int kMostNumber = 1'000'000;

double load_in(const CsvTable& table, std::size_t row, const std::string& column) {
  const double load = table.number(row, column);
  if (load < 0 || load > kMostLoad) {
    throw SpecError(table.file(), table.line(row),
                    fmt::format("a load must be from 0 to {:g}, not {}", kMostLoad, shortest(load)));
  }
  return load;
}

bool all_zero(const LayerLoads& loads) {
  return std::all_of(loads.begin(), loads.end(), [](double load) { return load == 0; });
}

void check_layers(const CsvTable& table, std::size_t layers) {
  if (layers <= kMostRoutedLayers) return;
  throw SpecError(table.file(), 0, fmt::format("has {} layers; at most {} are read", layers, kMostRoutedLayers));
}

LoadFile read_rows(const CsvTable& table) {
  check_layers(table, table.rows());
  LoadFile file{{0}, std::vector<int>(table.rows()), {Loads(table.rows())}, {}};
  std::iota(file.layers.begin(), file.layers.end(), 0);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    LayerLoads& loads = file.loads.front()[row];
    for (const std::string& column : table.columns()) loads.push_back(load_in(table, row, column));
    if (all_zero(loads)) throw SpecError(table.file(), table.line(row), "the loads of a layer must not all be 0");
  }
  return file;
}

// The distinct numbers of a column, ascending.
std::vector<int> numbers_of(const CsvTable& table, const std::string& column) {
  std::set<int> numbers;
  for (std::size_t row = 0; row < table.rows(); ++row) numbers.insert(table.integer(row, column, 0, kMostNumber));
  return {numbers.begin(), numbers.end()};
}

std::size_t position(const std::vector<int>& sorted, int number) {
  return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
}

std::string where(const LoadFile& file, std::size_t step, std::size_t layer) {
  if (file.steps.size() == 1) return fmt::format("layer {}", file.layers[layer]);
  return fmt::format("step {}, layer {}", file.steps[step], file.layers[layer]);
}

void check_complete(const CsvTable& table, const LoadFile& file) {
  for (std::size_t step = 0; step < file.steps.size(); ++step) {
    for (std::size_t layer = 0; layer < file.layers.size(); ++layer) {
      const LayerLoads& loads = file.loads[step][layer];
      const auto missing = std::find(loads.begin(), loads.end(), -1.0);
      if (missing != loads.end()) {
        throw SpecError(table.file(), 0,
                        fmt::format("{} has no load of expert {}; the file has experts 0 to {}",
                                    where(file, step, layer), missing - loads.begin(), loads.size() - 1));
      }
      if (all_zero(loads)) {
        throw SpecError(table.file(), 0, fmt::format("the loads of {} must not all be 0", where(file, step, layer)));
      }
    }
  }
}

LoadFile read_long(const CsvTable& table) {
  table.expect({"step", "layer", "expert", "load"});
  const bool stepped = table.has("step");
  LoadFile file;
  file.steps = stepped ? numbers_of(table, "step") : std::vector<int>{0};
  file.layers = numbers_of(table, "layer");
  check_layers(table, file.layers.size());
  const std::vector<int> experts = numbers_of(table, "expert");
  const auto count = static_cast<std::size_t>(experts.back()) + 1;
  // Before memory is laid out for what a slip of the pen may have made a million experts of.
  if (file.steps.size() * file.layers.size() * count > 2 * table.rows()) {
    throw SpecError(table.file(), 0,
                    fmt::format("has {} rows for {} steps of {} layers of experts 0 to {}", table.rows(),
                                file.steps.size(), file.layers.size(), experts.back()));
  }
  file.loads.assign(file.steps.size(), Loads(file.layers.size(), LayerLoads(count, -1.0)));
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int expert = table.integer(row, "expert", 0, kMostNumber);
    const std::size_t step = stepped ? position(file.steps, table.integer(row, "step", 0, kMostNumber)) : 0;
    const std::size_t layer = position(file.layers, table.integer(row, "layer", 0, kMostNumber));
    double& load = file.loads[step][layer][static_cast<std::size_t>(expert)];
    if (load >= 0) {
      throw SpecError(table.file(), table.line(row),
                      fmt::format("{}, expert {} is repeated", where(file, step, layer), expert));
    }
    load = load_in(table, row, "load");
  }
  check_complete(table, file);
  return file;
}

LoadFile read_map(const CsvTable& table, const RouterLimits& limits) {
  LoadFile file;
  file.map = read_router_map(table, limits);
  file.steps = {0};
  file.layers = file.map->layers;
  file.loads = {loads_of(*file.map)};
  return file;
}

LoadFile read_form(const CsvTable& table, const RouterLimits& limits) {
  if (!table.has_header()) return read_rows(table);
  if (!table.has("token") && !table.has("load")) {
    throw SpecError(table.file(), 1,
                    "is neither numbers alone nor one of the headers 'layer,expert,load', 'step,layer,expert,load' and "
                    "'token,layer,expert0,...'");
  }
  if (table.rows() == 0) throw SpecError(table.file(), 1, "has no rows");
  return table.has("token") ? read_map(table, limits) : read_long(table);
}

}  // namespace

LoadFile read_load_file(const std::filesystem::path& path, const RouterLimits& limits) {
  LoadFile file = read_form(CsvTable(path, CsvTable::Header::unless_numbers), limits);
  if (limits.experts > 0 && file.experts() != limits.experts) {
    throw SpecError(path.string(), 0, fmt::format("has {} experts, not {}", file.experts(), limits.experts));
  }
  return file;
}

}  // namespace moeline
