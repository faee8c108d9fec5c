#include "matmul_kernel.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "numbers.hpp"
#include "product_check.hpp"
#include "random.hpp"

namespace moeline::bench {
namespace {

/// Scales of one operand, all groups one after another; as bytes, since their type is the scaling's.
class Scales {
 public:
  Scales(const ScaleLayout& layout, std::int64_t groups, int sets)
      : layout_(layout), groups_(groups), bytes_(std::max<std::int64_t>(1, groups * layout.count() * width()), sets) {}

  /// Half to twice, so that a scale in the wrong place shows.
  void fill(unsigned seed, cudaStream_t stream) const {
    const auto bytes = bytes_.all_elements();
    if (layout_.scaling == Scaling::mx) bench::fill(bytes_.at(0), bytes, seed, 126, 129, stream);
    if (layout_.scaling == Scaling::hopper)
      bench::fill(reinterpret_cast<float*>(bytes_.at(0)), bytes / 4, seed, 0.5f, 2, stream);
  }

  [[nodiscard]] const void* at(int turn) const { return bytes_.at(turn); }

  /// Multiplies a row's numbers by their scales.
  void apply(std::vector<double>& row_values, std::int64_t group, std::int64_t row) const {
    if (layout_.scaling == Scaling::none) return;
    if (host_.empty()) host_ = fetch(bytes_.at(0), groups_ * layout_.count() * width());
    for (std::size_t i = 0; i < row_values.size(); ++i)
      row_values[i] *= value(group * layout_.count() + layout_.place(row, static_cast<std::int64_t>(i)));
  }

 private:
  [[nodiscard]] std::int64_t width() const { return layout_.scaling == Scaling::hopper ? 4 : 1; }
  [[nodiscard]] double value(std::int64_t place) const {
    if (layout_.scaling == Scaling::mx) return std::ldexp(1.0, host_[static_cast<std::size_t>(place)] - 127);
    float scale = 0;
    std::memcpy(&scale, &host_[static_cast<std::size_t>(4 * place)], sizeof scale);
    return scale;
  }

  ScaleLayout layout_;
  std::int64_t groups_;
  Operand<std::uint8_t> bytes_;
  mutable std::vector<std::uint8_t> host_;  ///< turn 0's, fetched once
};

template <class T>
struct Operands {
  Operands(const Bench& bench, const MatmulShape& s, int sets)
      : shape(s),
        matmul(bench, s),
        x(s.groups * s.m * s.k, sets),
        w(s.groups * s.n * s.k, sets),
        d(s.groups * s.m * s.n, sets),
        x_scales({s.scaling, false, s.m, s.k}, s.groups, sets),
        w_scales({s.scaling, true, s.n, s.k}, s.groups, sets) {}

  MatmulShape shape;
  Matmul matmul;  // first: where there is no algorithm, no memory is needed
  Operand<T> x, w;
  Operand<__nv_bfloat16> d;
  Scales x_scales, w_scales;
};

template <class T>
void launch(Operands<T>& o, cudaStream_t stream, int turn) {
  o.matmul.launch(stream, {o.x.at(turn), o.w.at(turn), o.d.at(turn), o.x_scales.at(turn), o.w_scales.at(turn)});
}

template <class T>
void compare(const Operands<T>& o) {
  const auto& s = o.shape;
  const auto row_of = [&s](const Operand<T>& operand, const Scales& scales, std::int64_t rows) {
    return [&, rows](std::int64_t group, std::int64_t row) {
      auto values = numbers(fetch(operand.at(0) + (group * rows + row) * s.k, s.k));
      scales.apply(values, group, row);
      return values;
    };
  };
  require_product({.groups = s.groups,
                   .m = s.m,
                   .n = s.n,
                   .x = row_of(o.x, o.x_scales, s.m),
                   .w = row_of(o.w, o.w_scales, s.n),
                   .d = [&](std::int64_t group, std::int64_t row) { return o.d.at(0) + (group * s.m + row) * s.n; }});
}

template <class T>
Kernel prepare(const Bench& bench, const MatmulShape& s) {
  const std::int64_t bytes = s.groups * (static_cast<std::int64_t>(sizeof(T)) * (s.m + s.n) * s.k + 2 * s.m * s.n);
  auto o = std::make_shared<Operands<T>>(bench, s, cold_sets(bench.device, bytes));
  fill(o->x, 1, -1, 1, bench.stream);
  fill(o->w, 2, -1, 1, bench.stream);
  o->x_scales.fill(3, bench.stream);
  o->w_scales.fill(4, bench.stream);
  return checked([o](cudaStream_t stream, int turn) { launch(*o, stream, turn); }, [o] { compare(*o); });
}

}  // namespace

MatmulShape matmul_shape(const Case& c) {
  MatmulShape shape{.m = c.number("m"), .n = c.number("n"), .k = c.number("k")};
  if (c.has("groups")) shape.groups = c.number("groups");
  if (c.has("sms")) shape.sms = static_cast<int>(c.number("sms"));
  if (c.has("scaling")) shape.scaling = scaling_named(c.text("scaling"));
  return shape;
}

Kernel prepare_matmul(const Bench& bench, const MatmulShape& shape) {
  return shape.scaling == Scaling::none ? prepare<__nv_bfloat16>(bench, shape) : prepare<__nv_fp8_e4m3>(bench, shape);
}

}  // namespace moeline::bench
