// What a scenario says of the work: keys of training, prefill and decode.
#include "schedules/scenario/keys.hpp"

namespace moeline::keys {
namespace {

constexpr int kMostTokens = 1 << 24;

}  // namespace

const Table<TrainWorkload>& train() {
  using W = TrainWorkload;
  static const Type tokens = whole(1, kMostTokens);
  static const Table<W> kKeys = {
      key(&W::micro_batch_size, "micro_batch_size", whole(1, 1 << 16), "sequences of a micro-batch").otherwise("1"),
      special<W>("seq_len", either(tokens, list_of(tokens)),
                 "tokens of a sequence. Of pipelines also a list, one for each micro-batch in turn",
                 [](const W& w) { return w.seq_lens.empty() ? Value(w.seq_len) : Value(w.seq_lens); })
          .needed(),
      key(&W::global_batch_size, "global_batch_size", whole(1, 1 << 30),
          "sequences of a step, on all GPUs: a multiple of dp x micro_batch_size. Needed by pipelines")
          .depends()
          .unless_default(),
  };
  return kKeys;
}

namespace {

template <class W>
Key<W> kv_transfer() {
  return key(&W::kv_transfer_MB, "kv_transfer_MB", number(0, 1e6),
             "MB of KV caches that cross each GPU's NIC beside the step, at its peak: out of prefill, into decode")
      .not_of_mixed()
      .unless_default();
}

}  // namespace

const Table<PrefillWorkload>& prefill() {
  using W = PrefillWorkload;
  static const Table<W> kKeys = {
      key(&W::tokens, "tokens", whole(1, kMostTokens), "new tokens of a step, of each attention group").needed(),
      key(&W::prompt_len, "prompt_len", whole(1, kMostTokens),
          "tokens of a prompt, the cached ones included; one with more new tokens than `tokens` takes several steps")
          .needed(),
      key(&W::cached_len, "cached_len", whole(0, kMostTokens),
          "tokens of each prompt that are in the KV cache already; fewer than prompt_len"),
      kv_transfer<W>(),
  };
  return kKeys;
}

namespace {

// Of draws that differ, each has a fullest rank of its own.
Value resolved_graph_batch(const DecodeWorkload& w) {
  if (w.graph_choice == GraphBatch::by_stack && w.batch_size_spread > 0) return word_of(GraphBatch::by_stack);
  return w.graph_batch > 0 ? Value(w.graph_batch) : Value(word_of(GraphBatch::exact));
}

}  // namespace

const Row& acceptance() {
  static const Type share = number(0, 1);
  static const Row kRow = {
      .name = "mtp_acceptance",
      .type = either(share, list_of(share)),
      .meaning =
          "probability that a drafted token is accepted, if those before it were; a list has one for each drafted "
          "token. Needs query_len above 1",
      .fallback = as_json(one_or_list(DecodeWorkload{}.mtp_acceptance))};
  return kRow;
}

const Table<DecodeWorkload>& decode() {
  using W = DecodeWorkload;
  constexpr int kMostRequests = 1 << 20;
  static const Table<W> kKeys = {
      key(&W::batch_size, "batch_size", whole(1, kMostRequests),
          "requests of each attention group; this or concurrency")
          .depends(),
      special<W>("concurrency", whole(1, kMostRequests), "requests of all GPUs: a multiple of the attention groups"),
      key(&W::kv_len, "kv_len", whole(1, kMostTokens),
          "mean tokens of a request, the new ones included; at least query_len")
          .needed(),
      key(&W::kv_len_spread, "kv_len_spread", number(0, 10.0 * kMostTokens),
          "standard deviation of the requests' tokens; at most 10 x kv_len"),
      key(&W::batch_size_spread, "batch_size_spread", number(0, kMostRequests),
          "standard deviation of the ranks' requests; at most batch_size")
          .unless_default(),
      special<W>("graph_batch", either(words(words_of<GraphBatch>()), whole(1, kMostRequests)),
                 "requests whose rows a step computes. auto: the next batch above the fullest rank's for which the "
                 "stack captures a CUDA graph; exact: those that there are; or a number, of steps launched as graphs",
                 resolved_graph_batch)
          .otherwise("\"auto\"")
          .words_alone_if_mixed(),
      kv_transfer<W>(),
      key(&W::query_len, "query_len", whole(1, 16),
          "tokens per request and step: one, and those drafted by MTP or by a draft model"),
      key(&W::draft_layers, "draft_layers", whole(1, 64),
          "layers of a draft model, with query_len above 1; by default the model's MTP modules draft")
          .depends()
          .unless_default(),
      special<W>(acceptance().name,
                 {R"("$ref": "#/definitions/acceptance")", acceptance().type.least, acceptance().type.most}, "",
                 [](const W& w) { return one_or_list(w.mtp_acceptance); })
          .when([](const W& w) { return w.query_len > 1; }),
  };
  return kKeys;
}

}  // namespace moeline::keys
