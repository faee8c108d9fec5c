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

Operator stage_of(Family family, const std::string& kernel, Stage stage, const AllToAllWork& work, double message) {
  Operator op;
  op.name = "a2a_" + kernel + (stage == Stage::receive ? "_recv_kernel" : "_send_kernel");
  op.family = family;
  op.measured_as = kPplx;
  op.traffic = messages_of(work, message);
  op.traffic.stage = stage;
  if (stage != Stage::wire) op.bytes = (stage == Stage::whole ? 4 : 2) * op.traffic.copied_bytes;  // read and written
  return op;
}

Operator dispatch(const AllToAllWork& work, Stage stage) {
  const double message = payload_bytes(work, work.dispatch);
  return kernels::in(module_names::kDispatchTransfer,
                     stage_of(Family::low_latency_dispatch, "dispatch", stage, work, message));
}

Operator combine(const AllToAllWork& work, Stage stage) {
  const double message = payload_bytes(work, Precision::bf16);
  return kernels::in(module_names::kCombineTransfer,
                     stage_of(Family::low_latency_combine, "combine", stage, work, message));
}

}  // namespace

std::vector<Operator> pplx_dispatch(const AllToAllWork& work) {
  return {dispatch(work, Stage::issue), dispatch(work, Stage::wire), dispatch(work, Stage::receive)};
}

std::vector<Operator> pplx_combine(const AllToAllWork& work) {
  return {combine(work, Stage::issue), combine(work, Stage::wire), combine(work, Stage::receive)};
}

std::vector<Operator> whole_pplx_dispatch(const AllToAllWork& work) { return {dispatch(work, Stage::whole)}; }

std::vector<Operator> whole_pplx_combine(const AllToAllWork& work) { return {combine(work, Stage::whole)}; }

bool is_pplx(const Operator& op) { return op.measured_as == kPplx; }

}  // namespace moeline
