#!/usr/bin/env python3
"""Draws one MoE layer of DeepSeek-V3's decode on 128 H800: two micro-batches, and how each hides the other's transfers.

    PYTHONPATH=build/release/python experiments/python/examples/draw_timeline.py timeline.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import moeline  # noqa: E402

# %% The question: a scenario is a dict, or the path of a file.
scenario = {
    "schema": 1,
    "model": "deepseek-v3",
    "hardware": "h800",
    "schedule": "decode-two-batch",
    "parallelism": {"ep": 128},
    "workload": {"phase": "decode", "batch_size": 128, "kv_len": 4096},
}

# %% The run: numbers in a dict, spans in arrays. One row of the frame is one kernel or transfer.
run = moeline.timeline(scenario)
spans = run.frame()
print(f"TPOT {run.metrics['metrics']['tpot_ms']:.1f} ms; {len(run)} spans")

# %% The layer in the middle of those that were simulated.
layer = spans[spans["layer"] == spans["layer"].median()]
begin = layer["start_us"].min()

# %% One lane for each stream and micro-batch, one colour for each class of work.
lanes = sorted(set(zip(layer["stream"], layer["micro_batch"])))
colours = dict(zip(layer["class"].unique(), plt.cm.tab20.colors))
figure, axes = plt.subplots(figsize=(12, 1 + 0.6 * len(lanes)))
for name, colour in colours.items():
    for lane, (stream, batch) in enumerate(lanes):
        bars = layer[(layer["class"] == name) & (layer["stream"] == stream) & (layer["micro_batch"] == batch)]
        spans_us = list(zip(bars["start_us"] - begin, bars["end_us"] - bars["start_us"]))
        axes.broken_barh(spans_us, (lane - 0.4, 0.8), color=colour, label=name if lane == 0 else None)
axes.set_yticks(range(len(lanes)), [f"{stream}, batch {batch}" for stream, batch in lanes])
axes.set_xlabel("us")
axes.set_title(f"One MoE layer, {run.metrics['metrics']['layer_us']:.0f} us")
axes.legend(ncols=6, loc="upper center", bbox_to_anchor=(0.5, -0.25))
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "timeline.png", bbox_inches="tight", dpi=120)
