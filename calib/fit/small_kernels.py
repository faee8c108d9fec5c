#!/usr/bin/env python3
"""Small kernels of public traces of serving stacks, as the table calib/data/traces/small_kernels.csv.

    small_kernels.py FOLDER > calib/data/traces/small_kernels.csv

FOLDER has the traces by the names below: Kineto JSON, gzipped, published by AMD-AGI/TraceLens (MIT). A kernel's time is
what it adds to the union of all kernels of its stream: with programmatic dependent launch it starts before its
predecessor ends and waits inside. Of the calls of a step the median counts. Bytes are those that moeline gives the same
kernel (model/moe): operands and results once.
"""
import collections
import gzip
import json
import re
import statistics
import sys

BF16, FP32 = 2, 4


def decode(rows, hidden, query, key, value, vocabulary, experts=0):
    """Bytes of each kind for so many tokens; query, key, value: columns of the rank."""
    return {
        "norm": rows * hidden * 4 * BF16,
        "head_norm": rows * (query + key) * 2 * BF16,
        "head_norm q": rows * query * 2 * BF16,
        "head_norm k": rows * key * 2 * BF16,
        "head_copy q": rows * query * 2 * BF16,
        "head_copy k": rows * key * 2 * BF16,
        "rotary_store": rows * (2 * (query + key) + 2 * value) * BF16,
        "expert_choice": rows * experts * FP32,
        "embedding_rows": rows * hidden * 2 * BF16,
        "logits_cast": rows * vocabulary * (BF16 + FP32),
        "token_choice": rows * vocabulary * FP32,
    }


# What a trace is of, what its rows are for, and which kernels are of a kind: a pattern of their names, and where several
# of a layer have that name which of them. Patterns joined by + are two kernels of the stack where ours is one.
TRACES = [
    ("b300_sglang_qwen3_30b_decode", "b300", "sglang", "fit", 16, decode(16, 2048, 4096, 512, 512, 151936, 128), [
        ("norm", "FusedAddRMSNorm"),
        ("head_norm", "fused_qknorm_warp"),
        ("rotary_store", "fused_rope_store"),
        ("embedding_rows", "indexSelectSmallIndex"),
        ("logits_cast", "unrolled_elementwise_kernel<at::native::direct_copy"),
        ("token_choice", "ArgMaxOps"),
    ]),
    ("mi300x_sglang_qwen3_30b_decode", "mi300x", "sglang", "fit", 16, decode(16, 2048, 4096, 512, 512, 151936, 128), [
        ("norm", "add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8ELb1E"),
        ("head_norm q", "add_rmsnorm_quant_kernelIDF16bDF16bLi64", 0, 2),
        ("head_norm k", "add_rmsnorm_quant_kernelIDF16bDF16bLi64", 1, 2),
        ("head_copy q", "manual_unroll<128, 8.*direct_copy", 0, 2),
        ("head_copy k", "manual_unroll<128, 8.*direct_copy", 1, 2),
        ("rotary_store", "_fused_qk_rope_reshape_and_cache"),
        ("expert_choice", "topksoftmax"),
        ("embedding_rows", "indexSelectSmallIndex"),
        ("logits_cast", "bfloat16tofloat32_copy"),
        ("token_choice", "ArgMaxOps"),
    ]),
    ("mi300x_sglang_qwen3_8b_decode", "mi300x", "sglang", "score", 32, decode(32, 4096, 4096, 1024, 1024, 151936), [
        ("norm", "add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1E"),
        ("head_norm q", "add_rmsnorm_quant_kernelIDF16bDF16bLi64", 0, 2),
        ("head_norm k", "add_rmsnorm_quant_kernelIDF16bDF16bLi64", 1, 2),
        ("head_copy q", "manual_unroll<128, 8.*direct_copy", 0, 2),
        ("head_copy k", "manual_unroll<128, 8.*direct_copy", 1, 2),
        ("rotary_store", "rotary_embedding_kernel+store_kvcache"),
        ("embedding_rows", "vectorized_gather"),
        ("logits_cast", "bfloat16tofloat32_copy"),
        ("token_choice", "ArgMaxOps"),
    ]),
    ("mi300x_vllm_gpt_oss_20b_decode", "mi300x", "vllm", "score", 32, decode(32, 2880, 4096, 512, 512, 201088, 32), [
        ("norm", "Rmsnorm2dFwd"),
        ("rotary_store", "rotary_embedding_kernel+reshape_and_cache"),
        ("expert_choice", "_topk_forward"),
    ]),
    ("b200_vllm_gpt_oss_120b_tp8_prefill_eager", "b200", "vllm", "score", 888,
     decode(888, 2880, 512, 64, 64, 201088, 128), [
         ("norm", "fused_add_rms_norm"),
         ("rotary_store", "rotary_embedding_kernel+reshape_and_cache"),
         ("embedding_rows", "vectorized_gather"),
     ]),
]
SOURCE = "AMD-AGI/TraceLens {}"


def kernels_of(path):
    with gzip.open(path) as stream:
        events = json.load(stream)
    events = events["traceEvents"] if isinstance(events, dict) else events
    kernels = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "dur" in e]
    main, _ = collections.Counter(e["args"].get("stream") for e in kernels).most_common(1)[0]
    return sorted((e for e in kernels if e["args"].get("stream") == main), key=lambda e: e["ts"])


def added(kernels):
    end, times = float("-inf"), []
    for kernel in kernels:
        last = kernel["ts"] + kernel["dur"]
        times.append(max(0.0, last - max(kernel["ts"], end)))
        end = max(end, last)
    return times


def times_of(kernels, times, pattern, which=0, of=1):
    calls = [us for kernel, us in zip(kernels, times) if re.search(pattern, kernel["name"])]
    return calls[which::of]


def main():
    print("gpu,stack,kernel,rows,bytes,us,calls,use,source")
    for trace, gpu, stack, use, rows, sizes, wanted in TRACES:
        kernels = kernels_of(f"{sys.argv[1]}/{trace}.json.gz")
        times = added(kernels)
        for kind, patterns, *which in wanted:
            calls = [times_of(kernels, times, pattern, *which) for pattern in patterns.split("+")]
            us = sum(statistics.median(each) for each in calls)
            print(f"{gpu},{stack},{kind.split()[0]},{rows},{sizes[kind]},{us:.2f},{len(calls[0])},{use},"
                  f"{SOURCE.format(trace)}")


if __name__ == "__main__":
    main()
