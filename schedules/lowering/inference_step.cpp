#include "schedules/lowering/inference_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/lowering/block_release.hpp"
#include "schedules/scenario/stack_habits.hpp"

namespace moeline {

std::vector<std::string> dense_phases(const Setup& setup, const Layer& layer) {
  std::vector<std::string> phases = {"attn"};
  if (setup.scenario.phase() == WorkloadPhase::decode) phases = {"attn-0", "attn-1"};
  if (layer.attention.kind == AttentionKind::none && phases.size() > 1) phases = {"attn-1"};
  if (layer.has_ffn()) phases.emplace_back("mlp");
  return phases;
}

namespace {

// Layers of one kind that follow each other, from `first` on.
int run_length(const std::vector<Block>& blocks, std::size_t first) {
  int count = 1;
  for (std::size_t i = first + 1; i < blocks.size() && blocks[i].kind == blocks[first].kind; ++i) ++count;
  return count;
}

}  // namespace

void append_step(InferenceRank& rank, const AppendLayers& dense_layers, const AppendLayers& moe_layers) {
  const std::vector<Block>& blocks = rank.blocks();
  bool drafts = false;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    if (is_layer(block.kind)) {
      const int count = run_length(blocks, i);
      (block.kind == BlockKind::dense_layer ? dense_layers : moe_layers)(block.layer, count);
      i += static_cast<std::size_t>(count) - 1;
    } else if (block.kind == BlockKind::head) {
      rank.append_whole(drafts ? "draft_head" : "lm_head", block.layer);
    } else {
      drafts = drafts || block.kind == BlockKind::mtp;
      rank.append_whole(name_of(block.kind), block.layer);
    }
  }
}

void append_in_turn(InferenceRank& rank, const Setup& setup, int micro_batch) {
  const bool shared_beside = setup.scenario.shared_experts == SharedExperts::beside;
  const std::vector<std::string> moe_phases = setup.layer_phases();
  const auto append_layers = [&](int first, int count) {
    for (int layer = first; layer < first + count; ++layer) {
      const Layer& content = rank.content(layer);
      for (const std::string& phase : content.routed ? moe_phases : dense_phases(setup, content)) {
        const bool beside = phase == "shared" && shared_beside;
        rank.append({micro_batch, layer, phase}, beside ? StreamName::side : stream_of(phase));
        beside ? rank.leave_running() : rank.chain();
      }
    }
  };
  append_step(rank, append_layers, append_layers);
}

// A step of prefill or decode by an overlap plan, which has the orders of both streams; what waits for what is the
// model's own data flow.

namespace {

void append(const StepPhase& which, PlanEntry::Part part, StreamName stream, InferenceRank& rank) {
  switch (part) {
    case PlanEntry::Part::whole:
      return rank.append(which, stream);
    case PlanEntry::Part::issue:
      return rank.append_issue(which);
    case PlanEntry::Part::receive:
      return rank.append_receive(which);
  }
}

// One turn more on either side: what the plan has of a previous or next layer runs in, and out.
void append_moe_layers(const OverlapPlan& plan, int first, int count, InferenceRank& rank) {
  const auto append_turn = [&](const Bracket& entries, int turn, StreamName stream) {
    for (int piece = 0; piece < plan.pieces; ++piece) {
      for (const PlanEntry& entry : entries) {
        const int layer = turn + entry.layer_offset;
        if (layer < first || layer >= first + count || piece >= rank.pieces_of(entry.phase, layer)) continue;
        append({entry.micro_batch, layer, entry.phase, piece}, entry.part, stream, rank);
      }
    }
  };
  const std::vector<Bracket> communication = brackets_of(plan.communication), compute = brackets_of(plan.compute);
  for (int turn = first - 1; turn <= first + count; ++turn) {
    // Communication first: at equal start times the smaller id takes its SMs first.
    for (const Bracket& entries : communication) append_turn(entries, turn, StreamName::communication);
    for (const Bracket& entries : compute) append_turn(entries, turn, StreamName::compute);
  }
}

void append_dense_layers(const Setup& setup, int first, int count, InferenceRank& rank) {
  const int micro_batches = setup.scenario.kind().micro_batches;
  for (int layer = first; layer < first + count; ++layer) {
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      for (const std::string& phase : dense_phases(setup, rank.content(layer)))
        rank.append({micro_batch, layer, phase}, StreamName::compute);
    }
  }
}

// Phases that stand between the issue of a combine and its end, in this turn or the next, and those whose later pieces
// run beside its earlier ones.
std::vector<std::string> beside_combine(const OverlapPlan& plan) {
  const std::vector<PlanEntry>& entries = plan.compute;
  std::vector<std::string> phases;
  for (std::size_t issue = 0; issue < entries.size(); ++issue) {
    const PlanEntry& own = entries[issue];
    if (own.phase != "combine" || own.part != PlanEntry::Part::issue) continue;
    const auto is_own = [&](const PlanEntry& e) { return e.phase == own.phase && e.micro_batch == own.micro_batch; };
    for (std::size_t i = issue + 1; !is_own(entries[i % entries.size()]); ++i) {
      phases.push_back(entries[i % entries.size()].phase);
    }
    if (plan.pieces == 1 || own.bracket == 0) continue;
    for (const PlanEntry& entry : entries) {
      if (entry.bracket == own.bracket) phases.push_back(entry.phase);
    }
  }
  return phases;
}

InferenceShape shape_of(const Setup& setup, const OverlapPlan& plan) {
  const Comm& comm = setup.scenario.comm;
  InferenceShape shape{.micro_batches = setup.scenario.kind().micro_batches, .overlapped = true, .plan = plan};
  if (!comm.releases()) return shape;
  const Scenario& scenario = setup.scenario;
  const int experts = (setup.model.n_routed_experts + scenario.routing.redundant_experts) / scenario.parallelism.ep;
  const double parts = plan.pieces_by == PiecesBy::expert ? plan.pieces : 1;
  shape.releases = releases_of(experts / parts, setup.model.expert_hidden_size(),
                               static_cast<int>(setup.machine.facts.sms) - comm.num_sms);
  shape.behind = beside_combine(plan);
  return shape;
}

// Of what pieces are cut from, the least that a micro-batch has.
void check_pieces(const Setup& setup, const OverlapPlan& plan) {
  if (plan.pieces == 1) return;
  const int micro_batches = setup.scenario.kind().micro_batches;
  const bool by_expert = plan.pieces_by == PiecesBy::expert;
  const auto most_of = [&](int micro_batch) {
    const InferenceWork work = setup.inference_work({micro_batch, micro_batches, plan.split});
    return by_expert ? work.local_experts() : work.tokens();
  };
  const double most = std::min(most_of(0), most_of(micro_batches - 1));
  if (plan.pieces <= most) return;
  throw SpecError(plan.file, 0,
                  fmt::format("pieces: {} are more than the {:.0f} {}", plan.pieces, most,
                              by_expert ? "experts of a rank" : "tokens of a micro-batch"))
      .of("pieces");
}

}  // namespace

PlanContents inference_plan_contents(const Setup& setup) {
  PlanContents contents{.phases = setup.layer_phases(),
                        .halved = {},
                        .absent = {},
                        .cut = {"dispatch", "mlp", "combine"},
                        .micro_batches = setup.scenario.kind().micro_batches};
  if (dispatcher_of(setup.scenario.comm.mode).staged) contents.halved = {"dispatch", "combine"};
  if (setup.model.n_shared_experts == 0) contents.absent = {"shared"};
  return contents;
}

OverlapPlan inference_plan(const Setup& setup) {
  const Scenario& scenario = setup.scenario;
  if (scenario.plan) return *scenario.plan;
  return load_overlap_plan(habits::overlap_plan(setup), scenario.overlap, inference_plan_contents(setup));
}

Program planned_step(const Setup& setup) {
  const OverlapPlan plan = inference_plan(setup);
  check_pieces(setup, plan);
  return inference_program(setup, shape_of(setup, plan), [&](InferenceRank& rank) {
    append_step(
        rank, [&](int first, int count) { append_dense_layers(setup, first, count, rank); },
        [&](int first, int count) { append_moe_layers(plan, first, count, rank); });
  });
}

}  // namespace moeline
