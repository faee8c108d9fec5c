// What the kinds of attention put before their cores, and the cores themselves, in prefill and decode.
#pragma once

#include "moe/inference.hpp"
#include "moe/inference_kernels.hpp"

namespace moeline {

/// Of a rank: `attention` has its heads.
struct AttentionWork {
  const InferenceWork& work;
  LayerAttention attention;
};

// Multi-head latent attention, and with an indexer attention to the keys that it chooses.
void project_latents(Linear& linear, const AttentionWork& of);
void attend_latents(Linear& linear, const AttentionWork& of);

// One latent for all heads, over a window and over compressed tokens.
void project_compressed(Linear& linear, const AttentionWork& of);
void attend_compressed(Linear& linear, const AttentionWork& of);

// Grouped-query attention, with windows, chunks, gates.
void project_groups(Linear& linear, const AttentionWork& of);
void attend_groups(Linear& linear, const AttentionWork& of);

// Those that keep a state.
void project_state(Linear& linear, const AttentionWork& of);
void update_state(Linear& linear, const AttentionWork& of);

// Scores of all keys by an indexer, and the choice of the best.
void choose_keys(Linear& linear, const AttentionWork& of);
/// The keys that a query attends to at most; 0: all.
[[nodiscard]] double most_keys(const LayerAttention& attention);
/// There is an indexer, and sequences with more keys than it chooses.
[[nodiscard]] bool chooses(const LayerAttention& attention, const Sequences& sequences);

/// Queries and keys of some sequences, all of them attended to.
[[nodiscard]] AttentionShape core_shape(const AttentionWork& of, const Sequences& sequences);

/// Of the queries that a rank has of a prompt, dealt out among `cp`: the keys of its last one, as if they followed each
/// other in the middle. With `blocks` of the keys apart, each query sees the same share of every block on average.
[[nodiscard]] double keys_of_part(const InferenceWork& work, int blocks);

/// The cores of prompts: in a ring one block of keys after the other, while the next one is on its way.
void attend_to_prompts(Linear& linear, const AttentionWork& of);

}  // namespace moeline
