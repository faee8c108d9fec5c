// Collectives inside a node.
//   NCCL    start-up + a step for each rank + the quicker of two protocols:
//             LL      bytes at the low rate of words that carry their own flags
//             Simple  a start-up of its own + max(the ranks' pipeline fills, bytes over NVLink and through the SMs)
//   custom  a serving stack's own all-reduce: start-up + a barrier over the ranks + the quicker of
//             one-shot  every rank reads all others' messages
//             two-shot  a start-up of its own + each reduces its part, and all gather the parts
// `message_bytes` counts as nccl-tests do: the whole message, of which each rank holds or keeps 1/ranks.
#include "curves/curve.hpp"
#include "curves/form.hpp"
#include "curves/topology.hpp"

namespace moeline {
namespace collective_curves {
namespace {

// NVLink, both as the ranks' links and as what their SMs load and store by it.
constexpr const char* kLinks = "NVLink";
constexpr const char* kFill = "latency";

struct Message {
  double ranks, others;
  double us;   // of all its bytes, by one GPU's NVLink
  double bus;  // of what a ring passes over each link
};

Message message_of(const Operator& op, const MachineFacts& machine) {
  const double ranks = op.traffic.members, others = ranks - 1;
  const double us = bytes_at_peak_us(op.traffic.message_bytes, nvlink_rate_GBps(machine));
  const double rounds = op.family == Family::all_reduce ? 2 : 1;
  return {ranks, others, us, rounds * us * others / ranks};
}

enum NcclPart : std::size_t { start, step, ll_bytes, simple_start, simple_step, fill_bytes, bus, local };

Curve low_latency_protocol(const Operator& op, const MachineFacts& machine) {
  const Message message = message_of(op, machine);
  const bool to_each = op.family == Family::all_to_all;  // each peer has a channel for its part
  return {{{part(start), overhead(machine)}, {part(step), overhead(machine, message.others)}},
          {{kLinks, {{part(ll_bytes), to_each ? message.us / message.ranks : message.us}}}}};
}

Curve simple_protocol(const Operator& op, const MachineFacts& machine) {
  const Message message = message_of(op, machine);
  return {{{part(start), overhead(machine)},
           {part(step), overhead(machine, message.others)},
           {part(simple_start), overhead(machine)}},
          {{kFill, {{part(simple_step), overhead(machine, message.others)}, {part(fill_bytes), message.us}}},
           {kLinks, {{part(bus), message.bus}, {part(local), message.us}}}}};
}

// On Blackwell NCCL's rings leave LL from 2 MiB per rank on, though Simple takes longer there: times jump.
bool leaves_ll(const Operator& op) {
  constexpr double kMostOfRank = 2 << 20;
  const Traffic& traffic = op.traffic;
  const bool ring = op.family != Family::all_to_all && traffic.members > 2;
  return ring && traffic.message_bytes >= kMostOfRank * traffic.members;
}

Curve nccl_curve(const Operator& op, const MachineFacts& machine, bool blackwell) {
  Curve curve = simple_protocol(op, machine);
  if (!blackwell || !leaves_ll(op)) curve.alternatives = {low_latency_protocol(op, machine)};
  return curve;
}

Form nccl_form(const std::string& name, bool blackwell) {
  return {
      name,
      {{"start_us"},
       {"step_us"},
       {"ll_roofline_multiple"},
       {"simple_start_us"},
       {"simple_step_us"},
       {"fill_roofline_multiple"},
       {"bus_roofline_multiple"},
       {"local_roofline_multiple"}},
      [blackwell](const Operator& op, int, const MachineFacts& machine) { return nccl_curve(op, machine, blackwell); }};
}

enum CustomPart : std::size_t { custom_start, barrier, one_shot, two_start, two_shot };

Curve one_shot_curve(const Operator& op, const MachineFacts& machine) {
  const Message message = message_of(op, machine);
  return {{{part(custom_start), overhead(machine)}, {part(barrier), overhead(machine, message.others)}},
          {{kLinks, {{part(one_shot), message.us * message.others}}}}};
}

Curve custom_curve(const Operator& op, const MachineFacts& machine) {
  Curve curve = one_shot_curve(op, machine);
  Curve other{curve.always, {{kLinks, {{part(two_shot), message_of(op, machine).bus}}}}};
  other.always.push_back({part(two_start), overhead(machine)});
  curve.alternatives = {other};
  return curve;
}

}  // namespace
}  // namespace collective_curves

double most_custom_bytes(const MachineFacts& machine) {
  const bool ampere = machine.fp8_tflops == 0;
  return (ampere ? 8 : 16) << 20;
}

// Chosen on the tables of data/aic. TensorRT-LLM's kernels of Hopper show no two-shot before NCCL is quicker.
std::vector<Form> collective_forms() {
  using namespace collective_curves;
  return {nccl_form("nccl", false),
          nccl_form("nccl_sm100", true),
          {"custom_all_reduce",
           {{"start_us"},
            {"barrier_us"},
            {"one_shot_roofline_multiple"},
            {"two_shot_start_us"},
            {"two_shot_roofline_multiple"}},
           [](const Operator& op, int, const MachineFacts& machine) { return custom_curve(op, machine); }},
          {"one_shot_all_reduce",
           {{"start_us"}, {"barrier_us"}, {"one_shot_roofline_multiple"}},
           [](const Operator& op, int, const MachineFacts& machine) { return one_shot_curve(op, machine); }}};
}

}  // namespace moeline
