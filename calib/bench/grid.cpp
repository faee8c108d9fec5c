#include "grid.hpp"

#include <initializer_list>
#include <utility>

#include "attention_grid.hpp"

namespace moeline::bench {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Product {
  std::int64_t n, k;
};

/// The full list, or of it the few that show the shape of the curve.
template <class T>
std::vector<T> pick(Preset preset, std::vector<T> full, std::vector<T> quick) {
  return preset == Preset::full ? std::move(full) : std::move(quick);
}

/// Rows of activations: decode's few to a prefill's many, and some that are no power of two.
Sizes gemm_rows(Preset preset) {
  return pick<std::int64_t>(
      preset, {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768},
      {64, 512, 4096, 16384});
}

/// DeepSeek-V3's layers, then shapes of no model, to predict by a fit that has not seen them.
std::vector<Product> dense_products(Preset preset) {
  return pick<Product>(preset,
                       {{2112, 7168},
                        {24576, 1536},
                        {32768, 512},
                        {7168, 16384},
                        {4096, 7168},
                        {7168, 2048},
                        {1536, 4096},
                        {5120, 5120},
                        {12288, 3072},
                        {3328, 10240}},
                       {{2112, 7168}, {24576, 1536}, {4096, 7168}, {7168, 2048}});
}

/// An expert's gate and up projections as one, and its down projection.
std::vector<Product> expert_products() { return {{4096, 7168}, {7168, 2048}}; }

Case product(std::int64_t m, const Product& p) { return Case{}.with("m", m).with("n", p.n).with("k", p.k); }

Case grouped(std::int64_t groups, std::int64_t m, const Product& p) {
  return Case{}.with("groups", groups).with("m", m).with("n", p.n).with("k", p.k);
}

/// GEMMs that the library was told to run on a part of the SMs.
std::vector<Case> limited(Preset preset) {
  std::vector<Case> cases;
  for (const auto& p : expert_products())
    for (const auto m : pick<std::int64_t>(preset, {1024, 4096, 8192}, {4096}))
      for (const auto sms : pick<std::int64_t>(preset, {32, 66, 88, 100, 112, 120, 124}, {66, 112}))
        cases.push_back(product(m, p).with("sms", sms));
  return cases;
}

std::vector<Case> dense(Preset preset, const std::vector<Product>& products) {
  std::vector<Case> cases;
  for (const auto& p : products)
    for (const auto m : gemm_rows(preset)) cases.push_back(product(m, p));
  for (auto& c : limited(preset)) cases.push_back(std::move(c));
  return cases;
}

std::vector<Case> with_scaling(std::vector<Case> cases, const std::string& scaling) {
  for (auto& c : cases) c.with("scaling", scaling);
  return cases;
}

using Bytes = std::int64_t (*)(std::int64_t rows, std::int64_t columns);

Case memory_bound(Bytes bytes, std::int64_t rows, std::int64_t columns) {
  return Case{}.with("rows", rows).with("columns", columns).with("bytes", bytes(rows, columns));
}

std::vector<Case> memory_bound_cases(Preset preset, std::initializer_list<Bytes> kernels, const Sizes& columns) {
  std::vector<Case> cases;
  for (const auto kernel : kernels)
    for (const auto c : columns)
      for (const auto r :
           pick<std::int64_t>(preset, {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}, {128, 1024, 4096, 32768}))
        cases.push_back(memory_bound(kernel, r, c));
  return cases;
}

/// Widths of DeepSeek-V3 (expert, attention, model) and one that is no power of two times a prime below ten.
Sizes widths(Preset preset) { return pick<std::int64_t>(preset, {2048, 2944, 4096, 7168}, {2944, 7168}); }

/// The kernels that contention slows down, each with its key: large enough to fill the device many times over.
std::vector<std::pair<std::string, Case>> contended(Preset preset, const std::string& scaling) {
  std::vector<std::pair<std::string, Case>> kernels;
  for (const auto& p : expert_products()) {
    kernels.emplace_back("gemm_bf16", product(4096, p));
    if (!scaling.empty()) kernels.emplace_back("gemm_fp8", product(4096, p).with("scaling", scaling));
  }
  kernels.emplace_back("streaming", memory_bound(add_bytes, 16384, 7168));
  kernels.emplace_back("rowwise", memory_bound(rms_norm_bytes, 16384, 7168));
  kernels.emplace_back("attention_forward", typical_attention_forward());
  kernels.emplace_back("mla_decode", typical_mla_decode());
  if (preset == Preset::quick) return kernels;
  kernels.emplace_back("streaming", memory_bound(permutation_bytes, 16384, 7168));
  kernels.emplace_back("rowwise", memory_bound(cast_bytes, 16384, 7168));
  return kernels;
}

}  // namespace

std::int64_t add_bytes(std::int64_t rows, std::int64_t columns) { return 6 * rows * columns; }
std::int64_t permutation_bytes(std::int64_t rows, std::int64_t columns) { return 4 * rows * columns + 4 * rows; }
std::int64_t rms_norm_bytes(std::int64_t rows, std::int64_t columns) { return 4 * rows * columns + 2 * columns; }
std::int64_t cast_bytes(std::int64_t rows, std::int64_t columns) { return 3 * rows * columns + rows * columns / 32; }
std::int64_t cast_transpose_bytes(std::int64_t rows, std::int64_t columns) { return cast_bytes(rows, columns); }
std::int64_t swiglu_bytes(std::int64_t rows, std::int64_t columns) { return 5 * rows * columns + rows * columns / 32; }
std::int64_t rotary_bytes(std::int64_t rows, std::int64_t columns) {
  const auto angles = rows * kRotaryColumns * 4;  // a cosine and a sine for each pair of columns, shared by the heads
  return 4 * rows * (columns / kHeadColumns * kRotaryColumns) + angles;
}

std::vector<Case> streaming_cases(Preset preset) {
  return memory_bound_cases(preset, {add_bytes, permutation_bytes}, widths(preset));
}
std::vector<Case> rowwise_cases(Preset preset) {
  return memory_bound_cases(preset, {rms_norm_bytes, cast_bytes}, widths(preset));
}
std::vector<Case> cast_transpose_cases(Preset preset) {
  return memory_bound_cases(preset, {cast_transpose_bytes}, widths(preset));
}
std::vector<Case> swiglu_cases(Preset preset) { return memory_bound_cases(preset, {swiglu_bytes}, widths(preset)); }

std::vector<Case> strided_cases(Preset preset) {
  const auto heads = pick<std::int64_t>(preset, {16, 40, 128}, {16, 128});
  Sizes columns;
  for (const auto h : heads) columns.push_back(h * kHeadColumns);
  return memory_bound_cases(preset, {rotary_bytes}, columns);
}

std::vector<Case> gemm_fp8_cases(Preset preset, const std::string& scaling) {
  return with_scaling(dense(preset, dense_products(preset)), scaling);
}

std::vector<Case> gemm_fp8_masked_cases(Preset preset, const std::string& scaling) {
  constexpr std::int64_t most_rows = 65536;
  std::vector<Case> cases;
  for (const auto& p : expert_products())
    for (const auto groups : pick<std::int64_t>(preset, {1, 2, 4, 8, 16, 32}, {4, 32}))
      for (const auto m :
           pick<std::int64_t>(preset, {64, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192}, {128, 1024}))
        if (groups * m <= most_rows) cases.push_back(grouped(groups, m, p));
  return with_scaling(std::move(cases), scaling);
}

std::vector<Case> gemm_bf16_cases(Preset preset) {
  auto products = dense_products(preset);
  products.push_back({256, 7168});  // the router
  return dense(preset, products);
}

std::vector<Case> gemm_bf16_grouped_cases(Preset preset) {
  constexpr std::int64_t most_rows = 32768;
  std::vector<Case> cases;
  for (const auto& p : expert_products())
    for (const auto groups : pick<std::int64_t>(preset, {1, 2, 4, 8, 16, 32}, {4, 32}))
      for (const auto m : pick<std::int64_t>(preset, {64, 128, 256, 512, 1024, 2048, 4096, 8192}, {128, 1024}))
        if (groups * m <= most_rows) cases.push_back(grouped(groups, m, p));
  return cases;
}

std::vector<Case> gemm_bf16_batched_cases(Preset preset) {
  std::vector<Case> cases;
  for (const auto& p : {Product{512, 128}, Product{128, 512}})
    for (const auto groups : pick<std::int64_t>(preset, {64, 128}, {128}))
      for (const auto m :
           pick<std::int64_t>(preset, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, {1, 16, 128, 1024}))
        cases.push_back(grouped(groups, m, p));
  return cases;
}

std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (const auto blocks : {1, 16, 132}) cases.push_back(Case{}.with("blocks", blocks));
  return cases;
}

std::vector<Case> launch_cases() { return {Case{}.with("mode", "stream"), Case{}.with("mode", "graph")}; }

std::vector<Case> copy_cases(Preset preset) {
  std::vector<Case> cases;
  for (const auto mib :
       pick<std::int64_t>(preset, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, {1, 16, 256, 1024}))
    cases.push_back(Case{}.with("bytes", 2 * (mib << 20)));
  return cases;
}

std::vector<Case> contention_cases(Preset preset, const std::string& scaling, int device_sms) {
  struct Neighbour {
    const char* name;
    Sizes sms;
  };
  const Neighbour neighbours[] = {{"spin", pick<std::int64_t>(preset, {4, 8, 20, 40, 66}, {20, 66})},
                                  {"copy", pick<std::int64_t>(preset, {4, 8, 20, 40}, {20})},
                                  {"kernel", {0}}};
  std::vector<Case> cases;
  for (const auto& [key, kernel] : contended(preset, scaling))
    for (const auto& [name, held] : neighbours)
      for (const auto sms : held) {
        cases.push_back(Case(kernel).with("kernel", key).with("beside", name).with("sms", sms));
        if (key.starts_with("gemm") && sms > 0 && sms < device_sms) {
          cases.push_back(cases.back());
          cases.back().with("kernel_sms", device_sms - sms);
        }
      }
  return cases;
}

}  // namespace moeline::bench
