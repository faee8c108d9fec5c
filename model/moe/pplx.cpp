// Perplexity's kernels (perplexityai/pplx-garden, p2p-all-to-all): a message for each token and expert, which one
// kernel writes over NVLink or into a buffer that the host's proxy sends from, and another one puts where its expert's
// rows lie; back the same way, where the second one weighs and sums up. Between the two no SM is held.
#include <string>

#include "moe/all_to_all_traffic.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

constexpr const char* kPplx = "pplx";

Operator by_pplx(const std::string& kernel, Operator op) {
  op.name = "a2a_" + kernel + (op.traffic.stage == Stage::receive ? "_recv_kernel" : "_send_kernel");
  op.measured_as = kPplx;
  return op;
}

}  // namespace

Operator pplx_dispatch(const AllToAllWork& work, Stage stage) {
  const double message = payload_bytes(work, work.dispatch);
  return kernels::in(module_names::kDispatchTransfer,
                     by_pplx("dispatch", messages(Family::low_latency_dispatch, stage, work, message)));
}

Operator pplx_combine(const AllToAllWork& work, Stage stage) {
  const double message = payload_bytes(work, Precision::bf16);
  return kernels::in(module_names::kCombineTransfer,
                     by_pplx("combine", messages(Family::low_latency_combine, stage, work, message)));
}

bool is_pplx(const Operator& op) { return op.measured_as == kPplx; }

}  // namespace moeline
