// What a scenario says of communication: the keys of `comm`.
#include "schedules/scenario/keys.hpp"

namespace moeline::keys {
namespace {

bool by_deep_ep_v2(const Scenario& s) { return dispatcher_of(s.comm.mode).has_layouts; }

}  // namespace

const Table<Scenario>& comm() {
  const auto of = [](auto field, auto... rest) { return key(&Scenario::comm, field, std::move(rest)...); };
  static const Table<Scenario> kKeys = {
      of(&Comm::mode, "mode", words(words_of<CommMode>()),
         "how tokens reach experts; by default what the stack does whose kernels are used")
          .depends(),
      special<Scenario>("num_sms", either(words({"auto"}), whole(0, 4096)),
                        "SMs that the all-to-all holds, at most all but one; auto, the default: 20 in training, else "
                        "24; of hybrid_ep 32 in an NVLink domain and 16 between domains; of deepep_v2 what the library "
                        "reckons; of all_to_all 0: NCCL's channels",
                        [](const Scenario& scenario) { return Value(scenario.comm.num_sms); })
          .depends(),
      of(&Comm::topology, "topology", words(words_of<Topology>()),
         "of deepep_v2, between nodes: direct, a token once to each rank; hybrid, once to each node and from there "
         "over "
         "NVLink; by default hybrid, and direct inside a domain")
          .depends()
          .when(by_deep_ep_v2),
      of(&Comm::layout, "layout", words(words_of<RowLayout>()),
         "of deepep_v2: expanded, a row for each of a token's experts, sorted; contiguous, each token once; by default "
         "what the stack takes")
          .depends()
          .when(by_deep_ep_v2),
      of(&Comm::cpu_sync, "cpu_sync", flag(),
         "of deepep_v2: the host waits for the counts of what each rank gets; else buffers are of the worst case; by "
         "default true but in decode and in CUDA graphs")
          .depends()
          .when(by_deep_ep_v2),
      of(&Comm::dispatch, "dispatch_dtype", words({"fp8", "bf16", "nvfp4"}),
         "of tokens on the way out; the default goes by the experts' format and the mode")
          .depends()
          .when([](const Scenario& s) { return sends_tokens(s.comm.mode); }),
      of(&Comm::combine, "combine_dtype", words({"bf16"}), "of tokens on the way back"),
      of(&Comm::neighbours, "neighbours", words(words_of<Neighbours>()),
         "measured: kernels that compute beside a transfer of the normal mode slow its copies down; none: they do not"),
      of(&Comm::collectives, "collectives", words(words_of<Collectives>()),
         "between nodes: nccl, by its own cost model; ideal, at the links' peaks, for comparison"),
      of(&Comm::all_reduce, "all_reduce", words(words_of<AllReduce>()),
         "with tp above 1 in inference: stack, its own kernel up to the messages that it takes, which norms what it "
         "sums, and nccl beyond; nccl for all; by default stack where its kernels have one")
          .depends()
          .when([](const Scenario& s) { return s.parallelism.tp > 1 && s.phase() != WorkloadPhase::train; }),
      of(&Comm::indexer, "indexer", words(words_of<IndexerQueries>()),
         "with tp above 1, of prompts whose keys an indexer chooses: whole, every rank scores all queries; split, each "
         "its part, and choices are gathered; by default whole, by TensorRT-LLM split beyond 8192 tokens")
          .depends()
          .when([](const Scenario& s) { return s.comm.indexer != IndexerQueries::none; }),
      of(&Comm::context, "context", words(words_of<ContextMode>()),
         "with cp above 1: how keys reach the ranks that share a prompt or a sequence; by default all_gather, in "
         "training without windows ring; copy_engines gather without SMs, of deepep_v2 inside an NVLink domain")
          .depends()
          .when([](const Scenario& s) { return s.parallelism.cp > 1; }),
      of(&Comm::stage_sends, "stage_sends", words(words_of<StageSends>()),
         "with pp above 1: what sends from stage to stage; nccl, on SMs of its channels; rdma, of deepep_v2, without "
         "any")
          .when([](const Scenario& s) { return s.parallelism.pp > 1 && by_deep_ep_v2(s); }),
  };
  return kKeys;
}

}  // namespace moeline::keys
