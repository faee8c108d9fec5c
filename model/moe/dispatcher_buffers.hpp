// Bytes of the buffers that a library's all-to-all keeps on each GPU.
#pragma once

#include "moe/dispatcher.hpp"

namespace moeline::buffers {

/// DeepEP's normal mode (Config in csrc/config.hpp with the chunk sizes of Buffer.get_dispatch_config and
/// get_combine_config in deep_ep/buffer.py): for every channel, two SMs each, a queue of BF16 tokens with room for 128
/// top-k indices, weights and scales, from each GPU of the node and from and to each node.
[[nodiscard]] double normal(const BufferWork& work);
/// Its low-latency mode (LowLatencyLayout in csrc/config.hpp): twice, for odd and even calls, a message per expert
/// (redundant ones included) and token of a micro-batch to send and one to receive; a message is a BF16 token and its
/// scales.
[[nodiscard]] double low_latency(const BufferWork& work);
/// TensorRT-LLM's over NVLink: for each rank a slot for each token of a micro-batch, as it travels and as BF16 result.
[[nodiscard]] double nvlink(const BufferWork& work);
/// DeepEP's second version (get_dispatch_buffer_size and get_combine_buffer_size of csrc/elastic/buffer.hpp): slots for
/// the most tokens that could come, from each rank or node, and to send; the larger of both directions, in whole 2 MB.
[[nodiscard]] double deepep_v2(const BufferWork& work);
/// Perplexity's: a message of BF16 for each expert of a token to send, and room for all that could come.
[[nodiscard]] double pplx(const BufferWork& work);
/// MegaMoE's: a token, and what each of its experts sends back.
[[nodiscard]] double fused(const BufferWork& work);

}  // namespace moeline::buffers
