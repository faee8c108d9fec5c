#include "schedules/lowering/kernel_detail.hpp"

#include <fmt/format.h>

namespace moeline {
namespace {

std::string describe(const Operator& op, const Price& price) {
  std::string shape;
  if (is_gemm(op.family)) {
    shape = fmt::format(" m={:.0f} n={:.0f} k={:.0f}", op.m, op.n, op.k);
    if (op.groups > 1) shape += fmt::format(" groups={:.0f}", op.groups);
  } else if (is_low_latency(op.family)) {
    shape = fmt::format(" {:.1f} MB off-node, {:.1f} MB in the node, bound by {}", op.traffic.wire_bytes / 1e6,
                        op.traffic.nvlink_bytes / 1e6, price.bound_by);
  } else if (is_host_copy(op.family)) {
    shape = fmt::format(" {:.1f} MB", op.bytes / 1e6);
  } else if (is_collective(op.family)) {
    shape = fmt::format(" {:.1f} MB, {:.1f} of it off-node, {:.1f} by NVLink", op.traffic.payload_bytes / 1e6,
                        op.traffic.wire_bytes / 1e6, op.traffic.nvlink_bytes / 1e6);
  } else if (is_all_to_all(op.family)) {
    shape = fmt::format(" {:.1f} MB by RDMA, {:.1f} of it off-node, {:.1f} MB by NVLink, bound by {}",
                        op.traffic.rdma_bytes / 1e6, op.traffic.wire_bytes / 1e6, op.traffic.nvlink_bytes / 1e6,
                        price.bound_by);
  } else if (op.flops > 0) {
    shape = fmt::format(" {:.1f} GFLOP", op.flops / 1e9);
  } else if (op.bytes > 0) {
    shape = fmt::format(" {:.1f} MB", op.bytes / 1e6);
  }
  const std::string from = price.kernel_set.empty() ? "" : " from " + price.kernel_set;
  return fmt::format("{}{}, {}{}", name_of(op.family), shape, name_of(price.provenance), from);
}

}  // namespace

std::string detail_of(const Program& program, PriceBook& prices, TaskId task) {
  const std::string_view written = program.graph.task_detail(task);
  const std::uint32_t number = program.execution_of(task).kernel;
  if (!written.empty() || number == Execution::kNone) return std::string(written);
  const KernelWork& kernel = program.kernels[number];
  const std::string detail = describe(kernel.op, *prices.price(kernel.op, kernel.conditions));
  return kernel.parts > 1 ? fmt::format("{}, one of {} parts", detail, kernel.parts) : detail;
}

}  // namespace moeline
