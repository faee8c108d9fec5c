#include "measured/rank_trace.hpp"

namespace moeline {

std::vector<RankTrace> ranks_in(const std::string& file, const Trace& trace, const KernelMap& map) {
  const std::vector<KernelClass> classes = interpret(trace, map).classes;
  std::vector<RankTrace> ranks(trace.gpus.size());
  for (std::size_t gpu = 0; gpu < ranks.size(); ++gpu) {
    ranks[gpu].file = file;
    ranks[gpu].trace.gpus = {trace.gpus[gpu]};
    ranks[gpu].trace.time_zero_ns = trace.time_zero_ns;
    ranks[gpu].trace.names = trace.names;
    ranks[gpu].trace.groups = trace.groups;
    ranks[gpu].trace.collectives = trace.collectives;
    ranks[gpu].trace.counts_from_zero = trace.counts_from_zero;
  }
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    RankTrace& rank = ranks[trace.gpu_events[i].gpu];
    rank.trace.gpu_events.push_back(trace.gpu_events[i]);
    rank.trace.gpu_events.back().gpu = 0;
    rank.classes.push_back(classes[i]);
  }
  return ranks;
}

}  // namespace moeline
