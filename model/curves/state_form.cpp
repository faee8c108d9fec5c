// Attention that keeps a state, as the Triton kernels of flash-linear-attention run it: a prompt by kernels one after
// the other, of which one goes through the chunks of each sequence in turn, all others through all chunks at once; a
// token that decodes by one kernel; and the convolution before them.
//   prompts  start-up + the first chunk's tokens + a chain of chunks, in waves + so much for each chunk, token and
//            sequence of an SM + what HBM adds where L2 does not have it
//   decode   start-up + so much for each further token + max(one block, states from L2 or HBM)
#include <algorithm>
#include <cmath>

#include "curves/form.hpp"

namespace moeline {
namespace state_curves {
namespace {

constexpr double kL2None = 1;
constexpr double kL2Half = 0.5;
constexpr double kBf16 = 2;

double on_sms(double work, int sms, const MachineFacts& machine) { return overhead(machine, work / sms); }

double hbm_us(double bytes, int sms, const MachineFacts& machine) {
  return bytes_at_peak_us(bytes, machine.hbm_GBps) * machine.sms / sms;
}

// Of one head's state, over 128 x 128 numbers.
double width_of(const AttentionShape& a) { return a.qk_dim * a.v_dim / (128 * 128); }

enum ScanPart : std::size_t { start, first_chunk, chain, chunk, token, sequence, beyond_l2 };

// Values of a state are dealt to blocks in tiles, of which an SM holds three.
constexpr double kChunk = 64, kTile = 32, kBlocksPerSm = 3;
// Values, outputs and what the kernels hand on to each other, each once.
constexpr double kPasses = 6;
constexpr double kScanL2None = 1.5;

struct ScanBytes {
  double held = 0, moved = 0;
};

// States of all sequences are read and written, and so are those between the chunks, in BF16.
ScanBytes scan_bytes(const AttentionShape& a, double chunks) {
  constexpr double kFp32 = 4;
  const double state = a.heads * a.qk_dim * a.v_dim;
  const double states = a.batch * state * kFp32, between = a.batch * chunks * state * kBf16;
  const double tensors = a.batch * a.query_len * (kPasses * a.heads * a.v_dim + 2 * a.kv_heads * a.qk_dim) * kBf16;
  return {states + between + tensors, 2 * (states + between) + tensors};
}

Curve scan_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double width = width_of(a);
  const double chunks = std::ceil(a.query_len / kChunk);
  const double sequences = a.batch * a.heads;
  const double waves = std::ceil(sequences * std::ceil(a.v_dim / kTile) / (kBlocksPerSm * sms));
  const ScanBytes bytes = scan_bytes(a, chunks);
  const double hot = l2_share(op, bytes.held, machine, kL2Half, kScanL2None);
  return {{{part(start), overhead(machine)},
           {part(first_chunk), overhead(machine, std::min(a.query_len / kChunk, 1.0))},
           {part(chain), overhead(machine, waves * chunks * a.qk_dim / 128)},
           {part(chunk), on_sms(sequences * chunks * width, sms, machine)},
           {part(token), on_sms(sequences * a.query_len / kChunk * width, sms, machine)},
           {part(sequence), on_sms(sequences * width, sms, machine)},
           {part(beyond_l2), hbm_us(bytes.moved, sms, machine) * (1 - hot)}},
          {}};
}

enum UpdatePart : std::size_t { update_start, further_token, update_block, update_l2, update_beyond };

// Reading a state takes so much longer than writing one: the products wait for it.
constexpr double kRead = 1.5;

// Every token of a sequence leaves a state behind, and L2 holds as many of them as it can.
Curve update_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double tensors = a.batch * a.query_len * 2 * (a.heads * a.v_dim + a.kv_heads * a.qk_dim) * kBf16;
  const double states = std::max(0.0, op.bytes - tensors) / (1 + a.query_len);  // of all sequences, once
  const double hot = l2_share(op, states * a.query_len, machine, kL2Half, kL2None);
  const double weighed = op.bytes + (kRead - 1) * states;
  return {{{part(update_start), overhead(machine)}, {part(further_token), overhead(machine, a.query_len - 1)}},
          {{"latency", {{part(update_block), overhead(machine)}}},
           {"memory",
            {{part(update_l2), hbm_us(weighed, sms, machine)},
             {part(update_beyond), hbm_us(op.bytes, sms, machine) * (1 - hot)}}}}};
}

enum ConvolutionPart : std::size_t { conv_start, conv_first_tile, conv_tile, conv_row, conv_beyond };

// A block goes through the tokens of a tile one by one.
constexpr double kConvRows = 8, kConvChannels = 256;

Curve convolution_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double columns = op.n / kConvChannels;
  const double hot = l2_share(op, op.bytes, machine, kL2Half, kL2None);
  return {{{part(conv_start), overhead(machine)},
           {part(conv_first_tile), overhead(machine, std::min(a.query_len / kConvRows, 1.0))},
           {part(conv_tile), on_sms(a.batch * std::ceil(a.query_len / kConvRows) * columns, sms, machine)},
           {part(conv_row), on_sms(op.m / kConvRows * columns, sms, machine)},
           {part(conv_beyond), hbm_us(op.bytes, sms, machine) * (1 - hot)}},
          {}};
}

enum ShiftPart : std::size_t { shift_start, shift_block, shift_row, shift_beyond };

// What a request keeps is shifted by a token.
Curve shift_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double hot = l2_share(op, op.bytes, machine, kL2Half, kL2None);
  return {{{part(shift_start), overhead(machine)}},
          {{"latency", {{part(shift_block), overhead(machine)}}},
           {"SMs",
            {{part(shift_row), on_sms(op.m * op.n / kConvChannels, sms, machine)},
             {part(shift_beyond), hbm_us(op.bytes, sms, machine) * (1 - hot)}}}}};
}

}  // namespace
}  // namespace state_curves

// Chosen on the tables of H200, whose errors with the other choices stand in calib/tables/README.md.
std::vector<Form> state_forms() {
  using namespace state_curves;
  return {
      {"chunked_delta_rule",
       {{"start_us"},
        {"first_chunk_us"},
        {"chain_us"},
        {"chunk_us"},
        {"token_us"},
        {"sequence_us"},
        {"beyond_l2_roofline_multiple"}},
       scan_curve},
      {"delta_rule_update",
       {{"start_us"}, {"further_token_us"}, {"block_us"}, {"l2_roofline_multiple"}, {"beyond_l2_roofline_multiple"}},
       update_curve},
      {"causal_convolution",
       {{"start_us"}, {"first_tile_us"}, {"tile_us"}, {"row_us"}, {"beyond_l2_roofline_multiple"}},
       convolution_curve},
      {"causal_convolution_update",
       {{"start_us"}, {"block_us"}, {"row_us"}, {"beyond_l2_roofline_multiple"}},
       shift_curve},
  };
}

}  // namespace moeline
