#!/usr/bin/env python3
"""TPOT of served DeepSeek on B200 against what moeline predicts: every disaggregated row that is not broken, by the
classes of silicon_rows.csv in ai-dynamo/aiconfigurator's tables: A, attention data parallel, experts expert parallel; B,
attention tensor parallel, experts expert parallel; C, both tensor parallel.

    score.py SILICON_ROWS.csv[.gz] [MOELINE]

The batch of an attention group is Little's law: concurrency per group, times the share of a request's time that it decodes,
with the predicted TPOT and the measured TTFT. Lengths are 0.9 of the nominal ones, as the benchmark draws them.
"""
import csv
import gzip
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DRAWN = 0.9  # mean of a length over the nominal one
MOE_LAYERS = 58


def rows_of(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        return [row for row in csv.DictReader(file) if is_wanted(row)]


def is_wanted(row):
    return (row["class"] in ("A", "B", "C") and row["system"] == "b200_sxm" and row["mode"] == "disagg"
            and row["model_path"] == "deepseek-ai/DeepSeek-V3")


def parallelism_of(row):
    keys = {"tp": "tp", "dp": "attention_dp", "ep": "moe_ep", "moe_tp": "moe_tp"}
    return "{%s}" % ", ".join(f"{key}: {row[f'decode_{name}_size']}" for key, name in keys.items())


def tpot_ms(moeline, row, batch, kv_len):
    """TPOT, and what would be left of it if shared experts took no time beside routed ones."""
    call = [moeline, "simulate", os.path.join(HERE, "decode.yaml"), "--format", "json",
            "--set", f"kernels={row['backend']}", "--set", f"parallelism={parallelism_of(row)}",
            "--set", f"workload.batch_size={max(1, round(batch))}", "--set", f"workload.kv_len={round(kv_len)}"]
    if row["precision"] == "fp4":
        call += ["--set", "precision.experts=nvfp4"]
    result = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    tpot = result["metrics"]["tpot_ms"]
    shared = [p["end_us"] - p["start_us"] for p in result["phases"] if p["phase"] == "shared"]
    return tpot, tpot - MOE_LAYERS * statistics.mean(shared) / 1e3


def predict(moeline, row):
    osl, isl = DRAWN * float(row["osl"]), DRAWN * float(row["isl"])
    ranks = int(row["decode_attention_dp_size"]) * int(row["decode_num_workers"])
    most, ttft = float(row["concurrency"]) / ranks, float(row["silicon_ttft_ms"])
    tpot = 30.0
    for _ in range(6):
        batch = most * osl * tpot / (ttft + osl * tpot)
        tpot, hidden = tpot_ms(moeline, row, batch, isl + osl / 2)
    return batch, tpot, hidden


def summary(name, errors):
    absolute = sorted(abs(e) for e in errors)
    p95 = absolute[min(len(absolute) - 1, round(0.95 * (len(absolute) - 1)))]
    print(f"{name:<28} {len(errors):>4} {100 * statistics.median(errors):>+8.1f} "
          f"{100 * statistics.median(absolute):>8.1f} {100 * p95:>8.1f}")


def null_errors(rows):
    """The median of the other rows of the same lengths."""
    errors = []
    for row in rows:
        others = [float(r["silicon_tpot_ms"]) for r in rows if r is not row and r["isl"] == row["isl"]
                  and r["osl"] == row["osl"]]
        if others:
            errors.append(statistics.median(others) / float(row["silicon_tpot_ms"]) - 1)
    return errors


def main():
    moeline = sys.argv[2] if len(sys.argv) > 2 else "moeline"
    rows = rows_of(sys.argv[1])
    print(f"class {'stack':<8} {'weights':<8} {'isl':>6} {'osl':>6} {'users':>6} {'batch':>6} {'predicted':>10} {'measured':>9} "
          f"{'error':>7} {'hidden':>7}")
    errors, hidden_errors = {}, {}
    for row in sorted(rows, key=lambda r: (r["class"], r["precision"], r["backend"], int(r["isl"]), int(r["concurrency"]))):
        batch, predicted, hidden = predict(moeline, row)
        measured = float(row["silicon_tpot_ms"])
        error = predicted / measured - 1
        kind = (row["class"], row["precision"])
        errors.setdefault(kind, []).append(error)
        hidden_errors.setdefault(kind, []).append(hidden / measured - 1)
        print(f"{row['class']:<5} {row['backend']:<8} {row['precision']:<8} {row['isl']:>6} {row['osl']:>6} {row['concurrency']:>6} "
              f"{batch:>6.1f} {predicted:>10.2f} {measured:>9.2f} {100 * error:>+7.1f} {100 * hidden_errors[kind][-1]:>+7.1f}")
    print(f"\n{'error, %':<28} {'rows':>4} {'median e':>8} {'|e|':>8} {'95 %':>8}")
    for (name, precision), values in sorted(errors.items()):
        summary(f"{name}, {precision}", values)
        summary("  shared experts hidden", hidden_errors[name, precision])
        same = [row for row in rows if row["class"] == name and row["precision"] == precision]
        summary("  null: median of the length", null_errors(same))


if __name__ == "__main__":
    main()
