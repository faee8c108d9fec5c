// What training, prefill and decode alike give a rank to do in one block of a model.
#pragma once

#include "architecture/architecture.hpp"
#include "routing/routing.hpp"

namespace moeline {

struct RankWork {
  Architecture model;
  int ep = 64;
  int gpus_per_node = 8;
  Spread spread;    ///< of tokens over nodes and ranks
  ExpertLoad load;  ///< of this rank's experts
};

}  // namespace moeline
