// HybridEP, Megatron's dispatcher: one kernel each way.
#include <fmt/format.h>

#include "moe/all_to_all_traffic.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {

using namespace kernels;
using namespace module_names;

namespace {

constexpr const char* kHybridEp = "hybrid_ep";

Operator by_hybrid_ep(Family family, const char* kernel, const AllToAllWork& work, Precision precision) {
  Operator op;
  op.name = fmt::format("{}::{}", kHybridEp, kernel);
  op.family = family;
  const double payload = payload_bytes(work, precision);
  op.traffic = traffic_of(work, payload, payload);
  op.bytes = 2 * op.traffic.copied_bytes;
  op.measured_as = kHybridEp;
  return op;
}

}  // namespace

std::vector<Operator> hybrid_ep_dispatch(const AllToAllWork& work) {
  return {in(kDispatchTransfer, by_hybrid_ep(Family::nvlink_dispatch, "dispatch", work, work.dispatch))};
}

std::vector<Operator> hybrid_ep_combine(const AllToAllWork& work) {
  return {in(kCombineTransfer, by_hybrid_ep(Family::nvlink_combine, "combine", work, work.combine))};
}

std::vector<Operator> hybrid_ep_dispatch_gradients(const AllToAllWork& work) {
  return {in(kCombineTransfer, hybrid_ep_dispatch(work).front())};
}

std::vector<Operator> hybrid_ep_combine_gradients(const AllToAllWork& work) {
  return {in(kDispatchTransfer, hybrid_ep_combine(work).front())};
}

bool is_hybrid_ep(const Operator& op) { return op.measured_as == kHybridEp; }

}  // namespace moeline
