// A program that repeats itself, found without annotations: where the layers of a model begin and end in a sequence of
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace moeline {

/// Positions in a sequence, `end` not among them.
struct Repetition {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] std::size_t length() const { return end - begin; }
  bool operator==(const Repetition&) const = default;
};

/// Where a sequence begins anew, in order: at least three repetitions, else none. It is cut at an element that stands
/// once in each; of all such elements, one whose cuts give the most repetitions that are like those beside them.
///
/// Two neighbours are the same when nine tenths of their elements are, whatever their order, so that an element more or
/// less does no harm, and akin when more than half of them are. Layers of one kind are the same as their neighbours.
/// Layers of several kinds (sliding and full attention in turn, dense layers before those with experts, linear
/// attention with a full one now and then) are akin, and something must tell them from the parts of one layer, which
/// may share most of their kernels, too: each of them has attention, or most have none and some neighbours are the
/// same. One pair in ten need not be as it should.
///
/// `attention`: the elements that are known to be attention. What stands at either end without it, where most have it,
/// or else without being akin to its neighbour, is a prologue or an epilogue and no repetition; more than eight in all
/// are too many. A repetition that begins as the others do and goes on for half as long again ends where they do: what
/// follows is none.
[[nodiscard]] std::vector<Repetition> repetitions(const std::vector<std::uint32_t>& sequence,
                                                  const std::set<std::uint32_t>& attention = {});

}  // namespace moeline
