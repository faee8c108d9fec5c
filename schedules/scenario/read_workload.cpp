#include "schedules/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

std::vector<std::string> joined(std::vector<std::string> keys, const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<std::string> workload_keys(WorkloadPhase phase) {
  if (phase == WorkloadPhase::train) return keys::train().names();
  if (phase == WorkloadPhase::prefill) return keys::prefill().names();
  if (phase == WorkloadPhase::decode) return keys::decode().names();
  return joined(keys::prefill().names(), keys::decode().names());
}

TrainWorkload read_training(const Spec& spec, const ScheduleKind& schedule) {
  const keys::Row& seq_len = keys::train().at("seq_len");
  TrainWorkload w;
  w.micro_batch_size = 1;
  keys::train().read(spec, "micro_batch_size", w);
  if (spec.has("seq_len") && spec.is_list("seq_len")) {
    if (!schedule.pipeline) throw spec.error("seq_len", "lists one for each micro-batch of a whole pipeline alone");
    w.seq_lens = seq_len.integers(spec);
    if (w.seq_lens.empty()) throw spec.error("seq_len", "lists no lengths");
    w.seq_len = *std::max_element(w.seq_lens.begin(), w.seq_lens.end());
  } else {
    w.seq_len = seq_len.integer(spec);
  }
  if (1.0 * w.micro_batch_size * w.seq_len > seq_len.type.most) {
    throw spec.error("micro_batch_size",
                     fmt::format("x seq_len is more than {:.0f} tokens per GPU", seq_len.type.most));
  }
  keys::train().read(spec, "global_batch_size", w);
  return w;
}

PrefillWorkload read_prefill(const Spec& spec) {
  PrefillWorkload w;
  keys::prefill().read_all(spec, w);
  if (w.cached_len >= w.prompt_len) {
    throw spec.error("cached_len", fmt::format("must be below prompt_len: {} leaves nothing of {} to compute",
                                               w.cached_len, w.prompt_len));
  }
  return w;
}

// Of one phase alone.
constexpr const char* kKvTransfer = "kv_transfer_MB";
// Of all GPUs, instead of batch_size.
constexpr const char* kConcurrency = "concurrency";

// Until it is known how many attention groups there are, requests of all of them (share_out).
int read_requests(const Spec& spec) {
  const bool of_all = spec.stands(kConcurrency), of_each = spec.stands("batch_size");
  if (of_all && of_each) throw spec.error("batch_size", "says how many requests there are, and so does concurrency");
  if (!of_all && !of_each) throw spec.error("batch_size", "or concurrency is needed: how many requests decode");
  return keys::decode().at(of_all ? kConcurrency : "batch_size").integer(spec);
}

DecodeWorkload read_decode(const Spec& spec) {
  DecodeWorkload w;
  w.batch_size = read_requests(spec);
  for (const char* key : {"query_len", "kv_len"}) keys::decode().read(spec, key, w);
  if (w.kv_len < w.query_len) {
    throw spec.error("kv_len", fmt::format("counts the new tokens: {} is below query_len, {}", w.kv_len, w.query_len));
  }
  w.kv_len_spread = spec.has("kv_len_spread") ? spec.number("kv_len_spread", 0, 10.0 * w.kv_len) : 0;
  w.batch_size_spread = spec.has("batch_size_spread") ? spec.number("batch_size_spread", 0, w.batch_size) : 0;
  read_drafts(spec, w);
  read_graph_batch(spec, w);
  keys::decode().read(spec, kKvTransfer, w);
  return w;
}

Workload read_phase(const Spec& spec, WorkloadPhase phase, const ScheduleKind& schedule) {
  switch (phase) {
    case WorkloadPhase::train:
      return read_training(spec, schedule);
    case WorkloadPhase::prefill:
      return read_prefill(spec);
    case WorkloadPhase::decode:
      return read_decode(spec);
    case WorkloadPhase::mixed:
      break;
  }
  if (spec.has(kKvTransfer)) throw spec.error(kKvTransfer, "is of prefill and of decode, each on GPUs of its own");
  MixedWorkload mixed{read_decode(spec), read_prefill(spec)};
  if (mixed.decode.graph_choice == GraphBatch::given) {
    throw spec.error("graph_batch", "does not apply: no CUDA graph is captured for a step that has prompts");
  }
  return mixed;
}

void check_schedule(const Spec& spec, WorkloadPhase phase, const ScheduleKind& schedule) {
  if (schedule.is_for(phase)) return;
  throw spec.error("phase", fmt::format("'{}' does not go with the schedule {}, which is for {}", word_of(phase),
                                        schedule.name, fmt::join(words_of(schedule.phases), ", ")));
}

void check_micro_batches(const Spec& spec, const Workload& workload, const ScheduleKind& schedule) {
  const auto check = [&](const char* key, int count) {
    if (count >= schedule.micro_batches) return;
    throw spec.error(key, fmt::format("must be at least {}: one for each micro-batch", schedule.micro_batches));
  };
  if (const DecodeWorkload* decode = decode_of(workload)) check("batch_size", decode->batch_size);
  if (const PrefillWorkload* prefill = prefill_of(workload)) check("tokens", prefill->tokens);
}

}  // namespace

// One acceptance for all drafted tokens, or one for each.
void read_drafts(const Spec& spec, DecodeWorkload& w) {
  for (const char* key : {"mtp_acceptance", "draft_layers"}) {
    if (spec.has(key) && w.query_len == 1) throw spec.error(key, "does not apply: query_len 1 drafts no tokens");
  }
  keys::decode().read(spec, "draft_layers", w);
  if (!spec.has("mtp_acceptance")) return;
  const keys::Row& acceptance = keys::decode().at("mtp_acceptance");
  if (!spec.is_list("mtp_acceptance")) {
    w.mtp_acceptance = {acceptance.real(spec)};
    return;
  }
  w.mtp_acceptance = acceptance.reals(spec);
  if (static_cast<int>(w.mtp_acceptance.size()) != w.query_len - 1) {
    throw spec.error("mtp_acceptance", fmt::format("has {} numbers, and {} tokens are drafted (query_len {})",
                                                   w.mtp_acceptance.size(), w.query_len - 1, w.query_len));
  }
}

void read_graph_batch(const Spec& spec, DecodeWorkload& w) {
  constexpr const char* kKey = "graph_batch";
  if (!spec.has(kKey)) return;
  const keys::Row& key = keys::decode().at(kKey);
  if (!as_number<double>(spec.text(kKey))) {
    w.graph_choice = choice_of<GraphBatch>(key.word(spec));
    return;
  }
  w.graph_choice = GraphBatch::given;
  w.graph_batch = key.integer(spec);
}

std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                     const std::vector<std::string>& real) {
  const std::string value = spec.text_or(key, values.front());
  if (!known_name(value, values) && known_name(value, real)) {
    throw spec.error(key, fmt::format("'{}' is not modelled; there is: {}", value, fmt::join(values, ", ")));
  }
  return spec.has(key) ? spec.choice(key, values) : value;
}

Workload read_workload(const Spec& spec, const ScheduleKind& schedule) {
  const std::vector<std::string> of_any =
      joined(workload_keys(WorkloadPhase::train), workload_keys(WorkloadPhase::mixed));
  spec.expect(joined({"phase"}, of_any));
  (void)spec.text("phase");
  const auto phase = choice_of<WorkloadPhase>(spec.choice("phase", words_of<WorkloadPhase>()));
  check_schedule(spec, phase, schedule);
  spec.expect(joined({"phase"}, workload_keys(phase)));
  const Workload w = read_phase(spec, phase, schedule);
  check_micro_batches(spec, w, schedule);
  return w;
}

void share_out_requests(const Spec& spec, Scenario& scenario) {
  if (!spec.stands(kConcurrency)) return;
  auto* mixed = std::get_if<MixedWorkload>(&scenario.workload);
  DecodeWorkload& w = mixed != nullptr ? mixed->decode : std::get<DecodeWorkload>(scenario.workload);
  const int groups = scenario.parallelism.attention_groups();
  if (w.batch_size % groups != 0) {
    throw spec.error(kConcurrency,
                     fmt::format("must be a multiple of the {} attention groups: {} is not", groups, w.batch_size));
  }
  w.batch_size /= groups;
  if (w.batch_size < scenario.kind().micro_batches) {
    throw spec.error(kConcurrency, fmt::format("must be at least {}: one for each micro-batch of {} attention groups",
                                               groups * scenario.kind().micro_batches, groups));
  }
  if (w.batch_size_spread > w.batch_size) (void)spec.number("batch_size_spread", 0, w.batch_size);
}

}  // namespace moeline
