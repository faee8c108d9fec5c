// TensorRT-LLM's all-to-all over NVLink: a token goes once to each rank that holds its experts, as its numbers and
// their scales, which reads and writes HBM.
#include "moe/all_to_all_traffic.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {

using namespace kernels;
using namespace module_names;

namespace {

Operator nvlink_transfer(Family family, const std::string& kernel, const AllToAllWork& work, Precision precision) {
  Operator op;
  op.name = kernel;
  op.family = family;
  const double payload = payload_bytes(work, precision == Precision::fp8 ? Precision::fp8_tensor : precision);
  op.traffic = traffic_of(work, payload, payload);
  op.bytes = 2 * op.traffic.copied_bytes;
  op.measured_as = name_of(family);
  return op;
}

}  // namespace

std::vector<Operator> nvlink_dispatch(const AllToAllWork& work) {
  Operator prepare;
  prepare.name = "moe_comm::prepare";
  prepare.family = Family::nvlink_prepare;
  prepare.traffic = sizes_of(work);
  prepare.measured_as = name_of(prepare.family);
  return {in(kDispatchInput, prepare),
          in(kDispatchTransfer, nvlink_transfer(Family::nvlink_dispatch, "moe_comm::dispatch", work, work.dispatch))};
}

// Fewer bits are packed and unpacked on the way, by kernels that were measured apart.
std::vector<Operator> nvlink_combine(const AllToAllWork& work) {
  Operator op = nvlink_transfer(Family::nvlink_combine, "moe_comm::combine", work, work.combine);
  if (work.combine != Precision::bf16) op.measured_as += "_low_precision";
  return {in(kCombineTransfer, op)};
}

}  // namespace moeline
