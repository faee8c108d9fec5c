// What requests waited for, and what their replicas got done: numbers of a log.
#pragma once

#include <vector>

#include "experiments/serve/serve_log.hpp"
#include "experiments/serve/traffic.hpp"

namespace moeline {

/// Of some requests.
struct Quantiles {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0;
};
[[nodiscard]] Quantiles quantiles_of(std::vector<double> values);
/// The least value that so large a share of all does not exceed. REQUIRES: there is one, ascending.
[[nodiscard]] double ranked(const std::vector<double>& ascending, double share);

struct RequestTimes {
  std::size_t requests = 0;
  Quantiles queue_ms, ttft_ms, tpot_ms, total_ms;  ///< queue: before its first step; TPOT where answers have two tokens
};

/// Means over requests, in ms: what their time consists of.
struct WhereTimeWent {
  double queue = 0;     ///< before its first step
  double prefill = 0;   ///< from there to the end of its prompt
  double slot = 0;      ///< until there is room for it where it decodes, if that is elsewhere
  double transfer = 0;  ///< of its cache to there, where its first token is told
  double stalled = 0;   ///< without its cache, which others took
  double beside = 0;    ///< decoding, by which steps were longer for the prompts of others
  double decode = 0;    ///< the rest
};

/// Of the whole run, by the names and definitions of `bench_serving` and `vllm bench serve`. From the first request to
/// the last end; tokens of prompts with their cached part.
struct BenchFigures {
  double duration_s = 0, request_throughput = 0, output_throughput = 0, total_token_throughput = 0;  ///< a second
  Quantiles ttft_ms, tpot_ms, itl_ms, e2el_ms;
};

struct ServeMeasures {
  RequestTimes first;        ///< of a closed loop, those that all come at once
  RequestTimes steady;       ///< those that come once others have ended, and before the last have come; else all
  double halves_differ = 0;  ///< of the steady state: mean TPOT of those that come later over that of the earlier - 1
  BenchFigures bench;
  WhereTimeWent where;                                     ///< of these
  double output_tokens_per_s = 0, total_tokens_per_s = 0;  ///< of all GPUs, in that time; all: cached tokens left out
  double mean_waiting = 0, mean_running = 0;               ///< requests
  HeldBack held_back_by{};                                 ///< for the longest time; nothing where none waited
  double most_running = 0;                                 ///< requests that decode in a step, of the fullest group
  double prompt_share = 0;                                 ///< of the steps' time, steps in which prompts are computed
  double padding_share = 0;             ///< of the rows of steps that only decode, those of no request
  double cached_share = 0;              ///< of the prompts' tokens
  int restarts = 0;                     ///< times that a request lost its cache
  int retries = 0;                      ///< times that the replica of a request went
  int rebalancings = 0;                 ///< times that a replica placed its experts anew
  double paused_ms = 0;                 ///< of all replicas, that steps waited for that
  double mean_replicas_on = 0;          ///< that answer, where they are switched; in that time
  double good_share = 1;                ///< of the requests of the steady state, that are within the limits
  double good_output_tokens_per_s = 0;  ///< output tokens of these, as they are among all
};

/// Those that come once others have ended, and before the last have come; all where there are none.
[[nodiscard]] std::vector<ServedRequest> steady_requests(const ServeLog& log);
[[nodiscard]] RequestTimes times_of(const std::vector<ServedRequest>& requests);
[[nodiscard]] ServeMeasures measure(const ServeLog& log, const ServeWorkload& workload);

// How a run of requests goes along time.

/// A slice of the run. Of requests: of those that come in it; 0 where none do.
struct ServeSlice {
  double begin_ms = 0, end_ms = 0;
  double arrivals_per_s = 0, output_tokens_per_s = 0;  ///< of all GPUs
  double waiting = 0, running = 0;                     ///< requests, on average
  double ttft_p50_ms = 0, ttft_p99_ms = 0, tpot_p50_ms = 0;
  double replicas_on = 0;  ///< that answer, on average; 0 where none is ever off
};

/// Equally long ones, from the first arrival to the last end. REQUIRES: count is above 0, and there is a request.
[[nodiscard]] std::vector<ServeSlice> time_series(const ServeLog& log, int count);

}  // namespace moeline
