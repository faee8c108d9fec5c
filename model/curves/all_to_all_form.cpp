// The all-to-all inside a node or an NVLink domain.
//   normal       DeepEP, on the SMs it is given: start-up + the pipelines fill + max(messages, tokens, NVLink)
//                  messages  a token once to each of its ranks: so much each, and by its bytes
//                  tokens    every sender warp goes through every token; a combine writes one sum per token
//   low latency  DeepEP, an SM for so many experts: start-up + max(what the SMs send after their first token, NVLink)
//   NVLink       TensorRT-LLM, two-sided: start-up + a step for each time the ranks double + max(tokens, NVLink)
// SMs that send beside each other slow each other down: `crowd`.
#include <algorithm>
#include <cmath>

#include "curves/curve.hpp"
#include "curves/form.hpp"
#include "curves/topology.hpp"

namespace moeline {
namespace all_to_all_curves {
namespace {

constexpr const char* kCopies = "SMs";
constexpr const char* kLinks = "NVLink";

double link_us(const Operator& op, const MachineFacts& machine) {
  return bytes_at_peak_us(op.traffic.nvlink_bytes, nvlink_rate_GBps(machine));
}

double record_KB(const Operator& op) { return op.traffic.record_bytes / 1e3; }

// Of the bytes that a transfer reads and writes, what a repeated one finds in L2: its tokens and their copies.
double share_in_l2(const Operator& op, const MachineFacts& machine) {
  if (!op.hot) return 0;
  const Traffic& traffic = op.traffic;
  const double bytes = traffic.tokens * (traffic.ranks_per_token + 1) * traffic.record_bytes;
  return std::min(1.0, machine.l2_mb * 1e6 / bytes);
}

// What an SM has to do in normal mode; `copies` in KB, of its tokens to all their ranks.
struct SmWork {
  double tokens, messages, KB, copied_KB, crowd;
};

SmWork sm_work(const Operator& op, int sms) {
  constexpr double kAlone = 4;  // SMs: the fewest that were measured, counted as not slowing each other down
  const Traffic& traffic = op.traffic;
  const double tokens = traffic.tokens / sms;
  const double messages = tokens * traffic.ranks_per_token;
  return {tokens, messages, tokens * record_KB(op), messages * record_KB(op), std::max(0.0, 1 - kAlone / sms)};
}

// A pipeline fills with the tokens of one chunk: DeepEP's configurations take 4 to 32.
Term fill_term(Constant constant, const Operator& op, const SmWork& work, const MachineFacts& machine) {
  constexpr double kChunk = 20;
  const double filled = work.tokens / (work.tokens + kChunk);
  return {constant, overhead(machine, filled * op.traffic.ranks_per_token * record_KB(op))};
}

enum DispatchPart : std::size_t {
  start,
  fill,
  message,
  message_crowd,
  token,
  token_copies,
  token_crowd,
  links,
};

Curve dispatch_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const SmWork work = sm_work(op, sms);
  return {{{part(start), overhead(machine)}, fill_term(part(fill), op, work, machine)},
          {{kCopies,
            {{part(message), overhead(machine, work.messages)},
             {part(message_crowd), overhead(machine, work.crowd * work.copied_KB)}}},
           {kCopies,
            {{part(token), overhead(machine, work.tokens)},
             {part(token_copies), overhead(machine, work.copied_KB)},
             {part(token_crowd), overhead(machine, work.crowd * work.KB)}}},
           {kLinks, {{part(links), link_us(op, machine)}}}}};
}

enum CombinePart : std::size_t {
  combine_start,
  start_KB,
  start_copies,
  combine_fill,
  combine_message,
  combine_message_crowd,
  combine_token,
  combine_token_copies,
  combine_links,
};

// Start-up grows with the record, and with what a token gathers.
Curve combine_curve(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kHot = 0.87;  // time of a byte from L2 over one from HBM
  const SmWork work = sm_work(op, sms);
  const double hot = share_in_l2(op, machine);
  return {{{part(combine_start), overhead(machine)},
           {part(start_KB), overhead(machine, record_KB(op))},
           {part(start_copies), overhead(machine, op.traffic.ranks_per_token * record_KB(op))},
           fill_term(part(combine_fill), op, work, machine)},
          {{kCopies,
            {{part(combine_message), overhead(machine, work.copied_KB)},
             {part(combine_message_crowd), overhead(machine, work.crowd * work.messages)}}},
           {kCopies,
            {{part(combine_token), overhead(machine, work.KB * (1 - hot + kHot * hot))},
             {part(combine_token_copies), overhead(machine, work.copied_KB)}}},
           {kLinks, {{part(combine_links), link_us(op, machine)}}}}};
}

enum LowLatencyPart : std::size_t { ll_start, ll_group, ll_token, ll_message, ll_links, ll_link_message };

// DeepEP gives an SM as many experts as it takes for the SMs to suffice, and launches no more than that needs: 8
// experts are served by 8 SMs.
Curve low_latency_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  const bool dispatches = op.family == Family::low_latency_dispatch;
  const double experts_each = std::max(1.0, std::ceil(traffic.experts / sms));
  const double used = std::max(1.0, std::ceil(traffic.experts / experts_each));
  const double further = std::max(0.0, traffic.tokens / used - 1);  // tokens of an SM: the first is in the start-up
  const double token_KB = 2 * traffic.hidden / 1e3;                 // of BF16, read by one and written by the other
  const double messages = further * traffic.top_k * (dispatches ? 1 : record_KB(op));
  Curve curve{
      {{part(ll_start), overhead(machine)}, {part(ll_group), overhead(machine, experts_each - 1)}},
      {{kCopies,
        {{part(ll_token), overhead(machine, further * token_KB)}, {part(ll_message), overhead(machine, messages)}}},
       {kLinks, {{part(ll_links), link_us(op, machine)}}}}};
  if (dispatches) curve.branches.back().terms.push_back({part(ll_link_message), traffic.tokens * traffic.top_k / 1e3});
  return curve;
}

enum PreparePart : std::size_t { prepare_start, prepare_doubling, prepare_token };

Curve prepare_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double thousands = op.traffic.tokens / 1e3 * machine.sms / sms;
  return {{{part(prepare_start), overhead(machine)},
           {part(prepare_doubling), overhead(machine, std::log2(op.traffic.ranks))},
           {part(prepare_token), overhead(machine, thousands)}},
          {}};
}

enum NvlinkPart : std::size_t {
  nv_start,
  nv_doubling,
  nv_token,
  nv_cold,
  nv_hot,
  nv_copies,
  nv_links,
  nv_link_message,
};

Curve nvlink_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  const double thousands = traffic.tokens / 1e3 * machine.sms / sms;
  const double MB = thousands * record_KB(op), hot = share_in_l2(op, machine);
  const double sent = traffic.nvlink_bytes / traffic.record_bytes;  // copies that leave the rank
  return {{{part(nv_start), overhead(machine)}, {part(nv_doubling), overhead(machine, std::log2(traffic.ranks))}},
          {{kCopies,
            {{part(nv_token), overhead(machine, thousands)},
             {part(nv_cold), overhead(machine, MB * (1 - hot))},
             {part(nv_hot), overhead(machine, MB * hot)},
             {part(nv_copies), overhead(machine, MB * traffic.ranks_per_token)}}},
           {kLinks, {{part(nv_links), link_us(op, machine)}, {part(nv_link_message), sent / 1e3}}}}};
}

}  // namespace
}  // namespace all_to_all_curves

// Chosen on the tables of data/aic. In normal mode those of Blackwell are hardly ever bound by NVLink: its multiple is
// at least what Hopper's were bound by. NVLink's bytes and messages are told apart by few shapes only, so that bytes
// take no less than their time at the peak.
std::vector<Form> all_to_all_forms() {
  using namespace all_to_all_curves;
  constexpr double kNormalLinks = 1.5, kPeak = 1;
  return {
      {"deepep_dispatch",
       {{"start_us"},
        {"fill_us_per_KB"},
        {"message_us"},
        {"message_crowd_us_per_KB"},
        {"token_us"},
        {"token_copies_us_per_KB"},
        {"token_crowd_us_per_KB"},
        {"nvlink_roofline_multiple", kNormalLinks}},
       dispatch_curve},
      {"deepep_combine",
       {{"start_us"},
        {"start_us_per_KB"},
        {"start_copies_us_per_KB"},
        {"fill_us_per_KB"},
        {"message_us_per_KB"},
        {"message_crowd_us"},
        {"token_us_per_KB"},
        {"token_copies_us_per_KB"},
        {"nvlink_roofline_multiple", kNormalLinks}},
       combine_curve},
      {"deepep_low_latency_dispatch",
       {{"start_us"},
        {"group_us"},
        {"token_us_per_KB"},
        {"message_us"},
        {"nvlink_roofline_multiple", kPeak},
        {"nvlink_us_per_1000_messages"}},
       low_latency_curve},
      {"deepep_low_latency_combine",
       {{"start_us"}, {"group_us"}, {"token_us_per_KB"}, {"message_us_per_KB"}, {"nvlink_roofline_multiple", kPeak}},
       low_latency_curve},
      {"trtllm_nvlink_prepare", {{"start_us"}, {"doubling_us"}, {"us_per_1000_tokens"}}, prepare_curve},
      {"trtllm_nvlink",
       {{"start_us"},
        {"doubling_us"},
        {"us_per_1000_tokens"},
        {"us_per_MB"},
        {"l2_us_per_MB"},
        {"copies_us_per_MB"},
        {"nvlink_roofline_multiple", kPeak},
        {"nvlink_us_per_1000_messages"}},
       nvlink_curve}};
}

}  // namespace moeline
