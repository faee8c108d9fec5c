// What DeepSeek's training sends: tokens and gradients of results in FP8, results and gradients of tokens in BF16
// (arXiv 2412.19437, section 3.3).
#include "moe/dispatcher.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

AllToAllWork transfers(const LayerWork& work) { return work.all_to_all(Precision::fp8); }

}  // namespace

std::vector<Operator> dispatch_forward(const LayerWork& work) {
  return dispatcher_of(work.mode).dispatch(transfers(work));
}

std::vector<Operator> combine_backward(const LayerWork& work) {
  std::vector<Operator> ops = dispatcher_of(work.mode).dispatch_gradients(transfers(work));
  const Operator quantised = kernels::cast("cast dY to fp8", work.tokens(), work.model.hidden_size);
  ops.insert(ops.begin(), kernels::in(module_names::kCombineInput, quantised));
  return ops;
}

std::vector<Operator> combine_forward(const LayerWork& work) {
  return dispatcher_of(work.mode).combine(transfers(work));
}

std::vector<Operator> dispatch_backward(const LayerWork& work) {
  return dispatcher_of(work.mode).combine_gradients(transfers(work));
}

}  // namespace moeline
