// A question: which model, on which machine, doing what, in which order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "architecture/architecture.hpp"
#include "base/spec.hpp"
#include "hardware/price_book.hpp"
#include "hardware/profile.hpp"
#include "moe/graph_parts.hpp"
#include "moe/inference.hpp"
#include "moe/training.hpp"
#include "moe/training_memory.hpp"
#include "routing/routed_layer.hpp"
#include "schedules/scenario/overlap_plan.hpp"
#include "schedules/scenario/parallelism.hpp"
#include "schedules/scenario/rank_variation.hpp"
#include "schedules/scenario/schedule_kinds.hpp"
#include "schedules/scenario/workload.hpp"

namespace moeline {

struct Comm {
  CommMode mode = CommMode::normal;
  int num_sms = 0;                      ///< that transfers hold, or on which a combine is released
  Precision dispatch = Precision::fp8;  ///< that tokens travel in
  Precision combine = Precision::bf16;  ///< and their results
  Neighbours neighbours = Neighbours::measured;
  Collectives collectives = Collectives::nccl;
  AllReduce all_reduce = AllReduce::nccl;  ///< of an attention group's partial sums, in inference
  IndexerQueries indexer = IndexerQueries::none;
  ContextMode context = ContextMode::all_gather;
  // Of DeepEP's second version.
  StageSends stage_sends = StageSends::nccl;
  Topology topology = Topology::hybrid;
  RowLayout layout = RowLayout::contiguous;
  bool cpu_sync = false;

  [[nodiscard]] ElasticChoices elastic() const { return {topology, layout, cpu_sync}; }
  /// A combine starts while the GEMM before it runs, on SMs of its own.
  [[nodiscard]] bool releases() const { return mode == CommMode::low_latency && num_sms > 0; }
};

struct Routing {
  Distribution distribution = Distribution::balanced;
  double alpha = 1;                 ///< of power_law, and of skewed without experts_hit
  std::vector<double> experts_hit;  ///< of skewed: by a step's tokens, in all MoE layers or in each; empty: by alpha
  std::vector<double> skews;  ///< of skewed: of each rank's experts (ExpertChoice), for all MoE layers or for each
  std::string file;           ///< of loads or a router map (routing/load_file.hpp)
  int step = -1;              ///< of those that a file of loads has, as numbered there; -1: the last
  int placed_before = -1;     ///< experts are placed by the loads of the steps before this one; -1: `step`
  PlacementRule placement = PlacementRule::in_order;
  std::vector<int> forward_rows, backward_rows;
  int redundant_experts = 0;  ///< copies of experts, of all ranks together
  double rows_spread = 0;     ///< standard deviation of a rank's expert rows in a layer, over their mean

  /// Tokens choose experts at random.
  [[nodiscard]] bool scatters() const {
    return distribution == Distribution::balanced || distribution == Distribution::given || is_skewed();
  }
  [[nodiscard]] bool is_skewed() const { return distribution == Distribution::skewed; }
  [[nodiscard]] double skew_of(int moe_layer) const {
    return skews.empty() ? 0 : skews[static_cast<std::size_t>(moe_layer) % skews.size()];
  }
  /// Of each expert, and not alike.
  [[nodiscard]] bool has_loads() const {
    return distribution == Distribution::power_law || distribution == Distribution::file;
  }
};

/// What a rank of a pipeline waits for others of its expert-parallel group, which are not simulated: us, on average, by
/// transfer (expected_waits.hpp), of passes alone, and of F&B. Empty: nothing.
struct ExpectedWaits {
  std::map<std::string, double> alone_us, overlapped_us;
};

/// One of the parts of a step of prefill or decode.
struct MicroBatch {
  int number = 0, of = 1;
  double first_share = 0.5;  ///< of two: what the first has of the requests, or of the tokens of prompts

  /// What it has of so many. Shares are rounded up: the first has one at least, and leaves the other one of two.
  [[nodiscard]] int part_of(int whole) const;
};

/// Equal MoE layers that are not simulated (fold.hpp), and those that stand for them.
struct Fold {
  int left_out = 0;  ///< whole periods
  int period = 1;    ///< layers
  int first = 0;     ///< of the period that stands for them, in order of execution
  /// How many layers one stands for.
  [[nodiscard]] int repeats(int layer) const {
    return layer >= first && layer < first + period ? 1 + left_out / period : 1;
  }
};

/// What the slots of a pipeline take, ms. B is the full backward, W its weight part. 0: the schedule has none.
struct SlotCosts {
  double f = 0, b = 0, w = 0, f_and_b = 0;
};

/// Number formats that a scenario asks for, "checkpoint" where the model's own count.
struct PrecisionWords {
  std::string linear = "checkpoint", experts = "checkpoint", kv_cache = "checkpoint", expert_inputs = "stack";
};

struct MemoryChoices {
  Stack stack = Stack::none;  ///< whose rule fills the memory
  double fraction = 0.9;      ///< of a GPU's memory, what that fills: of what, FractionOf says
  int told_batch = 0;         ///< requests that an attention group may run; 0: the stack's own limit. No key
};

/// As written, with every default resolved. Sizes are per GPU unless the name says otherwise.
struct Scenario {
  std::string file;
  PrecisionWords precision;
  std::string model, hardware, kernels, schedule;
  std::vector<std::string> hardware_overrides;  ///< "nic_GBps=100"
  Parallelism parallelism;
  Workload workload;
  Comm comm;
  AttentionBackend attention_backend = AttentionBackend::usual;
  MoeBackend moe_backend = MoeBackend::usual;
  SharedExperts shared_experts = SharedExperts::in_turn;
  Routing routing;
  int layers = 0;            ///< MoE layers simulated
  bool whole_model = false;  ///< inference and pipelines: with everything else of the model; else those layers alone
  std::string overlap = "default";          ///< or the path of a plan; of a pipeline also "none" and "combined"
  std::shared_ptr<const OverlapPlan> plan;  ///< in the place of that which `overlap` names: a search tries many
  Launch launch = Launch::stream;
  GraphParts graphs;                 ///< of training's layers; the host launches the rest
  Level level = Level::by_operator;  ///< of a pipeline
  RankChoice ranks = RankChoice::automatic;
  Jitter jitter = Jitter::measured;  ///< of kernels' times
  ClockChoice clock = ClockChoice::sustained;
  double speed_spread = 0;  ///< standard deviation of the GPUs' speeds, over their mean
  MemoryChoices memory;
  int seed = 1;
  int samples = 1;  ///< of everything that is drawn
  TrainingChoices training;
  std::vector<int> stage_layers;         ///< decoder layers of each stage; of training empty: balanced
  std::optional<SlotCosts> slot_costs;   ///< of a whole pipeline: then nothing else takes time
  std::vector<std::string> without_use;  ///< keys that stand in the file and do not enter

  [[nodiscard]] const ScheduleKind& kind() const { return schedule_named(schedule); }
  [[nodiscard]] WorkloadPhase phase() const { return phase_of(workload); }
};

/// A whole pipeline with the operators of its slots.
/// "deepep_v2 (hybrid, expanded rows), 24 communication SMs": what of it one must know to read a prediction. May be
/// empty.
[[nodiscard]] std::string short_name(const Comm& comm);

[[nodiscard]] bool is_training_step(const Scenario& scenario);

/// Of training.
[[nodiscard]] StageSplit stage_split(const Scenario& scenario);

/// Of `overlap`: F and B of 1F1B side by side.
inline constexpr const char* kCombined = "combined";

/// A forward pass runs beside a backward pass: in DualPipe and its chunk, and in 1F1B where it is asked for.
[[nodiscard]] bool overlaps_passes(const Scenario& scenario);

/// Prefill or decode on a pipeline of stages.
[[nodiscard]] bool is_staged(const Scenario& scenario);

/// How often a stage runs before each request has a new token, or all of a prompt is computed: so many micro-batches of
/// requests go round, or chunks of a prompt follow each other. 1 without stages.
[[nodiscard]] int passes(const Scenario& scenario);

/// Of one pipeline: what a step of training has, over dp.
[[nodiscard]] int micro_batches(const Scenario& scenario);
/// Tokens of a sequence, on average over the micro-batches of a pipeline. REQUIRES: the workload is one of training.
[[nodiscard]] double mean_seq_len(const Scenario& scenario);

struct Machine {
  std::string name;
  MachineFacts facts;
};

/// A scenario with everything it names loaded and everything derived from it alone.
struct Setup {
  Scenario scenario;
  Architecture model;
  Machine machine;
  std::string unused_learnt_set;  ///< of another phase than the scenario's: the set below counts. Empty: none
  Spread spread;
  std::shared_ptr<PriceBook> prices = std::make_shared<PriceBook>();  ///< of this machine and its kernels; never null
  std::vector<RoutedLayer> routed;  ///< of each MoE layer, where experts are not loaded alike
  RankVariation variation;
  bool every_rank = false;  ///< all that wait for each other are simulated, else rank 0
  ExpectedWaits waits;      ///< where one rank is simulated
  Fold fold;
  double clock = 1;        ///< of the SMs, over the boost clock: what a cap on power leaves (sustained_clock.hpp)
  double rows_factor = 1;  ///< times as many expert rows on each rank as the scenario says
  bool free_communication = false;  ///< null model: transfers and barriers take no time, SMs or bandwidth

  [[nodiscard]] const KernelSet& kernels() const { return prices->kernels(); }
  /// All ranks that wait for each other lie in one NVLink domain.
  [[nodiscard]] bool in_one_domain() const { return scenario.parallelism.group() <= machine.facts.gpus_per_node; }
  /// Work of a rank in the forward or backward pass of a main layer, counted in order of execution; or with a piece of
  /// the tokens, whose attention is then not what it looks like.
  [[nodiscard]] LayerWork layer_work(bool forward, int layer, int rank = 0, int micro_batch = 0,
                                     const Piece& tokens = {}) const;
  /// The same of any block.
  [[nodiscard]] LayerWork block_work(bool forward, const Block& block, int rank = 0, int micro_batch = 0,
                                     const Piece& tokens = {}) const;
  /// Work of a rank with a micro-batch of a step of prefill or decode, in a MoE layer; or with a piece of its tokens,
  /// whose attention is then not what it looks like.
  [[nodiscard]] InferenceWork inference_work(const MicroBatch& micro_batch, int moe_layer = 0, int rank = 0,
                                             const Piece& tokens = {}) const;
  /// With what fused experts in MXFP4 are multiplied, on tensor cores that have FP4.
  [[nodiscard]] Precision mxfp4_rows() const;
  /// One rank stands for all, and waits for those that are not there.
  [[nodiscard]] bool expects_waits() const { return !every_rank && !free_communication; }
  [[nodiscard]] int simulated_ranks() const { return every_rank ? scenario.parallelism.group() : 1; }
  /// Kernels' times are drawn, not their means.
  [[nodiscard]] bool draws_jitter() const { return every_rank && scenario.jitter == Jitter::measured; }
  /// Mean expert rows of the other ranks over those given to rank 0; 1 where none are.
  [[nodiscard]] double others_rows(bool forward, int layer) const;
  /// MoE layers that are simulated.
  [[nodiscard]] int simulated_layers() const { return scenario.layers - fold.left_out; }
  /// Of inference, in order of execution.
  [[nodiscard]] int first_main_layer() const { return scenario.whole_model ? model.first_main_layer() : 0; }
  /// Of a simulated rank's kernels, in what goes by the SMs' clock.
  [[nodiscard]] double slowness(int rank) const {
    return variation.slowness.empty() ? 1 : variation.slowness[static_cast<std::size_t>(rank)];
  }
  /// Expert rows differ between layers and ranks: by what is known of them, or by chance.
  [[nodiscard]] bool loads_differ() const {
    return !routed.empty() || !variation.forward_rows.empty() || scenario.routing.skews.size() > 1;
  }
  [[nodiscard]] bool scatters() const { return every_rank && scenario.routing.scatters(); }
  [[nodiscard]] bool experts_differ() const { return loads_differ() || scatters(); }
  /// What a rank gets in a layer, for a micro-batch or direction, or a piece of its tokens: of which draw of chance
  /// (times the ranks that share the experts) which rank's part. There are 512 parts, or 8 draws: so many are priced,
  /// however many layers there are. 0 without chance.
  [[nodiscard]] int scatter_draw(int part, int layer, int rank, int piece = 0) const;
  /// Of a step of decode, the requests of the attention group that has most.
  [[nodiscard]] int most_requests() const;
  /// Requests differ between ranks.
  [[nodiscard]] bool requests_differ() const { return !variation.kv_len.empty() || !variation.requests.empty(); }
  /// Of a main layer.
  [[nodiscard]] std::vector<std::string> layer_phases() const;
  /// How often the step runs an MTP module: each time drafts one token for every request.
  [[nodiscard]] int drafted_tokens() const;
};

/// Tokens of a step that go through a layer's experts together, of all ranks that share them. REQUIRES: inference.
[[nodiscard]] double tokens_of_experts(const Scenario& scenario);

/// How a token chooses experts and their copies on the ranks that share them.
[[nodiscard]] ExpertChoice expert_choice(const Scenario& scenario, const Architecture& model, double skew);

/// What is placed where in each MoE layer.
[[nodiscard]] PlacementShape placement_shape(const Scenario& scenario, const Architecture& model, int gpus_per_node);

/// The same question with another seed: routing and ranks are drawn anew.
void draw(Setup& setup, int seed);

/// `assignments`: "--set" overrides, "comm.num_sms=24" or "hardware.nic_GBps=100".
/// Throws SpecError (file, line, key, nearest valid name), also where the schedule is left open (candidates.hpp).
[[nodiscard]] Setup load_setup(const std::filesystem::path& path, const std::vector<std::string>& assignments = {});
/// The same of a scenario that came from elsewhere; its paths are relative to the file it names.
[[nodiscard]] Setup read_setup(Spec spec, const std::vector<std::string>& assignments = {});

}  // namespace moeline
