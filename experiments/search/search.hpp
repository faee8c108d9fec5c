// The best order of a plan's phases, with the SMs of communication and the phases of the side stream, if asked for;
// every one that counts is simulated. What no order can beat is a bound.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

struct SearchRequest {
  std::filesystem::path scenario;
  std::vector<std::string> assignments;
  bool orders = true;
  std::vector<int> num_sms;  ///< of communication; empty: the scenario's
  bool sides = false;        ///< every set of phases on the side stream, of training
  std::size_t most = 4000;   ///< plans that are simulated, where there are too many to try them all
  double seconds = 0;        ///< after which nothing more is begun; 0: no limit
  std::uint64_t seed = 1;
  std::size_t workers = 1;
};

/// us of a layer; published: by the scenario's plan.
struct PlanTimes {
  double published = 0, best = 0;
};

struct SearchResult {
  PlanTimes us;         ///< of one rank that stands for all
  double bound_us = 0;  ///< that no plan searched for goes below
  OverlapPlan plan;     ///< the best
  std::string text;     ///< of it, as `simulate --set overlap=FILE` reads it; comments say what it was found for
  int num_sms = 0;
  std::size_t evaluated = 0;   ///< simulated
  std::size_t pruned = 0;      ///< that no neighbours' absence would make faster than the published plan, or the best
  std::size_t impossible = 0;  ///< orders in which something waits for itself
  std::size_t faster = 0;      ///< simulated plans that beat the published one
  bool proven = false;         ///< nothing searched for is faster: by trying everything, or by the bound
  bool exhaustive = false;     ///< every plan was simulated, pruned or impossible: the best is the best there is
  double plans = 0;            ///< that there are at most
  std::optional<PlanTimes> all_ranks_us;  ///< with all ranks and samples, where the scenario asks for them
};

/// Throws SpecError: of the scenario, or where its schedule has no plan.
[[nodiscard]] SearchResult search(const SearchRequest& request, const Progress& progress);

}  // namespace moeline
