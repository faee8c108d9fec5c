// Which operator each kernel of a step is of.
#include "experiments/learn/alignment.hpp"

#include <doctest/doctest.h>

TEST_SUITE("learn/alignment") {

using namespace moeline;

namespace {

using enum KernelKind;

AlignedOperator op(KernelKind kind, double flops = 0) { return {.kind = kind, .flops = flops}; }
AlignedKernel kernel(KernelKinds kinds, double flops = 0) { return {.kinds = kinds, .flops = flops}; }

KernelKinds both(KernelKinds one, KernelKinds other) {
  one |= other;
  return one;
}

using Assigned = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("kernels of the operators' kinds are theirs, one by one and in order") {
  CHECK(align({kernel(norm), kernel(product), kernel(attention), kernel(product)},
              {op(norm), op(product), op(attention), op(product)}) == Assigned{0, 1, 2, 3});
}

TEST_CASE("what finishes a product or attention belongs to it") {
  CHECK(align({kernel(product), kernel(rest), kernel(attention), kernel(both(attention, rest)), kernel(product)},
              {op(product), op(attention), op(product)}) == Assigned{0, 0, 1, 1, 2});
}

TEST_CASE("an operator may be several element-wise kernels") {
  CHECK(align({kernel(plain), kernel(plain), kernel(norm), kernel(plain), kernel(product)}, {op(norm), op(product)}) ==
        Assigned{0, 0, 0, 0, 1});
}

TEST_CASE("one kernel may do the work of two operators, of which the second then has none") {
  CHECK(align({kernel(product), kernel(both(norm, quantise)), kernel(product)},
              {op(product), op(norm), op(quantise), op(product)}) == Assigned{0, 1, 3});
  CHECK(align({kernel(product), kernel(both(collective, norm)), kernel(product)},
              {op(product), op(collective), op(norm), op(product)}) == Assigned{0, 1, 3});
}

TEST_CASE("a kernel of a kind that the operators have nowhere is of none") {
  CHECK(align({kernel(product), kernel(dispatch), kernel(product)}, {op(product), op(product)}) ==
        Assigned{0, kUnassigned, 1});
}

TEST_CASE("attention may be two products with a softmax between") {
  CHECK(align({kernel(product), kernel(product), kernel(attention), kernel(product), kernel(product)},
              {op(product), op(attention), op(product)}) == Assigned{0, 1, 1, 1, 2});
}

TEST_CASE("what passes over memory without an operator of its own is part of the one before it") {
  CHECK(align({kernel(product), kernel(collective), kernel(norm), kernel(product)},
              {op(product), op(collective), op(product)}) == Assigned{0, 1, 1, 2});
}

TEST_CASE("products are told apart by their FLOPs") {
  // The trace lacks the first product: of equal kinds the far smaller one would be taken for it.
  CHECK(align({kernel(product, 1), kernel(norm), kernel(product, 1)},
              {op(product, 1000), op(norm), op(product, 1), op(norm), op(product, 1)}) == Assigned{2, 3, 4});
}

TEST_CASE("kernels of the operators' names are theirs, whatever their kinds") {
  CHECK(
      align({{.kinds = plain, .name = "weigh"}, {.kinds = plain, .name = "copy"}},
            {{.kind = routing, .name = "copy"}, {.kind = routing, .name = "weigh"}, {.kind = plain, .name = "copy"}}) ==
      Assigned{1, 2});
}

TEST_CASE("equal layers are aligned alike") {
  std::vector<AlignedKernel> kernels;
  std::vector<AlignedOperator> operators;
  constexpr int kLayers = 40;
  for (int layer = 0; layer < kLayers; ++layer) {
    // A norm, a split product with what finishes it, attention, a product, a norm that quantises, experts in two.
    for (const KernelKinds kinds :
         {KernelKinds(norm), KernelKinds(product), KernelKinds(rest), KernelKinds(attention), KernelKinds(product),
          both(norm, quantise), KernelKinds(routing), KernelKinds(experts), KernelKinds(experts)}) {
      kernels.push_back(kernel(kinds));
    }
    for (const KernelKind kind :
         {norm, product, attention, product, norm, quantise, routing, experts, activation, experts}) {
      operators.push_back(op(kind));
    }
  }
  const Assigned assigned = align(kernels, operators);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const Assigned own(assigned.begin() + static_cast<std::ptrdiff_t>(9 * layer),
                       assigned.begin() + static_cast<std::ptrdiff_t>(9 * (layer + 1)));
    const auto at = static_cast<std::int32_t>(10 * layer);
    CHECK(own == Assigned{at, at + 1, at + 1, at + 2, at + 3, at + 4, at + 6, at + 7, at + 9});
  }
}

TEST_CASE("nothing is aligned with nothing") {
  CHECK(align({}, {op(norm)}).empty());
  CHECK(align({kernel(norm)}, {}) == Assigned{kUnassigned});
}

}  // TEST_SUITE("learn/alignment")
