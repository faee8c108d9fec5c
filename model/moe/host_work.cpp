#include "moe/host_work.hpp"

#include <array>
#include <string_view>

#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace module_names;

// us on the processor of a DGX H100. Transformer Engine's linear layer takes 36.6 us forward: 99.7 and 90.5 on GB200
// and GH200, where torch's takes 37.1 and 33.2 and on a DGX H100 13.5 (its issue 2053). A grouped network of 64 experts
// takes 1.2 ms forward and 2.1 backward on GB200 (issue 2897): so backward is 1.75 times forward.
constexpr double kModule = 36.6, kModuleBackward = 1.75 * kModule;
constexpr double kOfExpert = 2.6;   // a product of a grouped layer, by what these 64 experts leave above two modules
constexpr double kOperation = 5;    // of torch, forward or a node of autograd (pytorch issues 122029, 41383)
constexpr double kCompiled = 39;    // a compiled region whose gradient is wanted (issue 122029)
constexpr double kFunction = 17;    // a function of autograd's own (issue 189573)
constexpr double kAttention = 101;  // torch's attention of variable lengths by Flash (pull request 191576)
constexpr double kCollective = 40;  // assumed; a profiler shows 76 of an all-gather (issue 102434)
constexpr double kChunk = 0.75;     // a view of one among many
constexpr double kGraph = kModule;  // assumed: a graph's launch
constexpr double kCheckpoint = 10 * kOperation + kFunction;  // states of random numbers, kept and put back

enum class Pass { forward, backward, weights };

bool is_repeated(const Operator& op) { return op.purpose == Purpose::recompute; }

Pass pass_of(const std::string& phase, const Operator& op) {
  if (is_repeated(op)) return Pass::forward;
  return phase.ends_with("(W)") ? Pass::weights : phase.ends_with("(B)") ? Pass::backward : Pass::forward;
}

// Operations of torch as counted in Megatron-Core's and Transformer Engine's sources of 2025: router.py,
// token_dispatcher.py, moe_utils.py, attention.py, multi_latent_attention.py. A call of the module, without
// collectives.
struct ModuleCalls {
  const char* module;
  double forward, backward;
};
constexpr std::array<ModuleCalls, 12> kCalls = {{
    {kRouterChoice, 23.4 * kOperation + kCompiled + kCollective, 11 * kOperation},
    {kDispatchInput, 19.4 * kOperation, kOperation},
    {kCore, kAttention, kAttention},
    {kExpertActivation, kCompiled, 5 * kOperation},
    {kDenseActivation, kCompiled, 5 * kOperation},
    {kSharedActivation, kCompiled + 1.6 * kOperation, 6 * kOperation},
    {kLoss, 21.8 * kOperation, kFunction},
    {kEmbedding, 13.6 * kOperation, 6 * kOperation},
    {kDispatchBarrier, kFunction, kFunction},
    {kDispatchTransfer, kFunction + kOperation, kFunction + kOperation},
    {kCombineBarrier, kFunction, kFunction},
    {kCombineTransfer, kFunction + kOperation, kFunction + kOperation},
}};

bool is_of_group(const Operator& op) { return op.module == kExpertGateUp || op.module == kExpertDown; }

// A product of a linear layer: what it launches in one direction. A hook of data parallelism runs behind a gradient.
double linear_us(Pass pass) {
  if (pass == Pass::forward) return kModule;
  return pass == Pass::backward ? kModuleBackward * 2 / 3 : kModuleBackward / 3 + kFunction;
}
double expert_us(Pass pass) { return kOfExpert + (pass == Pass::weights ? kFunction : 0); }
double collective_us(Pass pass) { return kCollective + (pass == Pass::forward ? 0 : kFunction); }

// Of the five kernels of a layer, which together go through the chunks three times.
double permutation_us(Pass pass, int chunks) {
  return 3.0 / 5 * chunks * kChunk + (pass == Pass::forward ? 6 : 5) * kOperation;
}

// Latents are split, turned and joined by operations; of other heads one kernel turns queries and one keys.
double rotary_us(bool latent, Pass pass) {
  if (!latent) return kFunction + kOperation;
  return (pass == Pass::forward ? 20 : 18) * kOperation;
}

class PhaseOfHost {
 public:
  PhaseOfHost(const std::string& phase, const std::vector<Operator>& ops, int chunks)
      : phase_(phase), ops_(ops), chunks_(chunks) {
    for (const Operator& op : ops) latent_ |= op.module == kUpKv || op.module == kDownKv;
  }

  [[nodiscard]] double us(std::size_t i) const {
    const bool begins_again = is_repeated(ops_[i]) && (i == 0 || !is_repeated(ops_[i - 1]));
    return (begins_again ? kCheckpoint : 0) + us_of(i, pass_of(phase_, ops_[i]));
  }

 private:
  [[nodiscard]] double us_of(std::size_t i, Pass pass) const {
    const Operator& op = ops_[i];
    if (is_collective(op.family)) return collective_us(pass) + (is_first(i) ? call_us(op, pass) : 0);
    if (is_of_group(op) && is_gemm(op.family)) return expert_us(pass) + (is_first(i) ? linear_us(pass) : 0);
    if (is_gemm(op.family)) return linear_us(pass);
    if (op.module == kNorms || op.module == kAttentionNorms) return norm_us(op, pass);
    if (op.module == kRotary) return rotary_us(latent_, pass);
    if (op.module == kPermutation) return permutation_us(pass, chunks_);
    return is_first(i) ? call_us(op, pass) : 0;
  }

  // Of the kernels that follow each other in one call of the module.
  [[nodiscard]] bool is_first(std::size_t i) const {
    return i == 0 || ops_[i - 1].module != ops_[i].module || is_repeated(ops_[i - 1]) != is_repeated(ops_[i]);
  }

  [[nodiscard]] static double call_us(const Operator& op, Pass pass) {
    for (const ModuleCalls& calls : kCalls) {
      if (op.module == calls.module) return pass == Pass::forward ? calls.forward : calls.backward;
    }
    return is_collective(op.family) ? 0 : kOperation;
  }

  // Norms are modules; residual adds and the like are compiled, and their gradients are operations.
  [[nodiscard]] static double norm_us(const Operator& op, Pass pass) {
    if (op.family == Family::rowwise) return pass == Pass::forward ? kModule : kModuleBackward + kFunction;
    if (op.family == Family::small) return 0;  // of the norm before it
    return pass == Pass::forward ? kCompiled : kOperation;
  }

  const std::string& phase_;
  const std::vector<Operator>& ops_;
  int chunks_;
  bool latent_ = false;
};

}  // namespace

std::vector<double> host_us(const std::string& phase, const std::vector<Operator>& ops,
                            const std::vector<bool>& captured, int chunks) {
  const PhaseOfHost host(phase, ops, chunks);
  std::vector<double> us(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool replayed = captured[i] && i > 0 && captured[i - 1];
    us[i] = replayed ? 0 : captured[i] ? kGraph : host.us(i);
  }
  return us;
}

}  // namespace moeline
