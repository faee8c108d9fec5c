// What a scenario gives one rank to do.
#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "routing/drawn_loads.hpp"
#include "schedules/scenario/kernel_habits.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {
namespace {

// The longer requests of a batch stay for many steps, and every rank waits for the one that has the most keys: it is
// the rank that is simulated.
double longest_mean_kv(const DecodeWorkload& w, int ep) {
  if (w.kv_len_spread == 0) return w.kv_len;
  return w.kv_len + expected_maximum(ep) * w.kv_len_spread / std::sqrt(w.batch_size);
}

double varied_rows(const RankVariation& variation, bool forward, int layer, int rank) {
  const RankVariation::ByLayer& rows = forward ? variation.forward_rows : variation.backward_rows;
  return rows[static_cast<std::size_t>(layer) % rows.size()][static_cast<std::size_t>(rank)];
}

// Of a rank and a layer, on average over what chance makes of them.
ExpertLoad mean_load(const Setup& setup, double tokens, int moe_layer) {
  const Routing& routing = setup.scenario.routing;
  const int ep = setup.scenario.parallelism.ep, copies = routing.redundant_experts;
  if (!routing.scatters()) return exact_load(setup.model, tokens, ep, setup.spread, copies);
  return balanced_load(setup.model, tokens, ep, setup.spread, copies, routing.skew_of(moe_layer));
}

// What chance makes of it, where every rank is simulated. `draw`: of Setup::scatter_draw().
ExpertLoad scattered(const Setup& setup, const ExpertLoad& load, double local_experts, int draw) {
  if (!setup.scatters()) return load;
  constexpr std::uint64_t kScatter = std::uint64_t{1} << 40U;  // beyond the sequences of rank_variation.cpp
  const int ranks = setup.scenario.parallelism.ep;
  const LoadDraw of_all{static_cast<std::uint64_t>(setup.scenario.seed),
                        kScatter + static_cast<std::uint64_t>(draw / ranks)};
  return drawn_load(load, static_cast<int>(local_experts), of_all, draw % ranks);
}

// `tokens` of prompts; of one that its micro-batches share, the later one sees the earlier one's keys.
// `before`: tokens of the micro-batch in front.
Sequences first_chunks(const PrefillWorkload& w, int before, int tokens) {
  const int wanted = new_tokens_per_prompt(w);
  const int query_len = std::max(1, std::min(wanted, tokens));
  Sequences prompts;
  prompts.query_len = query_len;
  prompts.requests = static_cast<double>(tokens) / query_len;
  prompts.kv_len = w.cached_len + query_len + (query_len < wanted ? before : 0);
  return prompts;
}

// Of a prompt whose chunks follow each other through a pipeline.
Sequences chunk_of_prompt(const PrefillWorkload& w, int chunk) {
  if (steps_per_prompt(w) == 1) return first_chunks(w, 0, w.tokens);
  const int done = w.cached_len + chunk * w.tokens;
  const int tokens = std::min(w.tokens, w.prompt_len - done);
  return {.requests = 1, .query_len = 1.0 * tokens, .kv_len = 1.0 * done + tokens};
}

// With as many keys as chunks of a prompt see on average: the middle one, where all are whole.
Sequences mean_chunks(const PrefillWorkload& w) {
  Sequences prompts = first_chunks(w, 0, w.tokens);
  prompts.kv_len = w.cached_len + (w.prompt_len - w.cached_len + prompts.query_len) / 2;
  return prompts;
}

}  // namespace

double tokens_of_experts(const Scenario& scenario) {
  const Parallelism& split = scenario.parallelism;
  double tokens = 0;  // of a rank that has tokens of its own
  if (const PrefillWorkload* w = prefill_of(scenario.workload)) tokens += 1.0 * w->tokens / split.cp;
  if (const DecodeWorkload* w = decode_of(scenario.workload)) tokens += 1.0 * w->batch_size * w->query_len;
  return tokens * split.token_groups();
}

ExpertChoice expert_choice(const Scenario& scenario, const Architecture& model, double skew) {
  return {model.num_experts_per_tok, model.n_routed_experts + scenario.routing.redundant_experts,
          scenario.parallelism.ep, skew};
}

double kv_transfer_MB(const Workload& workload) {
  const PrefillWorkload* prefill = prefill_of(workload);
  const DecodeWorkload* decode = decode_of(workload);
  return (prefill != nullptr ? prefill->kv_transfer_MB : 0) + (decode != nullptr ? decode->kv_transfer_MB : 0);
}

int new_tokens_per_prompt(const PrefillWorkload& workload) {
  return std::min(workload.prompt_len - workload.cached_len, workload.tokens);
}

int steps_per_prompt(const PrefillWorkload& workload) {
  return (workload.prompt_len - workload.cached_len + workload.tokens - 1) / workload.tokens;
}

double tokens_per_request(const DecodeWorkload& workload) {
  double tokens = 1;
  double accepted = 1;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(workload.query_len); ++i) {
    accepted *= workload.mtp_acceptance[std::min(i, workload.mtp_acceptance.size() - 1)];
    tokens += accepted;
  }
  return tokens;
}

// Ranks are alike: which of a draw is which of a layer is drawn, too.
int Setup::scatter_draw(int part, int layer, int rank, int piece) const {
  if (!scatters()) return 0;
  constexpr int kLoads = 512, kFewestDraws = 8;
  constexpr std::uint64_t kMostParts = 4;
  constexpr unsigned kPieces = 32,
                     kRanks = 20;  // the first bit of the piece, above those of the place, and of the ranks
  const auto place = static_cast<std::uint64_t>(layer) * kMostParts + static_cast<std::uint64_t>(part);
  const std::uint64_t drawn = scrambled(static_cast<std::uint64_t>(scenario.seed) << 40U ^
                                        static_cast<std::uint64_t>(piece) << kPieces ^ place);
  const int ranks = scenario.parallelism.ep;
  const int draws = std::max(kFewestDraws, kLoads / ranks);
  const auto number = static_cast<int>((drawn >> kRanks) % static_cast<std::uint64_t>(draws));
  const auto first = static_cast<int>(drawn % static_cast<std::uint64_t>(ranks));
  return number * ranks + (first + rank) % ranks;
}

namespace {

// What the rank's experts get of the tokens of the ranks that it exchanges them with.
void give_load(const Setup& setup, bool forward, int layer, int rank, const Piece& tokens, LayerWork& work) {
  const Architecture& model = setup.model;
  const Routing& choices = setup.scenario.routing;
  const int of_experts = rank / work.moe_tp % work.ep;
  if (!setup.routed.empty()) {
    const RoutedLayer& routing = setup.routed[static_cast<std::size_t>(layer) % setup.routed.size()];
    work.spread = routing.spread;
    work.load = load_of(routing, of_experts, work.own_tokens(), model.num_experts_per_tok);
    return;
  }
  work.spread = setup.spread;
  const std::vector<int>& given = forward ? choices.forward_rows : choices.backward_rows;
  const bool is_given = !given.empty() && rank == 0;
  work.load = is_given ? given_load(model, given[static_cast<std::size_t>(layer)], work.ep, setup.spread)
                       : mean_load(setup, work.own_tokens(), layer);
  const bool varies = !setup.variation.forward_rows.empty() && !is_given;
  const double share = is_given ? 1.0 / tokens.count : 1;
  const double factor =
      share * setup.rows_factor * (varies ? varied_rows(setup.variation, forward, layer, of_experts) : 1);
  if (factor != 1) work.load = scaled(work.load, factor, work.local_experts());
  const int draw = setup.scatter_draw(forward ? 0 : 1, layer, of_experts, tokens.index);
  work.load = scattered(setup, work.load, work.local_experts(), draw);
}

}  // namespace

LayerWork Setup::layer_work(bool forward, int layer, int rank, int micro_batch, const Piece& tokens) const {
  LayerWork work;
  work.model = model;
  work.choices = scenario.training;
  work.micro_batch_size = as_train(scenario.workload).micro_batch_size;
  work.seq_len = tokens.size_of(seq_len_of(as_train(scenario.workload), micro_batch));
  work.tp = scenario.parallelism.tp;
  work.cp = scenario.parallelism.cp;
  work.ep = scenario.parallelism.ep;
  work.moe_tp = scenario.parallelism.moe_tp;
  work.mode = scenario.comm.mode;
  work.elastic = scenario.comm.elastic();
  work.context = scenario.comm.context;
  work.gpus_per_node = static_cast<int>(machine.facts.gpus_per_node);
  work.content = model.layer(model.first_main_layer() + layer % model.main_layers());
  if (model.n_routed_experts == 0) return work;
  give_load(*this, forward, layer, rank, tokens, work);
  // Ranks that share experts have each other's rows.
  if (work.moe_tp > 1) work.load = scaled(work.load, work.moe_tp, work.local_experts());
  return work;
}

LayerWork Setup::block_work(bool forward, const Block& block, int rank, int micro_batch, const Piece& tokens) const {
  LayerWork work = layer_work(forward, block.layer, rank, micro_batch, tokens);
  work.kind = block.kind;
  work.content = block.content;
  return work;
}

double Setup::others_rows(bool forward, int layer) const {
  if (scenario.routing.forward_rows.empty()) return 1;
  const LayerWork given = layer_work(forward, layer);
  return balanced_load(model, given.own_tokens(), given.ep, spread).valid / given.load.valid;
}

int MicroBatch::part_of(int whole) const {
  if (of != 2) return whole / of + (number < whole % of ? 1 : 0);
  constexpr double kRounding = 1e-9;
  const int least = std::min(1, whole);
  const int first =
      std::clamp(static_cast<int>(std::ceil(whole * (first_share - kRounding))), least, std::max(least, whole - 1));
  return number == 0 ? first : whole - first;
}

Precision Setup::mxfp4_rows() const {
  const std::string& asked = scenario.precision.expert_inputs;
  return asked == "stack" ? habits::mxfp4_rows(*this) : precision_named(asked);
}

InferenceWork Setup::inference_work(const MicroBatch& micro_batch, int moe_layer, int rank, const Piece& tokens) const {
  const auto part = [&](int whole) { return tokens.size_of(micro_batch.part_of(whole)); };
  const auto before = [&](int whole) {
    const MicroBatch first{0, micro_batch.of, micro_batch.first_share};
    return micro_batch.number * tokens.size_of(first.part_of(whole));
  };
  const Parallelism& split = scenario.parallelism;
  const auto of_group = static_cast<std::size_t>(rank / split.attention_ranks());
  InferenceWork work;
  work.model = model;
  if (const PrefillWorkload* w = prefill_of(scenario.workload)) {
    const bool mixed = scenario.phase() == WorkloadPhase::mixed;
    work.prefill = mixed                 ? mean_chunks(*w)
                   : is_staged(scenario) ? chunk_of_prompt(*w, micro_batch.number)
                                         : first_chunks(*w, before(w->tokens), part(w->tokens));
  }
  work.prefill.query_len /= split.cp;
  double mean_tokens = work.prefill.tokens();  // of the ranks that have tokens of their own
  if (const DecodeWorkload* w = decode_of(scenario.workload)) {
    const int requests = variation.requests.empty() ? w->batch_size : variation.requests[of_group];
    work.decode.requests = part(requests);
    work.padding = std::max(0.0, part(std::max(requests, w->graph_batch)) - work.decode.requests);
    const bool routes_padding = w->graph_batch > 0 && habits::routes_padding(*this);
    work.routes_padding = work.padding > 0 && routes_padding;
    work.decode.query_len = w->query_len;
    work.decode.kv_len = !every_rank                ? longest_mean_kv(*w, split.attention_groups())
                         : variation.kv_len.empty() ? w->kv_len
                                                    : variation.kv_len[of_group];
    mean_tokens += part(routes_padding ? w->graph_batch : w->batch_size) * w->query_len;
  }
  work.has_fp4 = machine.facts.fp4_tflops > 0;
  work.mxfp4_rows = mxfp4_rows();
  work.mode = scenario.comm.mode;
  work.elastic = scenario.comm.elastic();
  work.dispatch = scenario.comm.dispatch;
  work.experts_choose = scenario.moe_backend == MoeBackend::trtllm_gen;
  work.expert_padding = habits::expert_padding(*this);
  work.kernels = habits::small_kernels(*this);
  work.shared_beside = scenario.shared_experts == SharedExperts::beside;
  work.tp = split.tp;
  work.cp = split.cp;
  work.context = scenario.comm.context;
  work.ep = split.ep;
  work.moe_tp = split.moe_tp;
  work.splits_indexer = scenario.comm.indexer == IndexerQueries::split;
  work.most_custom_bytes = habits::largest_custom_all_reduce(*this);
  work.redundant_experts = scenario.routing.redundant_experts;
  work.gpus_per_node = static_cast<int>(machine.facts.gpus_per_node);
  if (model.n_routed_experts == 0) return work;
  // All ranks' tokens over the ranks that share a layer's experts.
  const double tokens_of_rank = mean_tokens * split.token_groups() / split.ep;
  const int of_experts = rank / split.moe_tp;
  if (!routed.empty()) {
    const RoutedLayer& routing = routed[static_cast<std::size_t>(moe_layer) % routed.size()];
    work.spread = routing.spread;
    work.load = load_of(routing, of_experts, tokens_of_rank, model.num_experts_per_tok);
    return work;
  }
  work.spread = spread;
  work.load = mean_load(*this, tokens_of_rank, moe_layer);
  const double factor =
      rows_factor * (variation.forward_rows.empty() ? 1 : varied_rows(variation, true, moe_layer, of_experts));
  if (factor != 1) work.load = scaled(work.load, factor, work.local_experts());
  work.load = scattered(*this, work.load, work.local_experts(),
                        scatter_draw(micro_batch.number, moe_layer, of_experts, tokens.index));
  return work;
}

std::vector<std::string> Setup::layer_phases() const {
  return inference_phases(model, scenario.phase() == WorkloadPhase::decode, scenario.comm.mode);
}

int Setup::most_requests() const {
  const std::vector<int>& of_groups = variation.requests;
  return of_groups.empty() ? decode_of(scenario.workload)->batch_size
                           : *std::max_element(of_groups.begin(), of_groups.end());
}

int Setup::drafted_tokens() const {
  const DecodeWorkload* decode = decode_of(scenario.workload);
  return decode != nullptr && model.num_nextn_predict_layers > 0 ? decode->query_len - 1 : 0;
}

}  // namespace moeline
