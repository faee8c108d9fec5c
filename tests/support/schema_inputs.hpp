// Files of every kind that the program reads, which together hold every key that there is, and the calls that read
// them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "curves/constants.hpp"
#include "curves/machine_facts.hpp"
#include "hardware/measured_range.hpp"
#include "tests/support/cli.hpp"

namespace moeline::testing {

/// One file. Of its values, those below `part` are asked about ("": all); what they are refused for comes before
/// anything that the rest of the file would be refused for.
struct ReadFile {
  std::string schema;
  std::string yaml;
  Arguments before, after;            ///< of the call, around the file's name
  std::string part{};                 ///< as a JSON pointer
  std::string stranger = "zzzzzzzz";  ///< a key that no mapping of the file has
};

namespace schema_inputs {

inline const std::string kDecode =
    "{schema: 1, model: deepseek-v3, hardware: h800, hardware_overrides: [nic_GBps=50], kernels: deepseek-2025-02,"
    " schedule: decode-two-batch,"
    " parallelism: {tp: 1, dp: 32, ep: 32, moe_tp: 1, pp: 1, cp: 1},"
    " workload: {phase: decode, batch_size: 32, batch_size_spread: 1, kv_len: 4096, kv_len_spread: 1, query_len: 2,"
    "  draft_layers: 1, mtp_acceptance: 0.8, graph_batch: 64, kv_transfer_MB: 1},"
    " comm: {mode: low_latency, num_sms: 0, dispatch_dtype: fp8, combine_dtype: bf16, neighbours: measured},"
    " precision: {linear: fp8, experts: fp8, kv_cache: bf16}, memory: {fraction: 0.9},"
    " routing: {distribution: skewed, experts_hit: 200, rows_spread: 0.1, redundant_experts: 0, placement: static},"
    " layers: 4, overlap: default, launch: graph, ranks: auto, jitter: none, clock: burst, speed_spread: 0.01,"
    " seed: 1, samples: 1, shared_experts: in_turn}";
inline const std::string kPrefill =
    "{schema: 1, model: deepseek-v3, hardware: b200, kernels: trtllm, schedule: sequential,"
    " parallelism: {cp: 2, ep: 8}, workload: {phase: prefill, tokens: 4096, prompt_len: 8192, cached_len: 16,"
    "  kv_transfer_MB: 1}, comm: {mode: all_gather, context: ring, dispatch_dtype: nvfp4}, moe_backend: usual, "
    "attention_backend: usual,"
    " routing: {distribution: power_law, alpha: 1}}";
inline const std::string kMixed =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: sequential, parallelism: {ep: 32},"
    " workload: {phase: mixed, batch_size: 32, batch_size_spread: 1, kv_len: 4096, kv_len_spread: 1, query_len: 3,"
    "  draft_layers: 1, mtp_acceptance: [0.8, 0.7], graph_batch: exact, tokens: 4096, prompt_len: 8192, cached_len: "
    "16},"
    " routing: {distribution: file, file: loads.csv, step: 3, placed_before: 2, placement: eplb}}";
inline const std::string kSkewed =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: sequential, parallelism: {ep: 8}, layers: 2,"
    " workload: {phase: decode, batch_size: 8, kv_len: 4096}, routing: {experts_hit: [30, 60.5]}}";
inline const std::string kLoad =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: sequential, parallelism: {ep: 8}, layers: 2,"
    " workload: {phase: decode, concurrency: 64, kv_len: 4096}}";
inline const std::string kMixedLoad =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: sequential, parallelism: {ep: 8}, layers: 2,"
    " workload: {phase: mixed, concurrency: 64, kv_len: 4096, tokens: 512, prompt_len: 1024}}";
inline const std::string kStaged =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: sequential, parallelism: {ep: 8, pp: 2},"
    " workload: {phase: prefill, tokens: 4096, prompt_len: 8192}, stages: even}";
inline const std::string kMegatron =
    "{schema: 1, model: qwen3-30b-a3b, hardware: h100, schedule: interleaved-1f1b, overlap: combined,"
    " parallelism: {tp: 1, pp: 2, ep: 8, dp: 8, cp: 1, moe_tp: 1, virtual_pp: 2},"
    " workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 64},"
    " comm: {mode: all_to_all, num_sms: 0}, launch: [attn, moe_router], level: phase, stages: balanced,"
    " training: {operators: megatron, recompute: [moe_act], gradients: fp32, moments: fp32, zero: 1,"
    "  overlap_gradients: true, overlap_parameters: true, delay_weight_gradients: true, offload: [qkv_linear],"
    "  offload_optimizer: false, overlap_sends: true}}";
inline const std::string kDualPipe =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: dualpipe, parallelism: {pp: 16, ep: 64, dp: 128},"
    " workload: {phase: train, seq_len: [4096, 2048], micro_batch_size: 1, global_batch_size: 15360},"
    " training: {operators: deepseek, recompute: selective, activations: fp8, offload: none, mtp: true},"
    " stages: [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]}";
inline const std::string kSlots =
    "{schema: 1, schedule: dualpipe, parallelism: {pp: 8}, workload: {phase: train, seq_len: 1,"
    " global_batch_size: 20}, slot_costs_ms: {F: 1, B: 2, W: 1, F&B: 2.5}}";
inline const std::string kRows =
    "{schema: 1, model: deepseek-v3, hardware: h800, schedule: dualpipe-chunk, parallelism: {ep: 64}, layers: 2,"
    " workload: {phase: train, seq_len: 4096},"
    " routing: {distribution: given, rows: {forward: [31104, 30976], backward: [34688, 32512]}}}";
inline const std::string kServe =
    "{schema: 1, model: deepseek-v3, hardware: h200, schedule: sequential, parallelism: {ep: 8}, workload: {phase: "
    "serve,"
    " rate: [10, 20], rate_s: 60, burstiness: 1, requests: 100, input_len: 2000, output_len: [100, 300],"
    " input_len_spread: 10, prefixes: {count: 10, len: 100, zipf: 1}, tokens: 8192, batch_size: 64,"
    " overlap_scheduler: true, host: {step_us: 100, request_us: 1}, query_len: 2, draft_layers: 1, mtp_acceptance: "
    "0.8, graph_batch: 64, replicas: 2,"
    " router: least_loaded, prefill: {replicas: 2, set: [layers=2]},"
    " outages: [{replica: 0, of_prefill: false, at_s: 1, for_s: 1, drains: true}],"
    " scaling: {least: 1, on_above: 80, off_below: 60, start_s: 1},"
    " loads: {step_s: 1, rebalance_every: 1, moves_beside: true}, limits: {ttft_ms: 1000, tpot_ms: 50}}}";
inline const std::string kServeLoop =
    "{schema: 1, model: deepseek-v3, hardware: h200, schedule: sequential, parallelism: {ep: 8}, workload: {phase: "
    "serve,"
    " concurrency: 64, requests: 100, input_len: [1000, 2000], output_len: 300, output_len_spread: 10, cached_len: 1,"
    " prompts: mixed, kv_room: share, schedule_conservativeness: 1, prefill_delay: 1}}";
inline const std::string kServeRate =
    "{schema: 1, model: deepseek-v3, hardware: h200, schedule: sequential, parallelism: {ep: 8}, workload: {phase: "
    "serve,"
    " rate: 10, requests: 100, input_len: 1000, output_len: 300}}";

/// A whole step of training that takes a moment.
inline const std::string kSmallStep =
    "{schema: 1, model: mixtral-8x7b, hardware: h100, schedule: 1f1b, parallelism: {pp: 2}, layers: 2, level: phase,"
    " workload: {phase: train, seq_len: 4096, global_batch_size: 2}}";

inline const std::string kPlan =
    "{schema: 1, model: deepseek-v3, hardware: {h800: {usd_per_gpu_hour: 2, kernels: deepseek-2025-02, set: []}},"
    " traffic: {requests_per_s: 100, input: {mean: 2000, spread: 100}, output: {percentiles: {50: 200, 90: 900}},"
    "  cache_hit_share: 0.1, course: [0.5, 1]}, limits: {ttft_ms: 4000, tpot_ms: 50, percentile: 95},"
    " memory: {fraction: 0.9}, serving: [colocated],"
    " prefill: {ep: [16], tp: [1], redundant_experts: [0], tokens: [4096], comm_sms: [16], two_batch: [true], spare_units: 1, set: []},"
    " decode: {ep: [32], tp: [1], redundant_experts: [0], batch_size: [32], two_batch: [true], single_batch: [false],"
    "  mtp: [0], mtp_acceptance: 0.85, spare_units: 1, set: []}}";
inline std::string plan_at(const std::string& rate) {
  return "{schema: 1, model: deepseek-v3, hardware: {h800: {}}, traffic: {" + rate +
         ": 100000, input: {lengths: [100, 2000], shares: [0.5, 0.5]}, output: {mean: 200}},"
         " limits: {ttft_ms: 4000, tokens_per_s_per_user: 20}}";
}
inline const std::string kTrainingPlan =
    "{schema: 1, model: mixtral-8x7b, hardware: {h100: {usd_per_gpu_hour: 2}}, memory_reserve: 0.1, set: [],"
    " training: {gpus: 8, global_batch_size: 8, seq_len: 4096, tokens: 1.0e+12},"
    " search: {tp: [1], cp: [1], pp: [1], ep: [1], micro_batch_size: [1], virtual_pp: [2], schedule: [1f1b],"
    "  overlap: [none], recompute: [none], offload: [none], offload_optimizer: [false]}}";
inline const std::string kTrainingOverlap =
    "{compute: [combine(B), attn(F), attn(B), mlp(B), mlp(F), mlp(W), attn(W)],"
    " communication: [dispatch(B), dispatch(F), combine(F)], side: [mlp(W)],"
    " sms: {attn(F): 1, attn(B): 1, attn(W): 1, dispatch(F): 1, dispatch(B): 1, mlp(F): 1, mlp(B): 1, mlp(W): 1, "
    "combine(F): 1, combine(B): 1}, pieces: 2, pieces_by: token}";
inline const std::string kPrefillOverlap =
    "{compute: [attn 0, mlp 0, shared 0, attn 1, mlp 1, shared 1],"
    " communication: [dispatch 0, combine 0, dispatch 1, combine 1], sms: {attn: 1, dispatch: 1, mlp: 1, combine: 1, "
    "shared: 1}, split: 0.5}";
inline const std::string kDecodeOverlap = "{compute: [attn-0 0], attention_cut: before_core, split: 0.5}";
inline std::string dimensions(const char* values) {
  std::string text;
  for (const std::string& name : dimension_names()) text += fmt::format("{}: {}, ", name, values);
  return "{" + text + "}";
}
inline const std::string kTables =
    "{schema: 1, corrections: {linear: {by shape: " + dimensions("10") +
    "}}, rows: {a: {file: gemm, where: {x: [a, b],"
    " \"y / z\": {above: 2, below: 3, not_multiple_of: 4}}, form: trtllm_cublas, op: linear, keys: {m: m},"
    " words: {a: b}, time: latency ms, slice: [n], spikes: {rising: [m], falling: [n], same: [k], above: 1.25},"
    " witness: {file: gemm, above: 1.3}, less: {file: cast, by: [m]}, leave_out: {why: {n: {below: 16}}}}}}";
inline std::string fact(const std::string& prediction) {
  return "{about: a, mean_gate: 4 %, common: {quantity: a, unit: us, setting: a, source: a, how_read: a, gate: 10 %},"
         " facts: {one: {value: 1, status: not fitted, stated_nulls: {copied_mean: 1}, " +
         prediction + "}}}";
}
inline const std::string kServed =
    "{about: a, served: aic/none.csv, status: blind, scenario: " + std::string(MOELINE_SOURCE_DIR) +
    "/experiments/studies/served_b200/decode.yaml, drawn_length: 0.9, step_tokens: 8192,"
    " loop: {requests_per_slot: 10, lengths: [0.8, 1]}, machines: {b200_sxm: b200},"
    " kernels: {sglang: sglang}, models: {a: {names: [a], precision: fp8, set: []}},"
    " leave_out: {why: {column: class, values: [X]}}, apart: {why: {column: class, values: [X]}}}";

inline const std::string kPairs =
    "{about: a, status: blind, pairs: [{id: a, kind: graphs, source: a, assumed: a, why_wrong: a, scenario: " +
    std::string(MOELINE_SOURCE_DIR) +
    "/experiments/studies/served_b200/decode.yaml, set: [layers=4], by: step_ms, a: {name: a, set: [], value: 1},"
    " b: {name: b, set: [seed=2], value: 2}}]}";

/// With every fact, every constant, and a family that has every dimension.
inline std::string profile(const std::string& family) {
  std::string facts, fitted_on, constants;
  for (const FactField& field : fact_fields()) {
    facts += fmt::format("{}: {{value: {}, source: a}}, ", field.key, field.text(field.low));
    fitted_on += fmt::format("{}: {}, ", field.key, field.text(field.low));
  }
  for (const ConstantRow& row : kConstantTable) constants += fmt::format("{}: 1, ", row.name);
  return fmt::format(
      "{{name: a, facts: {{{}}}, kernel_sets: {{a-1: {{date: 2026-08, source: a, stack: none, by_name_only: false, "
      "published_errors: {{decode: 0.1, prefill: 0.1}}, "
      "tiles: wide, "
      "clock: "
      "burst, fitted_on: {{{}}}, constants: {{{}}}, fits: {{gqa_decode: {{form: rows, constants: {{start_us: 1, "
      "l2_roofline_multiple: 1, beyond_l2_roofline_multiple: 1}}, kernels: 10, {}, errors: held-out, median_abs_error: "
      "0.1, p95_abs_error: 0.1, worst_error: 0.1, mean_error: 0.1, median_error: 0.1, jitter: 0.1, clock: burst, "
      "timed_by: graph}}}}}}}}}}",
      facts, fitted_on, constants, family);
}

/// Of what a trace taught.
inline std::string learnt_profile() {
  const std::string factor = "factor: 1.5, kernels: 3, range: {m: [1, 8]}";
  return fmt::format(
      "{{name: a, extends: h100, kernel_sets: {{learnt-1: {{date: 2026-11, source: a, over: sglang-0.5.14, learnt: "
      "{{phase: decode, clock: 0.9, host_us_per_kernel: 10, classes: {{gemm: {{{0}}}}}, operators: {{a: {{{0}, "
      "family: gemm_bf16}}}}}}}}}}}}",
      factor);
}

}  // namespace schema_inputs

/// All of them; files that they need lie in `folder`.
inline std::vector<ReadFile> files_to_read(const TemporaryFolder& folder) {
  using namespace schema_inputs;
  const std::string csv = folder.write("gemm.csv", "a\n1\n");
  const std::string simulated = source("experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml").string();
  const std::string chunk = chunk_scenario().string();
  const std::string prefill = source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml").string();
  const std::string whole =
      "range: {m: [1, 8], n: [1, 8]}, correction: {knots: {m: [1, 2]}, thousandths: [1 2], curve_median_abs_error: "
      "0.1, curve_p95_abs_error: 0.1}";
  const std::string fits = "/kernel_sets/a-1/fits/gqa_decode/";
  std::vector<ReadFile> files = {
      {"scenario", kDecode, {"simulate"}, {}, "", "micro_batch_size"},
      {"scenario", kPrefill, {"simulate"}, {}, "", "micro_batch_size"},
      {"scenario", kMixed, {"simulate"}, {}, "", "micro_batch_size"},
      {"scenario", kStaged, {"simulate"}, {}, "/stages"},
      {"scenario", kSkewed, {"simulate"}, {}, "/routing"},
      {"scenario", kLoad, {"simulate"}, {}, "/workload", "micro_batch_size"},
      {"scenario", kMixedLoad, {"simulate"}, {}, "/workload", "micro_batch_size"},
      {"scenario", kMegatron, {"simulate"}, {}, "", "kv_transfer_MB"},
      {"scenario", kDualPipe, {"simulate"}, {}, "", "kv_transfer_MB"},
      {"scenario", kSlots, {"simulate"}, {}, "", "kv_transfer_MB"},
      {"scenario", kRows, {"simulate"}, {}, "/routing"},
      {"plan", kPlan, {"plan"}, {}},
      {"plan", plan_at("input_tokens_per_s"), {"plan"}, {}},
      {"plan", plan_at("output_tokens_per_s"), {"plan"}, {}, "/traffic"},
      {"plan", kTrainingPlan, {"plan"}, {}},
      {"overlap_plan", kTrainingOverlap, {"simulate", chunk, "--set"}, {}},
      {"overlap_plan", kPrefillOverlap, {"simulate", prefill, "--set"}, {}},
      {"overlap_plan", kDecodeOverlap, {"simulate", simulated, "--set"}, {}},
      {"kernel_map",
       "{schema: 1, communication: a, classes: {gemm: a}, phases: {a: a}, modules: {a: a}}",
       {"analyze", csv, "--map"},
       {}},
      {"tables", kTables, {"calibrate", csv, "--kernels", "a-1", "-o", folder / "out.yaml", "--tables"}, {}},
      {"served_study", kServed, {"validate"}, {}},
      {"pair_study", kPairs, {"validate"}, {}},
      {"baseline",
       "{schema_version: 1, versions: [{program: a, errors: {a.b: 0.1}}]}",
       {"validate", source("tests/published/pipelines.yaml"), "--baseline"},
       {}},
      {"profile", profile(whole), {"list", "hardware"}, {}},
      {"profile", learnt_profile(), {"list", "hardware"}, {}, "/kernel_sets"},
      {"profile", profile("range: " + dimensions("[1, 2]")), {"list", "hardware"}, {}, fits + "range"},
      {"profile",
       profile("range: " + dimensions("[1, 2]") + ", correction: {knots: " + dimensions("[1, 2]") + "}"),
       {"list", "hardware"},
       {},
       fits + "correction/knots"}};
  for (const std::string& workload : {kServe, kServeLoop, kServeRate}) {
    files.push_back({"scenario", workload, {"simulate"}, {}, "/workload"});
  }
  for (const char* range : {"{from: 1, to: 2, step: 1}", "{from: 1, to: 2, factor: 2}", "[1, 2]"}) {
    files.push_back({"study",
                     fmt::format("{{schema: 1, scenario: {}, set: [], axes: {{seed: {}}}, zip: [], where: [seed > 0], "
                                 "metrics: [step_ms]}}",
                                 simulated, range),
                     {"sweep"},
                     {"-o", folder / "table.sqlite"}});
  }
  for (const std::string& prediction :
       {"simulate: {scenario: " + simulated + ", set: [], metric: phase_us, phase: mlp, layer: 1}",
        "simulate: {scenario: " + folder.write("step.yaml", kSmallStep) + ", metric: forward_ms, rank: 0}",
        "simulate: {scenario: " + simulated + ", metric: layers_us, layers: [1]}",
        "simulate: {scenario: " + simulated + ", metric: slowdown, kernels: {name: a, layers: [1]}}",
        std::string("price: {hardware: h800, ops: [gemm], metric: us, times: 1, left_out: {fold: a, tables: [], data: "
                    "[], given: []}}"),
        std::string("cross_validate: {hardware: h100, kernels: open-2025-late, data: [], families: [a], kernel: "
                    "a, least_ranks: 1, left_out: EP}"),
        std::string("model: {model: deepseek-v3, metric: train_flops_per_token, seq_len: 4096, times: 1}")}) {
    files.push_back({"facts", fact(prediction), {"validate"}, {}});
  }
  return files;
}

}  // namespace moeline::testing
