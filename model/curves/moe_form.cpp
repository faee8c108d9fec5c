// Layers of fused experts, of which only the sum of their kernels was measured. What each of them has of it:
//   routing     so much for each choice of the tokens that are there and for each local expert, hit or not
//   permute     reading tokens and writing rows at HBM's pace
//   GEMMs       so much for each expert hit and for each k-block of one pass
//               + max(waves of tiles x k-blocks at peak, weights of the experts hit and rows at HBM's pace)
//   activation  its rows at HBM's pace
//   finalise    reading rows at HBM's pace, and tokens: those that are there, zeroes where this rank has none
// The start-up of all is one constant, and dealt out by a convention.
//
// A layer that is one kernel, with its transfers in it (mega_moe), has
//   a start-up + so much for each row + NVLink's bytes at its pace, for what of them no product hides
//   + max(waves of tiles x k-blocks of both GEMMs at peak, weights of the experts hit at HBM's pace)
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "curves/form.hpp"
#include "curves/topology.hpp"
#include "moe/fused_experts.hpp"
#include "routing/drawn_loads.hpp"

namespace moeline {
namespace moe_curves {
namespace {

constexpr double kBf16Bytes = 2;
constexpr double kBlockBytes = 128;  // of k
constexpr double kTileWidth = 128;
constexpr double kHotWhole = 0.2, kHotNone = 0.8;  // of L2, of which intermediates take the rest
constexpr double kHotBytes = 0.3;                  // time of a weight from L2 over one from HBM

enum Part : std::size_t { start, choice, routing, expert, hit_expert, k_block, rows, output, mainloop, memory };

// By what a tile's height is chosen.
enum class Height {
  rows_of_an_expert,
  all_tokens,       // rows that a local expert had if the rank got the choices of all ranks
  tokens_here,      // the same of the tokens that are there, and of rows that came alone those
  tokens_by_model,  // 16 up to as many tokens as the model has experts, then 64: what Triton's kernel does untuned
};

// How a library's kernels are built.
struct Library {
  std::vector<double> heights;
  Height height = Height::rows_of_an_expert;
  double width_unit = 1;            // that an expert's width is padded to
  bool writes_empty_slots = false;  // with zeroes: the last kernel does not know which tokens are there
  double fullest = 1;               // share of a tile that the rows by which it is chosen may fill
};

ExpertShape padded(ExpertShape shape, const Library& library) {
  shape.width = std::ceil(shape.width / library.width_unit) * library.width_unit;
  return shape;
}

// That a tile is chosen for: what an expert is expected to get, whatever it gets.
double rows_to_hold(const Operator& op, const ExpertShape& shape, Height height) {
  constexpr double kRounding = 1e-9;
  const ExpertRows load = expert_rows(shape);
  const bool fused = shape.layout == ExpertLayout::fused;
  if (height == Height::all_tokens) return shape.tokens * shape.top_k / load.local;
  if (height == Height::tokens_here && fused) return tokens_there(shape) * shape.top_k / load.local;
  return op.expected_rows > 0 ? op.expected_rows * (1 - kRounding) : load.each;
}

double tile_height(const Operator& op, const ExpertShape& shape, const Library& library) {
  constexpr double kFew = 16, kMany = 64;
  if (library.height == Height::tokens_by_model) return shape.tokens <= shape.experts ? kFew : kMany;
  const double wanted = rows_to_hold(op, shape, library.height) / library.fullest;
  const auto found = std::lower_bound(library.heights.begin(), library.heights.end(), wanted);
  return found == library.heights.end() ? library.heights.back() : *found;
}

// The last one, half way between whole and filled: it begins before all SMs are done with the one before.
double waves_of(double tiles, double sms) {
  const double full = tiles / sms;
  return full < 1 ? std::ceil(full) : (full + std::ceil(full)) / 2;
}

// What a layer's kernels have of its start-up: of each its launch, and of GEMMs their prologue.
double start_weight(ExpertRole role) {
  constexpr double kLaunch = 0.15, kProduct = 0.2;
  return role == ExpertRole::gate_up || role == ExpertRole::down ? kProduct : kLaunch;
}

double start_share(const ExpertShape& shape) {
  double all = 0;
  for (const ExpertRole role : {ExpertRole::routing, ExpertRole::permute, ExpertRole::gate_up, ExpertRole::activation,
                                ExpertRole::down, ExpertRole::finalise}) {
    if (has_role(shape.layout, role)) all += start_weight(role);
  }
  return start_weight(shape.role) / all;
}

// The contiguous layout was measured as an eager program alone: its start-up is the host's, which a schedule models
// itself.
double start_feature(const ExpertShape& shape, const MachineFacts& machine) {
  const bool of_the_host = shape.layout == ExpertLayout::contiguous;
  return of_the_host && !shape.eager ? 0 : overhead(machine, start_share(shape));
}

// Of tiles above each other, of all experts: by the rows of each, by what chance gives them, or alike.
double row_tiles(const Operator& op, const ExpertRows& load, double height) {
  const int rows = static_cast<int>(height);
  if (!op.group_rows.empty()) {
    return std::accumulate(op.group_rows.begin(), op.group_rows.end(), 0.0,
                           [&](double sum, int each) { return sum + std::ceil(each / height); });
  }
  if (op.rows_deviation > 0) {
    return load.local * expected_padded(load.rows / load.local, op.rows_deviation, rows) / height;
  }
  return load.hit * std::ceil(load.each / height);
}

// One matrix of the experts hit.
struct Product {
  ExpertMatrix matrix;
  double k_blocks, tile_us;  // tile_us: of a k-block of one tile at the peak of its SM
  double tiles, weight_bytes, row_bytes;
};

Product product_of(const Operator& op, const ExpertShape& shape, const MachineFacts& machine, const Library& library) {
  const ExpertRows load = expert_rows(shape);
  const double height = tile_height(op, shape, library), number = expert_input_bytes(shape);
  Product p{expert_matrix(shape, shape.role), 0, 0, 0, 0, 0};
  p.k_blocks = std::ceil(p.matrix.k * number / kBlockBytes);
  p.tile_us =
      flops_at_peak_us(2 * height * kTileWidth * kBlockBytes / number, machine.tflops(shape.math) / machine.sms);
  p.tiles = row_tiles(op, load, height) * std::ceil(p.matrix.n / kTileWidth);
  p.weight_bytes = load.hit * p.matrix.n * p.matrix.k * expert_weight_bytes(shape);
  p.row_bytes = load.rows * (p.matrix.k * number + p.matrix.n * kBf16Bytes);
  return p;
}

double hot_share(const Operator& op, const ExpertShape& shape, const MachineFacts& machine) {
  const double weights = (shape.gate + 1) * shape.hidden * shape.width * expert_weight_bytes(shape);
  return l2_share(op, expert_rows(shape).hit * weights, machine, kHotWhole, kHotNone);
}

Curve product_curve(const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  const ExpertShape shape = padded(op.experts, library);
  const Product p = product_of(op, shape, machine, library);
  const double share = machine.sms / sms, hot = hot_share(op, shape, machine);
  const double bytes = p.weight_bytes * (1 - hot + kHotBytes * hot) + p.row_bytes;
  const bool fused = shape.layout == ExpertLayout::fused, masked = shape.layout == ExpertLayout::masked;
  constexpr double kHundredPairs = 200;  // an expert is hit once, and has two GEMMs
  return {{{part(start), start_feature(shape, machine)},
           {part(hit_expert), masked ? 0 : overhead(machine, expert_rows(shape).hit / kHundredPairs * share)},
           {part(k_block), fused ? overhead(machine, p.k_blocks) : 0}},
          {{"compute", {{part(mainloop), waves_of(p.tiles, sms) * p.k_blocks * p.tile_us}}},
           {"memory", {{part(memory), bytes_at_peak_us(bytes, machine.hbm_GBps) * share}}}}};
}

double row_bytes(const ExpertShape& shape) {
  const double input = expert_input_bytes(shape), count = expert_rows(shape).rows;
  switch (shape.role) {
    case ExpertRole::permute:
      return count * shape.hidden * (kBf16Bytes + input);
    case ExpertRole::activation:
      return count * shape.width * (kBf16Bytes * shape.gate + input);
    case ExpertRole::finalise:
      return count * shape.hidden * kBf16Bytes;
    default:
      return 0;
  }
}

// The kernel that goes through the choices: of rows that DeepEP sent, the one that copies them.
bool scans(const ExpertShape& shape) {
  if (shape.layout == ExpertLayout::contiguous) return shape.role == ExpertRole::permute;
  return shape.role == ExpertRole::routing;
}

// Of slots of a padded buffer in which no token is: the sort goes through their choices all the same, as the scan of a
// million choices does that was measured on H800 (0.07 ns each).
double empty_slots_us(const ExpertShape& shape, double share, const MachineFacts& machine, const Library& library) {
  constexpr double kUsOfChoice = 7e-5;
  const double empty = shape.tokens - tokens_there(shape);
  if (shape.role == ExpertRole::routing) return overhead(machine, empty * shape.top_k * kUsOfChoice * share);
  if (shape.role != ExpertRole::finalise || !library.writes_empty_slots) return 0;
  return bytes_at_peak_us(empty * shape.hidden * kBf16Bytes, machine.hbm_GBps) * share;
}

Curve row_curve(const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  constexpr double kTen = 10, kHundred = 100, kThousand = 1000;
  const ExpertShape shape = padded(op.experts, library);
  const double share = machine.sms / sms;
  const bool routes = shape.role == ExpertRole::routing;
  const bool writes_tokens = shape.role == ExpertRole::finalise && shape.layout == ExpertLayout::fused;
  const double output_bytes = writes_tokens ? tokens_there(shape) * shape.hidden * kBf16Bytes : 0;
  const double choices = scans(shape) ? tokens_there(shape) * shape.top_k : 0;
  return {{{part(start), start_feature(shape, machine)},
           {part(choice), routes && shape.gate == 1 ? overhead(machine, shape.top_k / kTen) : 0},
           {part(routing), overhead(machine, choices / kThousand * share)},
           {part(expert), routes ? overhead(machine, expert_rows(shape).local / kHundred) : 0},
           {part(rows), bytes_at_peak_us(row_bytes(shape), machine.hbm_GBps) * share},
           {part(output), bytes_at_peak_us(output_bytes, machine.hbm_GBps) * share}},
          {},
          empty_slots_us(shape, share, machine, library)};
}

Form moe_form(const std::string& name, const Library& library) {
  return {name,
          {{"start_us"},
           {"us_per_10_choices_of_a_token"},  // of layers without a gate: TensorRT-LLM sorts a token's choices there
           {"routing_us_per_1000_choices"},
           {"us_per_100_local_experts"},
           {"us_per_100_hit_experts"},
           {"k_block_us"},
           {"rows_roofline_multiple"},
           {"output_roofline_multiple"},
           {"mainloop_roofline_multiple", 1},
           {"memory_roofline_multiple", 1}},
          [library](const Operator& op, int sms, const MachineFacts& machine) {
            MOELINE_CHECK(has_role(op.experts.layout, op.experts.role), op.name);
            const bool multiplies = op.experts.role == ExpertRole::gate_up || op.experts.role == ExpertRole::down;
            return multiplies ? product_curve(op, sms, machine, library) : row_curve(op, sms, machine, library);
          }};
}

enum MegaPart : std::size_t { mega_start, mega_row, mega_link, mega_mainloop, mega_memory };

Curve mega_curve(const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  constexpr double kThousand = 1000;
  const double share = machine.sms / sms;
  double compute_us = 0, weight_bytes = 0;
  for (const ExpertRole role : {ExpertRole::gate_up, ExpertRole::down}) {
    ExpertShape shape = op.experts;
    shape.role = role;
    const Product p = product_of(op, shape, machine, library);
    compute_us += waves_of(p.tiles, sms) * p.k_blocks * p.tile_us;
    weight_bytes += p.weight_bytes;
  }
  const double link_us = bytes_at_peak_us(op.traffic.nvlink_bytes, nvlink_rate_GBps(machine));
  return {{{part(mega_start), overhead(machine)},
           {part(mega_row), overhead(machine, expert_rows(op.experts).rows / kThousand * share)},
           {part(mega_link), link_us}},
          {{"compute", {{part(mega_mainloop), compute_us}}},
           {"memory", {{part(mega_memory), bytes_at_peak_us(weight_bytes, machine.hbm_GBps) * share}}}}};
}

Form mega_form(const Library& library) {
  return {"mega_moe",
          {{"start_us"},
           {"us_per_1000_rows"},
           {"nvlink_roofline_multiple"},
           {"mainloop_roofline_multiple", 1},
           {"memory_roofline_multiple", 1}},
          [library](const Operator& op, int sms, const MachineFacts& machine) {
            MOELINE_CHECK(op.experts.role == ExpertRole::layer, op.name);
            return mega_curve(op, sms, machine, library);
          }};
}

}  // namespace
}  // namespace moe_curves

// Tiles that explain the tables of data/aic best. The fused layers of CUTLASS, DeepGEMM and tuned Triton differ in
// their constants alone. TensorRT-LLM's generated kernels (trtllm_gen_moe) take their tile before they know which
// tokens are the rank's, and widths of 1..128 cost the same. DeepEP's layouts have fewer terms: their rows come sorted,
// and their tables have one model.
std::vector<Form> moe_forms() {
  using namespace moe_curves;
  const std::vector<double> usual = {16, 32, 64, 128};
  const Library marlin{{8, 16, 32, 48, 64}, Height::tokens_here, 1, false, 0.9};
  return {
      moe_form("cutlass_moe", {usual}),
      moe_form("deepgemm_moe", {usual}),
      moe_form("triton_moe", {usual}),
      moe_form("triton_moe_default", {{}, Height::tokens_by_model}),
      moe_form("marlin_moe", marlin),
      moe_form("trtllm_gen_moe", {{8, 16, 32, 64, 128, 256}, Height::all_tokens, 128, true}),
      moe_form("deepgemm_masked_moe", {{64, 128}}),
      moe_form("deepgemm_contiguous_moe", {{128}}),
      mega_form({usual}),
  };
}

}  // namespace moeline
