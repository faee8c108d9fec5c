#!/usr/bin/env python3
"""Whole attention blocks and whole MoE layers, as ai-dynamo/aiconfigurator timed them, against sums of what moeline
prices kernel by kernel.

    score.py AIC_FOLDER [MOELINE] [--worst N]

AIC_FOLDER holds h100_sxm, h200_sxm, b200_sxm and gb200. Each comparison says which OPs of `moeline price` a row is the
sum of, and whether any row of its file was fitted. Errors are predicted / measured - 1.
"""
import csv
import gzip
import json
import os
import statistics
import subprocess
import sys

MACHINES = {"h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200", "gb200": "gb200-nvl72"}
HOPPER = ("h100_sxm", "h200_sxm")
AT_ONCE = 400  # OPs of one call


def moe_sizes(row):
    tokens, top_k = int(row["num_tokens"]), int(row["topk"])
    experts = int(row.get("num_slots") or row["num_experts"])
    return tokens, top_k, experts, int(row["moe_ep_size"]), int(row["hidden_size"]), int(row["inter_size"])


def fused(row, **keys):
    tokens, top_k, experts, ep, hidden, inter = moe_sizes(row)
    keys = dict(tokens=tokens, hidden=hidden, inter=inter, top_k=top_k, experts=experts, ep=ep, l2="hot", **keys)
    return ["moe:" + ",".join(f"{key}={value}" for key, value in keys.items())]


def grouped(row, layout):
    """The two GEMMs and the activation between them; rows spread evenly over the experts that get any."""
    tokens, top_k, experts, ep, hidden, inter = moe_sizes(row)
    rows = max(1, tokens * top_k // ep)
    hit = min(experts // ep, rows)
    shape = f"layout={layout},groups={hit},m={max(1, round(rows / hit))}"
    return [f"grouped_gemm:{shape},n={2 * inter},k={hidden}", f"memory:kind=swiglu,bytes={rows * inter * 5}",
            f"grouped_gemm:{shape},n={hidden},k={inter}"]


def contiguous_sum(row):
    """With the copies of rows to experts, in FP8, and back to tokens, in BF16."""
    tokens, top_k, _, ep, hidden, _ = moe_sizes(row)
    rows = max(1, tokens * top_k // ep)
    return grouped(row, "contiguous") + [f"memory:kind=streaming,bytes={2 * rows * hidden}",
                                         f"memory:kind=streaming,bytes={2 * (rows + min(tokens, rows)) * hidden}"]


def skewed(row, dtype):
    """Rank 0 gets more tokens than balanced choices would send it, and rows in proportion."""
    tokens, top_k, _, ep, _, _ = moe_sizes(row)
    balanced = tokens * (1 - (1 - 1 / ep) ** top_k)
    rows = tokens * top_k / ep * int(row["rank0_num_tokens"]) / balanced
    return fused(row, dtype=dtype, rows=max(1, round(rows)))


def projections(m, decode):
    """DeepSeek's attention: down to the latents, their norms, up to the heads, rotation and cache, output."""
    ops = [f"linear:dtype=fp8,m={m},n=2112,k=7168", f"memory:kind=rowwise,bytes={m * 1536 * 4}",
           f"memory:kind=rowwise,bytes={m * 512 * 4}", f"linear:dtype=fp8,m={m},n=24576,k=1536",
           f"memory:kind=streaming,bytes={m * 129 * 64 * 4}", f"linear:dtype=fp8,m={m},n=7168,k=16384"]
    if decode:
        return ops + [f"batched_gemm:heads=128,m={m},n=512,k=128", f"batched_gemm:heads=128,m={m},n=128,k=512"]
    return ops + [f"linear:dtype=fp8,m={m},n=32768,k=512"]


def prefill_block(row):
    batch, seq = int(row["batch_size"]), int(row["isl"])
    return projections(batch * seq, False) + [f"attention_forward:batch={batch},seq={seq}"]


def decode_block(row):
    """With the projections of the indexer, which runs whatever the length; not what scores and picks keys."""
    batch, kv_len = int(row["batch_size"]), int(row["isl"]) + int(row["step"])
    indexer = [f"linear:dtype=fp8,m={batch},n=8192,k=1536", f"linear:dtype=bf16,m={batch},n=192,k=7168"]
    cache = "fp8" if row["kv_cache_dtype"] == "fp8" else "bf16"
    return projections(batch, True) + indexer + [f"mla_decode:batch={batch},kv_len={kv_len},kv_dtype={cache}"]


# Hidden size, queries' latent, heads without rotation and of values, heads of the indexer.
DSA = {"deepseek-ai/DeepSeek-V3.2": (7168, 1536, 128, 128, 64), "zai-org/GLM-5-FP8": (6144, 2048, 192, 256, 32)}
# Hidden size, queries' latent, keys that are chosen, groups of the output, heads.
COMPRESSED = {"Flash": (4096, 1024, 512, 8, 64), "Pro": (7168, 1536, 1024, 16, 128)}


def rowwise(count):
    return f"memory:kind=rowwise,bytes={round(count)}"


def chosen(m, heads, keys, cache, dims=(576, 512)):
    return (f"sparse_attention:phase=decode,batch={m},kv_len={keys},top_k={keys},heads={heads},qk_dim={dims[0]},"
            f"v_dim={dims[1]},kv_dtype={cache},l2=hot")


def indexed(m, keys, heads, top_k):
    return [f"index_scores:batch={m},query_len=1,kv_len={keys},heads={heads},l2=hot",
            f"index_choice:batch={m},query_len=1,kv_len={keys},top_k={top_k}"]


def sparse_block(row):
    """Projections, the indexer whole, and the core over the 2048 keys that it chooses."""
    hidden, latent, nope, values, index_heads = DSA[row["model"]]
    m, heads, kv_len = int(row["batch_size"]), int(row["num_heads"]), int(row["isl"]) + int(row["step"])

    def linear(n, k, dtype="fp8"):
        return f"linear:dtype={dtype},m={m},n={n},k={k}"

    cache = "fp8" if row["kv_cache_dtype"] == "fp8" else "bf16"
    return [linear(latent + 576, hidden), rowwise(m * latent * 4), rowwise(m * 512 * 4),
            linear(heads * (nope + 64), latent), f"memory:kind=streaming,bytes={m * (heads + 1) * 64 * 4}",
            linear(hidden, heads * values), f"batched_gemm:heads={heads},m={m},n=512,k={nope}",
            f"batched_gemm:heads={heads},m={m},n={values},k=512", linear(index_heads * 128, latent),
            linear(128 + index_heads, hidden, "bf16"), rowwise(m * (index_heads + 1) * 128 * 7),
            chosen(m, heads, 2048, cache)] + indexed(m, kv_len, index_heads, 2048)


def compressed_block(row):
    """DeepSeek-V4's: a window of 128, and beyond it compressed tokens, all of them (HCA) or those chosen (CSA)."""
    hidden, latent, top_k, groups, all_heads = COMPRESSED["Flash" if "Flash" in row["model"] else "Pro"]
    m, heads, kv_len = int(row["batch_size"]), int(row["num_heads"]), int(row["isl"]) + int(row["step"])
    ratio = int(row["compress_ratio"])
    groups = max(1, groups * heads // all_heads)
    dtype = "fp8" if row["gemm_type"] == "fp8_block" else "bf16"

    def linear(n, k, format=dtype):
        return f"linear:dtype={format},m={m},n={n},k={k}"

    def compressor(dim):
        columns = 2 * (2 if ratio == 4 else 1) * dim  # neighbours overlap where four are one
        return [linear(columns, hidden, "bf16"), rowwise(m * columns * 10)]

    far = kv_len // ratio
    ops = [linear(latent + 512, hidden), rowwise(m * (latent + 512) * 4), linear(heads * 512, latent),
           rowwise(m * (heads + 1) * 512 * 4)] + compressor(512)
    if ratio == 4:
        ops += compressor(128) + [linear(8192, latent), linear(64, hidden, "bf16"), rowwise(m * 8192 * 7)]
        ops += indexed(m, max(1, far), 64, top_k)
        far = min(far, top_k)
    return ops + [chosen(m, heads, min(kv_len, 128) + far, "fp8", (512, 512)),
                  f"memory:kind=streaming,bytes={m * heads * 64 * 4}",
                  f"batched_gemm:heads={groups},m={m},n=1024,k={heads * 512 // groups}", linear(hidden, groups * 1024)]


def in_graph(row):
    """SGLang captured no graph of larger batches."""
    return int(row["batch_size"]) <= 256


def chooses(row):
    return in_graph(row) and int(row["isl"]) + int(row["step"]) > 2048


def full_ranks(row):
    tokens, _, _, ep, _, _ = moe_sizes(row)
    return tokens >= 4096 and tokens >= 512 * ep


def of_deepseek(row):
    return row["model"].startswith("deepseek-ai/") and row["num_heads"] == "128" and row["gemm_type"] == "fp8_block"


def dense_prefill(row):
    """Rows that the host of an eager program does not bind: 3 ms and more."""
    return of_deepseek(row) and row["step"] == "0" and "dense_mha" in row["kernel_source"] and float(row["latency"]) > 3


def short_decode(row):
    """All keys are attended to. SGLang captured no graph of larger batches, and FP8 caches take a sparse kernel on
    Hopper, which pays for 2048 keys whatever there is."""
    return (of_deepseek(row) and int(row["isl"]) + int(row["step"]) <= 2048
            and row["kernel_source"] != "sglang_dsa_indexer_flashmla_kv"
            and (int(row["batch_size"]) <= 256 or not row["kernel_source"].startswith("sglang")))


def trtllm_dtype(row):
    return "fp8" if row["moe_dtype"] == "fp8_block" else row["moe_dtype"]


# What it is; file; which rows; as which OPs; kernel set by machine; whether rows of the file were fitted.
def comparisons(machine):
    single = "open-2025-late" if machine in HOPPER else "sglang"
    decodes_sparse = machine not in HOPPER  # TensorRT-LLM: on Hopper a fallback of 0.28 ms and more
    return [
        ("MoE layer, masked: one curve", "wideep_generation_moe_sglang", lambda r: True,
         lambda r: fused(r, dtype="fp8", layout="masked"), "sglang", "fitted"),
        ("MoE layer, masked: sum of kernels", "wideep_generation_moe_sglang", lambda r: True,
         lambda r: grouped(r, "masked"), single, "blind"),
        ("MoE layer, contiguous: one curve", "wideep_context_moe_sglang", full_ranks,
         lambda r: fused(r, dtype="fp8", layout="contiguous", eager="true"), "sglang", "fitted"),
        ("MoE layer, contiguous: sum of kernels", "wideep_context_moe_sglang", full_ranks, contiguous_sum, single,
         "blind"),
        ("MoE layer, fused, balanced by EPLB", "wideep_moe_trtllm", lambda r: r["op_name"] == "wideep_moe_eplb",
         lambda r: fused(r, dtype=trtllm_dtype(r)), "trtllm", "blind"),
        ("MoE layer, fused, skewed", "wideep_moe_trtllm", lambda r: r["op_name"] == "wideep_moe",
         lambda r: skewed(r, trtllm_dtype(r)), "trtllm", "blind"),
        ("attention block, prefill", "optional/dsa_prefill_module_sglang", dense_prefill, prefill_block, "sglang",
         "blind"),
        ("attention block, decode to 2048 keys", "optional/dsa_decode_module_sglang", short_decode, decode_block,
         "sglang", "blind"),
        ("attention block, decode to 2048 keys", "optional/dsa_decode_module_trtllm",
         lambda r: decodes_sparse and short_decode(r), decode_block, "trtllm", "blind"),
        ("attention block, decode, 2048 chosen", "optional/dsa_decode_module_sglang", chooses, sparse_block, "sglang",
         "blind"),
        ("attention block, decode, CSA", "optional/dsv4_csa_decode_sglang", in_graph, compressed_block, "sglang",
         "blind"),
        ("attention block, decode, HCA", "optional/dsv4_hca_decode_sglang", in_graph, compressed_block, "sglang",
         "blind"),
    ]


def table(folder, name):
    for ending, opened in ((".csv", open), (".csv.gz", gzip.open)):
        path = os.path.join(folder, name + ending)
        if os.path.exists(path):
            with opened(path, "rt") as file:
                return list(csv.DictReader(file))
    return []


def prices(moeline, hardware, kernels, ops):
    """us by OP; each is priced once."""
    known = {}
    distinct = sorted(set(ops))
    for first in range(0, len(distinct), AT_ONCE):
        call = [moeline, "price", hardware, "--kernels", kernels, "--format", "json"] + distinct[first:first + AT_ONCE]
        result = subprocess.run(call, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)
        known.update((op["op"], op["solo_us"]) for op in json.loads(result.stdout)["ops"])
    return known


def score(moeline, folder, machine, comparison, worst):
    what, file, wanted, ops_of, kernels, fitted = comparison
    rows = [row for row in table(os.path.join(folder, machine), file) if wanted(row)]
    if not rows:
        return
    sums = [ops_of(row) for row in rows]
    known = prices(moeline, MACHINES[machine], kernels, [op for ops in sums for op in ops])
    scored = sorted(((sum(known[op] for op in ops) / 1e3 / float(row["latency"]) - 1, row)
                     for ops, row in zip(sums, rows)), key=lambda each: -abs(each[0]))
    errors = [error for error, _ in scored]
    absolute = sorted(abs(error) for error in errors)
    p95 = absolute[round(0.95 * (len(absolute) - 1))]
    print(f"{what:<38} {file:<36} {MACHINES[machine]:<12} {kernels:<15} {fitted:<7} {len(rows):>5} "
          f"{100 * statistics.median(errors):>+9.1f} {100 * statistics.median(absolute):>7.1f} {100 * p95:>7.1f}")
    for error, row in scored[:worst]:
        cells = " ".join(f"{key}={value}" for key, value in row.items() if value.replace(".", "").isdigit())
        print(f"  {100 * error:>+7.0f} %  {cells}")


def main():
    arguments = sys.argv[1:]
    worst = int(arguments.pop(arguments.index("--worst") + 1)) if "--worst" in arguments else 0
    arguments = [each for each in arguments if each != "--worst"]
    moeline = arguments[1] if len(arguments) > 1 else "moeline"
    print(f"{'what':<38} {'file':<36} {'machine':<12} {'kernels':<15} {'rows':<7} {'count':>5} {'median e':>9} "
          f"{'|e|':>7} {'95 %':>7}")
    for index in range(len(comparisons("h100_sxm"))):
        for machine in MACHINES:
            score(moeline, arguments[0], machine, comparisons(machine)[index], worst)


if __name__ == "__main__":
    main()
