#include "experiments/serve/serve_keys.hpp"

#include <fmt/format.h>

#include "schedules/scenario/keys.hpp"

namespace moeline {

namespace keys {
namespace {

constexpr int kMostRequests = 1'000'000, kMostLength = 1 << 22, kMostTogether = 1 << 20, kMostReplicas = 4096;
constexpr double kLongest_s = 1e9, kLongest_ms = 1e9;

// In another unit; the field has ms.
template <class Of>
Key<Of> key_in_unit(double unit_ms, double Of::*ms, std::string name, Type type, std::string meaning) {
  Key<Of> in_unit = key(ms, std::move(name), std::move(type), std::move(meaning)).as([ms, unit_ms](const Of& of) {
    return of.*ms / unit_ms;
  });
  in_unit.fallback = as_json(in_unit.resolved(Of{}));
  in_unit.read = [ms, unit_ms, row = Row(in_unit)](const Spec& spec, Of& of) { of.*ms = unit_ms * row.real(spec); };
  return in_unit;
}

template <class Of>
Key<Of> key_in_s(double Of::*ms, std::string name, Type type, std::string meaning) {
  return key_in_unit(1e3, ms, std::move(name), std::move(type), std::move(meaning));
}

// A number, or the two that it is drawn between.
Key<ServeWorkload> length(std::string name, std::string meaning) {
  const Type tokens = whole(1, kMostLength);
  const Type ends = {fmt::format(R"("type": "array", "items": {{{}}}, "minItems": 2, "maxItems": 2)", tokens.schema)};
  return special<ServeWorkload>(std::move(name), either(tokens, ends), std::move(meaning));
}

// At most four times the mean.
Key<ServeWorkload> length_spread(std::string name, std::string meaning) {
  return special<ServeWorkload>(std::move(name), number(0, 4.0 * kMostLength), std::move(meaning)).otherwise("0");
}

// As of a step of decode.
Key<ServeWorkload> of_decode(const char* name) { return {Row(decode().at(name))}; }

Key<ServeWorkload> graph_batch() {
  Key<ServeWorkload> key = of_decode("graph_batch");
  key.meaning =
      "requests whose rows a step that only decodes computes. auto: the next batch above the fullest group's for which "
      "the stack captures a CUDA graph; exact: those that there are; or a number, of all steps, at least batch_size";
  return key;
}

const Table<Prefixes>& prefixes() {
  using P = Prefixes;
  constexpr double kSteepest = 8;
  static const Table<P> kKeys = {
      key(&P::count, "count", whole(1, kMostRequests), "prefixes").needed(),
      special<P>("len", whole(1, kMostLength - 1), "tokens of each; fewer than input_len").needed(),
      key(&P::zipf, "zipf", number(0, kSteepest), "the k-th is asked for k^-zipf as often"),
  };
  return kKeys;
}

const Table<StepHost>& host() {
  constexpr double kUs = 1e-3;
  static const Type us = number(0, 1e6);
  static const Table<StepHost> kKeys = {
      key_in_unit(kUs, &StepHost::step_ms, "step_us", us, "us of each step"),
      key_in_unit(kUs, &StepHost::request_ms, "request_us", us,
                  "us more for each request of an attention group that decodes"),
  };
  return kKeys;
}

const Table<PrefillPool>& prefill_pool() {
  using P = PrefillPool;
  static const Table<P> kKeys = {
      key(&P::replicas, "replicas", whole(1, kMostReplicas), "that compute prompts").needed(),
      key(&P::set, "set", {R"("type": "array", "items": {"type": "string"})"},
          "changes of the scenario for them, each as after `simulate --set`")
          .otherwise("[]"),
  };
  return kKeys;
}

}  // namespace

const Table<Outage>& outage() {
  using O = Outage;
  static const Type seconds = number(0, kLongest_s);
  static const Table<O> kKeys = {
      special<O>("replica", whole(0, kMostReplicas - 1), "its number, from 0 on").needed(),
      key(&O::of_prefill, "of_prefill", flag(), "it is one of the prefill replicas"),
      key_in_s(&O::at_ms, "at_s", seconds, "begin, in seconds").needed(),
      special<O>("for_s", seconds, "length, in seconds").needed(),
      key(&O::drains, "drains", flag(), "true: it ends what it has; false: its requests begin anew elsewhere"),
  };
  return kKeys;
}

namespace {

const Table<Scaling>& scaling() {
  using S = Scaling;
  static const Type requests = number(0, 1e6);
  static const Table<S> kKeys = {
      special<S>("least", whole(1, kMostReplicas), "replicas that are always on; at most replicas").needed(),
      key(&S::on_above, "on_above", requests,
          "requests for each attention group that is on: with more, one more replica starts")
          .needed(),
      key(&S::off_below, "off_below", requests,
          "with fewer requests for each attention group of the others, one replica drains and is off; below on_above")
          .needed(),
      key_in_s(&S::start_ms, "start_s", number(0, 1e6), "seconds until a replica that starts gets requests").needed(),
  };
  return kKeys;
}

const Table<LoadCourse>& loads() {
  using L = LoadCourse;
  static const Table<L> kKeys = {
      key_in_s(&L::step_ms, "step_s", number(1e-3, kLongest_s), "seconds that a time step holds").needed(),
      key(&L::rebalance_every, "rebalance_every", whole(0, 1'000'000),
          "time steps after which experts are placed anew, by placement eplb; 0: never"),
      key(&L::moves_beside, "moves_beside", flag(), "steps run on while experts move; needs rebalance_every"),
  };
  return kKeys;
}

const Table<ServeLimits>& limits() {
  static const Type ms = number(0, kLongest_ms);
  static const Table<ServeLimits> kKeys = {
      key(&ServeLimits::ttft_ms, "ttft_ms", ms, "time to first token, ms; 0: no limit"),
      key(&ServeLimits::tpot_ms, "tpot_ms", ms, "time per output token, ms; 0: no limit"),
  };
  return kKeys;
}

}  // namespace

const Table<ServeWorkload>& serve() {
  using W = ServeWorkload;
  constexpr double kSlowest = 1e-4, kFastest = 1e6;
  static const Table<W> kKeys = {
      special<W>("concurrency", whole(1, kMostTogether),
                 "requests at any time, of all GPUs: when one ends the next comes. This, rate or a trace with "
                 "arrival_s says when requests come"),
      special<W>("rate", either(number(kSlowest, kFastest), list_of(number(0, kFastest))),
                 "requests that come in a second, of all GPUs, by chance; a list: each for rate_s, and again from the "
                 "start"),
      key_in_s(&W::rate_ms, "rate_s", number(1, kLongest_s), "seconds for which each rate of a list holds"),
      key(&W::burstiness, "burstiness", number(1e-2, 1e3),
          "shape of the gamma distribution of the times between requests: 1 is Poisson, below more bursty. Needs rate"),
      special<W>("trace", text(),
                 "CSV of requests, beside the scenario: input_len, output_len; where they stand arrival_s, and "
                 "cached_len or prefix with prefix_len"),
      key(&W::requests, "requests", whole(1, kMostRequests),
          "that are served, then it ends; by default those of the trace, needed without one")
          .depends(),
      length("input_len", "tokens of a prompt on average; [least, most]: evenly between them. Needed without a trace"),
      length("output_len",
             "tokens of an answer on average; [least, most]: evenly between them. Needed without a trace"),
      length_spread("input_len_spread",
                    "standard deviation of log-normal lengths of prompts, in tokens; at most four times the mean"),
      length_spread("output_len_spread",
                    "standard deviation of log-normal lengths of answers, in tokens; at most four times the mean"),
      special<W>("cached_len", whole(0, kMostLength - 1),
                 "tokens of each prompt that are in the KV cache wherever it goes; fewer than input_len")
          .otherwise("0"),
      part(&W::prefixes, "prefixes", prefixes(),
           "Each prompt begins with one of so many prefixes, cached where it was computed before, until its room is "
           "needed; by default none"),
      key(&W::scheduler, "scheduler", words(words_of<Stack>()),
          "whose rules: sglang, trtllm, vllm; by default those of the stack whose kernels they are. Says tokens, "
          "batch_size, prompts, kv_room and router where the workload does not")
          .depends(),
      key(&W::tokens, "tokens", whole(64, kMostTogether),
          "of prompts and answers together in a step, of each attention group; by default what the scheduler has on "
          "this GPU")
          .depends(),
      key(&W::batch_size, "batch_size", whole(1, kMostTogether),
          "requests of an attention group at a time; by default what memory holds")
          .depends(),
      key(&W::order, "prompts", words(words_of<PromptOrder>()),
          "mixed: chunks of prompts are computed in steps in which requests decode; first: in steps of their own, "
          "before any of decoding; first_by_rank: the same of each attention group, while others decode")
          .depends(),
      key(&W::prefill_delay, "prefill_delay", whole(0, 10'000),
          "steps for which prompts wait at most until every attention group has some (SGLang's prefill delayer, "
          "TensorRT-LLM's enable_balance); 0: they do not"),
      key(&W::overlapped, "overlap_scheduler", flag(), "a step is made up while the one before runs"),
      part(&W::host, "host", host(),
           "What the server's host does between steps; a step that is made up while the one before runs waits for it "
           "where it takes longer. By default nothing with overlap_scheduler, else 1000 us a step and 8 a request"),
      key(&W::room, "kv_room", words(words_of<KvRoom>()),
          "whole: a request begins when the cache has room for all of it; prompt: for its prompt, and the last that "
          "came loses its cache where answers outgrow it; share: for all of it and a share of what the others may "
          "still write, and those with the fewest tokens lose theirs")
          .depends(),
      key(&W::conservativeness, "schedule_conservativeness", number(0, 10),
          "of kv_room share: times the share that it begins with, 0.7, and with attention data parallelism 0.21"),
      of_decode("query_len"),
      graph_batch(),
      of_decode("draft_layers"),
      of_decode("mtp_acceptance"),
      key(&W::replicas, "replicas", whole(1, kMostReplicas), "of `parallelism`"),
      key(&W::router, "router", words(words_of<RouterRule>()),
          "least_loaded: to the attention group with the fewest requests; round_robin: to each replica in turn; "
          "ranks_in_turn: to each attention group in turn; cache_aware: to where its prefix was sent before")
          .depends(),
      part(&W::prefill, "prefill", prefill_pool(),
           "Prompts are computed by replicas of their own, and caches go over the NIC; by default there are none"),
      mappings<W>("outages", outage().rows(),
                  "replicas that end what they have, or lose it, and get nothing new for a while")
          .otherwise("[]"),
      part(&W::scaling, "scaling", scaling(),
           "Replicas go on and off by the requests in the system; by default all are on"),
      part(&W::loads, "loads", loads(),
           "Each time step of routing.file holds for a while, the last one on; by default one time step holds all "
           "along"),
      part(&W::limits, "limits", limits(), "Which requests count as good; by default all"),
  };
  return kKeys;
}

}  // namespace keys

}  // namespace moeline
