// One kernel of the model, as shapes, FLOPs and bytes: what it does, not yet how long it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "moe/families.hpp"

namespace moeline {

/// Why a kernel is there. Training may be set up to do without the last two (moe/training.hpp).
enum class Purpose {
  necessary,
  recompute,  ///< forward work repeated in the backward pass instead of kept
  storage,    ///< saves or restores an activation in fewer bits than BF16
};

/// Which part of a low-latency transfer: kernels on the compute stream send and receive, the wire holds no SM.
enum class Stage { whole, issue, wire, receive };

/// Bytes and copies of one rank's part in an all-to-all.
struct Traffic {
  int ranks = 0;               ///< that take part; of collectives all GPUs between the first and the last of them
  double neighbour_nodes = 0;  ///< of collectives: nodes from a rank to the one that it sends to; 0: in its own
  double rdma_bytes = 0;       ///< to every destination node, the own one included (what DeepEP's bandwidths count)
  double wire_bytes = 0;       ///< of these, over the NIC: to other nodes, each way
  double nvlink_bytes = 0;     ///< within the node, each way
  double copied_bytes = 0;     ///< through the SMs: RDMA and NVLink copies, own rank included
  double read_bytes = 0;       ///< by the SMs, where it is told apart from `copied_bytes`, which they write then
  double summed_bytes = 0;     ///< the same of rows that are summed up as they are read
  double tokens = 0;           ///< that the rank sends
  double record_bytes = 0;     ///< of one copy of a token
  double payload_bytes = 0;    ///< of these, its numbers and their scales
  bool unequal = false;        ///< ranks get different amounts; bytes are those of the busiest
  Stage stage = Stage::whole;

  // What the tables of serving stacks go by.
  int members = 0;             ///< of a collective: ranks that take part
  int members_per_node = 0;    ///< of these
  double message_bytes = 0;    ///< of a collective, as nccl-tests count them: what a rank holds of the longer side
  double hidden = 0;           ///< numbers of a token
  double top_k = 0;            ///< experts that it is sent to
  double ranks_per_token = 0;  ///< that they lie on, the own one included, times what the busiest rank gets more
  double experts = 0;          ///< of all ranks

  bool operator==(const Traffic&) const = default;
};

/// One attention kernel: `batch` sequences, each with `query_len` queries that see up to `kv_len` keys.
struct AttentionShape {
  double batch = 0;
  double heads = 0;
  double kv_heads = 0;  ///< 1 for absorbed MLA
  double query_len = 0;
  double kv_len = 0;  ///< keys of the last query: cached ones and its own; at most the sliding window
  double qk_dim = 0;  ///< per head
  double v_dim = 0;
  double window = 0;                  ///< sliding window that some query of a prefill does not see past; 0: none
  Precision math = Precision::bf16;   ///< that queries are multiplied in
  Precision cache = Precision::bf16;  ///< of the KV cache

  bool operator==(const AttentionShape&) const = default;
};

/// What a kernel does in a layer of fused experts.
enum class ExpertRole {
  none,
  routing,
  permute,
  gate_up,
  activation,
  down,
  finalise,
  layer,  ///< all of it
};

/// How the rows of a layer of fused experts come and go.
enum class ExpertLayout {
  fused,       ///< from the tokens of all ranks, and back to them
  masked,      ///< as DeepEP's low-latency mode leaves them: a buffer for each expert, cast and permuted on the way
  contiguous,  ///< as its normal mode does: expert by expert, each padded to whole tiles
  mega,        ///< from the ranks' tokens and back, over NVLink, all in one kernel (DeepGEMM's MegaMoE)
};

/// One rank's part of a layer of routed experts that a serving stack runs as one body of kernels.
struct ExpertShape {
  ExpertRole role = ExpertRole::none;
  double tokens = 0;  ///< of all ranks of the EP group
  /// Distinct tokens that a dispatch brought, into a buffer that has room for all; 0: all are there.
  double received = 0;
  double hidden = 0;
  double width = 0;  ///< of an expert on this rank: the model's over moe_tp
  double top_k = 0;
  double experts = 0;  ///< of the model, copies included
  double ep = 1;
  double gate = 2;  ///< matrices before the activation: 2 gated, 1 not
  Precision weights = Precision::bf16;
  Precision math = Precision::bf16;  ///< that rows are multiplied in, quantised to it where it is below BF16
  ExpertLayout layout = ExpertLayout::fused;
  std::optional<double> rows{};  ///< that the rank's experts get; null: those of balanced loads, one at least
  std::optional<double> hit{};   ///< local experts that get any; null: as many as balanced loads give rows to
  bool eager = false;  ///< with what a host takes that launches the kernels one by one; of the contiguous layout alone

  bool operator==(const ExpertShape&) const = default;
};

inline constexpr double kScoreBytes = 4;  ///< of a router's score

struct Operator {
  std::string name;
  std::string module;  ///< that it is part of (module_names.hpp)
  Family family = Family::small;
  double m = 0, n = 0, k = 0;     ///< of GEMMs; m counts the rows of all groups, padded where the layout pads
  double groups = 1;              ///< GEMMs in one kernel: local experts, or heads
  int streams = 1;                ///< like GEMMs that run at a time, this one among them, each on a stream of its own
  std::vector<int> group_rows{};  ///< rows of each group where they differ
  double expected_rows = 0;       ///< of a group, that the kernel's tile is chosen for, where they differ
  double rows_deviation = 0;      ///< standard deviation of a group's rows, by chance
  double flops = 0;
  double bytes = 0;             ///< least memory traffic: every tensor once
  double items = 0;             ///< what routing kernels go through: tokens x experts, or rows
  int blocks = 0;               ///< thread blocks where they are fewer than the SMs; 0: more than enough
  double recomputed_flops = 0;  ///< of `flops`: forward work repeated in the backward pass, or on other ranks
  double padding_flops = 0;     ///< of `flops`: rows that only fill tiles, or a captured graph
  double graph_flops = 0;       ///< of `padding_flops`: rows of a captured graph that no request has
  Purpose purpose = Purpose::necessary;
  bool of_weights = false;  ///< alone: of a phase in pieces the first does it for all
  bool parallel = false;    ///< independent of its neighbours: may run on a second stream beside them
  bool beside = false;      ///< a message to a neighbour, which may start once what is before it in its phase has ended
  int awaits = 0;           ///< how many of this phase's `beside` messages must have arrived before this kernel starts
  bool reads_counts = false;             ///< the host reads what each rank will get before it launches the kernel
  std::optional<Precision> precision{};  ///< that its tensor cores multiply; else its family's
  std::string measured_as{};  ///< family of a serving stack's tables that it belongs to, "linear_fp8"; "": none
  bool without_sms = false;   ///< a transfer by NICs and copy engines alone
  bool hot = false;           ///< timed again and again on the same operands, some of which L2 then holds
  AttentionShape attention;
  ExpertShape experts;
  Traffic traffic;

  bool operator==(const Operator&) const = default;

  /// That pass over memory. Kernels without bytes are told by the scores that they go through.
  [[nodiscard]] double passed_bytes() const { return bytes > 0 ? bytes : items * kScoreBytes; }
};

[[nodiscard]] inline Precision precision_of(const Operator& op) {
  return op.precision ? *op.precision : row_of(op.family).precision;
}

}  // namespace moeline
