#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "curves/form.hpp"

namespace moeline {

// Linear layers: a GEMM that cuts its output into tiles, and below BF16 the cast of its activations.
//   cast   by its bytes; its launch is in the GEMM's start-up
//   GEMM   start-up, + one if k is split, + a fifth of memory + max(compute, four fifths of memory)
//   compute  waves x k-blocks x (tile at peak + clocks of a k-block), slower where power binds, and the epilogues
//   memory   every tensor once from HBM, or L2 where it is hot, and what the tiles load through the SMs' L2 ports
// The tile is the one of least nominal time, as libraries choose it: before and apart from the fit.

namespace linear_curves {
namespace {

constexpr double kBlockBytes = 128;   // of k
constexpr double kTensorRows = 64;    // a warpgroup's least
constexpr double kTileArea = 16384;   // 128x128, of which an epilogue counts
constexpr double kUnhidden = 0.2;     // of memory: the first loads and the last stores
constexpr double kPortBytes = 64;     // per clock, from L2 to an SM
constexpr double kWholeWaves = 0.85;  // the rest of the waves' tail is filled: SMs do not finish at once
constexpr double kHotBytes = 0.65;    // time of a byte from L2 over one from HBM
constexpr double kL2Whole = 0.3, kL2None = 1;

const std::vector<double> kWhole = {1};  // parts of k, of kernels that do not split it

enum Part : std::size_t { start, mainloop, sustained, epilogue, memory, ports, split_start, cast_l2, cast_beyond };

struct Cut {
  double m = 0, n = 0, splits = 1;
};

// What the kernels of a stack are built like.
struct Library {
  std::vector<double> heights, widths, splits;
  double block_clocks;                   // of a k-block, whatever the tile
  bool height_by_rows = false;           // the tile is a matter of m alone: 64x64, 64x128, 128x128
  double weight_copies, operand_copies;  // that a benchmark goes through
  double least_rows = kTensorRows;       // that a k-block costs as much as
  bool holds_rows = false;               // the tile is the least that holds all rows, or the highest
  bool keeps_to_nominal = false;         // the nominal choice is what runs, whatever other heights would take
};

// A linear layer as its GEMM sees it.
struct Product {
  double m, n, k, bytes_per_number, block;  // block: numbers of k in 128 bytes
  double bytes_per_weight;                  // the same, but of weights alone that are unpacked on the way
};

Product product_of(const Operator& op) {
  const Precision precision = precision_of(op);
  const double bytes = activation_bytes(precision == Precision::nvfp4 ? precision : multiplied_in(precision));
  const double unscaled = number_bytes(precision == Precision::nvfp4 ? precision : multiplied_in(precision));
  const bool blocks = precision == Precision::nvfp4;
  const double number = blocks ? bytes : unscaled;
  const bool unpacks = precision == Precision::int4;
  return {op.m, op.n, op.k, number, kBlockBytes / unscaled, unpacks ? bytes_per_weight(precision) : number};
}

double tiles_of(const Cut& cut, const Product& p) {
  return std::ceil(p.m / cut.m) * std::ceil(p.n / cut.n) * cut.splits;
}

double waves_of(const Cut& cut, const Product& p, int sms) {
  const double full = tiles_of(cut, p) / sms;
  return std::max(1.0, kWholeWaves * std::ceil(full) + (1 - kWholeWaves) * full);
}

double k_blocks_of(const Cut& cut, const Product& p) { return std::ceil(std::ceil(p.k / p.block) / cut.splits); }

// Clocks of a k-block: at the tensor cores' peak, and what issuing it takes.
double block_clocks(const Cut& cut, const Product& p, double flops_per_clock, const Library& library) {
  return 2 * std::max(cut.m, library.least_rows) * cut.n * p.block / flops_per_clock + library.block_clocks;
}

double tensor_bytes(const Product& p) {
  return p.m * p.k * p.bytes_per_number + p.n * p.k * p.bytes_per_weight + 2 * p.m * p.n;
}

// What the SMs load from L2: of each tile its rows of both operands.
double loaded_bytes(const Cut& cut, const Product& p) {
  return tiles_of(cut, p) * k_blocks_of(cut, p) * (cut.m + cut.n * p.bytes_per_weight / p.bytes_per_number) *
         kBlockBytes;
}

// In clocks, by which libraries choose: 1500 an epilogue of 128x128, 4000 to add up a split, 96 bytes a clock of L2.
double nominal(const Cut& cut, const Product& p, int sms, const MachineFacts& machine, double flops_per_clock,
               const Library& library) {
  const double clocks_per_byte = machine.sm_clock_mhz / (machine.hbm_GBps * 1e3);
  const double k_blocks = k_blocks_of(cut, p);
  double compute = waves_of(cut, p, sms) *
                   (k_blocks * block_clocks(cut, p, flops_per_clock, library) + 1500 * cut.m * cut.n / kTileArea);
  if (cut.splits > 1) compute += 4000 + 0.3 * 8 * cut.splits * p.m * p.n * clocks_per_byte;
  const double loads = loaded_bytes(cut, p) / 96 / sms;
  const double streams = (1 - kUnhidden) * tensor_bytes(p) * clocks_per_byte;
  return std::max({compute, loads, streams}) + 0.001 * compute;
}

Cut cut_of(const Product& p, int sms, const MachineFacts& machine, double flops_per_clock, const Library& library) {
  constexpr double kLargest = 32768;   // numbers of a tile that the registers hold
  constexpr double kFewestBlocks = 4;  // of k in a part of a split
  if (library.height_by_rows) return {p.m <= 128 ? 64.0 : 128.0, p.m <= 64 ? 64.0 : 128.0};
  Cut best;
  double least = 0;
  for (const double m : library.heights) {
    if (library.holds_rows && m < std::min(p.m, library.heights.back())) continue;
    for (const double n : library.widths) {
      if (m * n > kLargest) continue;
      for (const double splits : library.splits) {
        if (splits > 1 && std::ceil(p.k / p.block) / splits < kFewestBlocks) continue;
        const Cut cut{m, n, splits};
        const double time = nominal(cut, p, sms, machine, flops_per_clock, library);
        if (best.m > 0 && time >= least) continue;
        best = cut;
        least = time;
      }
    }
  }
  return best;
}

// Activations come in BF16, and below it are written and read again.
double hot_share(const Operator& op, const Product& p, const MachineFacts& machine, const Library& library) {
  const bool casts = p.bytes_per_number < 2;
  const double activations = (2 + (casts ? p.bytes_per_number : 0)) * p.m * p.k;
  const double working_set =
      library.weight_copies * p.n * p.k * p.bytes_per_weight + library.operand_copies * (activations + 2 * p.m * p.n);
  return l2_share(op, working_set, machine, kL2Whole, kL2None);
}

Curve cast_curve(const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  const Product p = product_of(op);
  const double us = bytes_at_peak_us((2 + p.bytes_per_number) * p.m * p.k, machine.hbm_GBps) * machine.sms / sms;
  const double hot = hot_share(op, p, machine, library);
  return {{{part(cast_l2), us}, {part(cast_beyond), us * (1 - hot)}}, {}};
}

double clock_flops(const Operator& op, const MachineFacts& machine) {
  return machine.tflops(precision_of(op)) * 1e6 / (machine.sms * machine.sm_clock_mhz);
}

Curve curve_of_cut(const Cut& cut, const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  const Product p = product_of(op);
  const double flops_per_clock = clock_flops(op, machine);
  const double waves = waves_of(cut, p, sms), k_blocks = k_blocks_of(cut, p);
  const double main_us = waves * k_blocks * block_clocks(cut, p, flops_per_clock, library) / machine.sm_clock_mhz;
  const double port_us = loaded_bytes(cut, p) / kPortBytes / sms / machine.sm_clock_mhz;
  const double hot = hot_share(op, p, machine, library);
  const double memory_us = bytes_at_peak_us(tensor_bytes(p), machine.hbm_GBps) * (1 - hot + kHotBytes * hot);
  const auto memory_terms = [&](double share) -> std::vector<Term> {
    return {{part(memory), share * memory_us}, {part(ports), share * port_us}};
  };
  Curve curve{memory_terms(kUnhidden),
              {{"compute",
                {{part(mainloop), main_us},
                 {part(sustained), by_power(main_us, machine)},
                 {part(epilogue), overhead(machine, waves * cut.m * cut.n / kTileArea)}}},
               {"memory", memory_terms(1 - kUnhidden)}}};
  curve.always.push_back({part(start), overhead(machine)});
  curve.always.push_back({part(split_start), cut.splits > 1 ? overhead(machine) : 0});
  return curve;
}

// Beside the nominal choice stand the best cuts of the other heights, and where it splits k the best whole one: a
// product that is a little larger, and cut otherwise, would else be quicker.
Curve product_curve(const Operator& op, int sms, const MachineFacts& machine, const Library& library) {
  const auto cut_by = [&](const Library& of) {
    return cut_of(product_of(op), sms, machine, clock_flops(op, machine), of);
  };
  const Cut cut = cut_by(library);
  Curve curve = curve_of_cut(cut, op, sms, machine, library);
  const auto stand_beside = [&](const Library& of) {
    curve.alternatives.push_back(curve_of_cut(cut_by(of), op, sms, machine, library));
  };
  if (cut.splits > 1) {
    Library whole = library;
    whole.splits = kWhole;
    stand_beside(whole);
  }
  for (const double height : library.heights) {
    if (height == cut.m || library.holds_rows || library.keeps_to_nominal) continue;
    Library other = library;
    other.heights = {height};
    stand_beside(other);
  }
  return curve;
}

const std::vector<double> kHeights = {64, 128, 256}, kWidths = {32, 64, 96, 128, 160, 192, 256};
const std::vector<double> kSplits = {1, 2, 4, 8, 16};

Form linear_form(const std::string& name, const Library& library) {
  return {name,
          {{"start_us"},
           {"mainloop_roofline_multiple"},
           {"sustained_multiple"},
           {"epilogue_us"},
           {"memory_roofline_multiple"},
           {"port_roofline_multiple"},
           {"split_us"},
           {"cast_l2_roofline_multiple"},
           {"cast_beyond_l2_roofline_multiple"}},
          [library](const Operator& op, int sms, const MachineFacts& machine) {
            return is_gemm(op.family) ? product_curve(op, sms, machine, library)
                                      : cast_curve(op, sms, machine, library);
          }};
}

}  // namespace
}  // namespace linear_curves

// Tiles and clocks of a k-block: those with the least error on tables of data/aic, per library. TensorRT-LLM's
// benchmark goes through copies of the weights alone, SGLang's through copies of all operands.
std::vector<Form> linear_forms() {
  using namespace linear_curves;
  std::vector<Form> forms;
  for (const bool sglang : {false, true}) {
    const std::string stack = sglang ? "sglang_" : "trtllm_";
    const double weights = sglang ? 6 : 5, operands = sglang ? 6 : 1;
    const auto add = [&](const char* name, std::vector<double> heights, std::vector<double> widths,
                         const std::vector<double>& splits, double clocks, bool nominal = false) {
      Library library{std::move(heights), std::move(widths), splits, clocks, false, weights, operands};
      library.keeps_to_nominal = nominal;
      forms.push_back(linear_form(stack + name, library));
    };
    add("cublas", kHeights, kWidths, kSplits, 100);
    add("cublas_sm80", kHeights, {32, 64, 128, 256}, kSplits, 150, true);
    add("cublas_fp8", kHeights, kWidths, kSplits, 150);
    add("deepgemm", kHeights, kWidths, kWhole, 150);
    add("cutlass_fp8", {128}, {16, 32, 48, 64, 96, 128, 160, 192, 224, 256}, kWhole, 150);
    add("cutlass_nvfp4", {128}, {256}, kWhole, 30);
    add("cutedsl_nvfp4", {128}, {32, 64, 128, 256}, kWhole, 220);
    forms.push_back(linear_form(stack + "cutlass_fp8_by_rows", {{}, {}, {}, 60, true, weights, operands}));
  }
  // A TensorRT plugin that unpacks weights on the way, whose tile holds all rows if it can.
  forms.push_back(
      linear_form("trtllm_int4_sm80", {{4, 16, 32, 64, 128}, {64, 128, 256}, {1, 2, 4}, 150, false, 5, 1, 16, true}));
  return forms;
}

// Kernels that pass once over the rows of a tensor: casts, of which there are tables, and what walks like them.
//   start-up + bytes from L2's pace on, and what HBM adds

namespace rows_curves {
namespace {

enum Part : std::size_t { start, l2, beyond_l2 };

constexpr double kL2Whole = 0.5, kL2None = 1;

Curve rows_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double bytes = op.passed_bytes();
  const double us = bytes_at_peak_us(bytes, machine.hbm_GBps) * machine.sms / sms;
  const double hot = l2_share(op, bytes, machine, kL2Whole, kL2None);
  return {{{part(start), overhead(machine)}, {part(l2), us}, {part(beyond_l2), us * (1 - hot)}}, {}};
}

// A kernel that traces show with few rows alone: its start-up, and bytes at HBM's peak, for which there is no constant.
Curve floor_curve(const Operator& op, int sms, const MachineFacts& machine) {
  Curve curve{{{part(start), overhead(machine)}}, {}};
  curve.fixed_us = bytes_at_peak_us(op.passed_bytes(), machine.hbm_GBps) * machine.sms / sms;
  return curve;
}

}  // namespace
}  // namespace rows_curves

std::vector<Form> rows_forms() {
  using namespace rows_curves;
  return {{"rows", {{"start_us"}, {"l2_roofline_multiple"}, {"beyond_l2_roofline_multiple"}}, rows_curve},
          {"launch_floor", {{"start_us"}}, floor_curve}};
}

}  // namespace moeline
