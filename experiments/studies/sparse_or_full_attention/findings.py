#!/usr/bin/env python3
"""What the README says: from which context sparse attention is cheaper, and what part of the step its indexer takes.

    findings.py MOELINE

Reads expected_*.csv beside this script, which `tests/update_studies.sh` rewrites; writes shares.csv and prints the tables.
"""
import csv
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402

SCENARIO = os.path.join(HERE, "scenario.yaml")
MACHINES = ("h200", "b200")
LAYOUTS = {"8": ("TP8, EP8", ["parallelism={tp: 8, ep: 8}", "comm.mode=all_reduce"]),
           "1": ("DP8, EP8", ["parallelism={ep: 8}", "comm.mode=all_gather"])}
CONTEXTS = [1024 << step for step in range(8)]
OWN, ALL = "glm-5.2_own_indexers.yaml", "glm-5.2_all_keys.yaml"


def rows(name):
    with open(os.path.join(HERE, f"expected_{name}.csv")) as file:
        return list(csv.DictReader(file))


def series(table, time, length, **keys):
    """Time by context."""
    return {int(row[length]): float(row[time]) for row in table if all(row[key] == value for key, value in keys.items())}


def fits(table, length, **keys):
    return {int(row[length]): row["fits_memory"] == "1" for row in table
            if all(row[key] == value for key, value in keys.items())}


def crossover(full, sparse):
    """The contexts of the table between which sparse becomes cheaper for good, and the place by interpolation."""
    cheaper = [length for length in CONTEXTS if sparse[length] < full[length]]
    above = next((length for length in CONTEXTS if all(longer in cheaper for longer in CONTEXTS if longer >= length)), None)
    if above is None or above == CONTEXTS[0]:
        return above, above, above
    below = above // 2
    at_below, at_above = (math.log(sparse[length] / full[length]) for length in (below, above))
    return below, above, below * 2 ** (at_below / (at_below - at_above))


def bisected(low, high, machine, layout, full, sparse, tolerance=16):
    """The same of a decode step, by more scenarios: what it costs jumps where keys are chosen for the first time."""
    while high - low > tolerance:
        middle = (low + high) // 2
        step = [ask("simulate", SCENARIO, changes=[f"hardware={machine}", *layout, f"model={model}", f"workload.kv_len={middle}"])
                ["metrics"]["step_ms"] for model in (full, sparse)]
        low, high = (low, middle) if step[1] < step[0] else (middle, high)
    return high


def of_deepseek():
    tables = {"decode": (rows("decode"), "step_ms", "workload.kv_len"),
              "prefill": (rows("prefill"), "ttft_ms", "workload.prompt_len")}
    for phase, (table, time, length) in tables.items():
        print(f"\n{phase}, {time}: V3.1 / V3.2, * does not fit\n\n| | "
              + " | ".join(f"{context // 1024}K" for context in CONTEXTS)
              + " | cheaper from |\n|---|" + "---:|" * (len(CONTEXTS) + 1))
        for machine in MACHINES:
            for tp, (name, layout) in LAYOUTS.items():
                keys = {"hardware": machine, "parallelism.tp": tp}
                full = series(table, time, length, model="deepseek-v3", **keys)
                sparse = series(table, time, length, model="deepseek-v3.2", **keys)
                holds = fits(table, length, model="deepseek-v3.2", **keys)
                below, above, between = crossover(full, sparse)
                if phase == "decode" and below != above:
                    between = bisected(below, above, machine, layout, "deepseek-v3", "deepseek-v3.2")
                cells = [f"{full[context]:.4g} / {sparse[context]:.4g}{'' if holds[context] else ' *'}" for context in CONTEXTS]
                found = "nowhere" if above is None else f"{between:.0f}"
                print(f"| {machine}, {name} | " + " | ".join(cells) + f" | {found} |")


def of_glm():
    for phase, time, length in (("decode", "step_ms", "workload.kv_len"), ("prefill", "ttft_ms", "workload.prompt_len")):
        table = rows("glm_" + phase)
        print(f"\nGLM-5.2, {phase}, {time}: all keys / an indexer in each layer / shared indexers\n\n| | "
              + " | ".join(f"{context // 1024}K" for context in CONTEXTS) + " | own cheaper from | shared cheaper from |\n|---|"
              + "---:|" * (len(CONTEXTS) + 2))
        for machine in MACHINES:
            full, own, shared = (series(table, time, length, hardware=machine, model=model) for model in (ALL, OWN, "glm-5.2"))
            cells = [f"{full[context]:.4g} / {own[context]:.4g} / {shared[context]:.4g}" for context in CONTEXTS]
            found = []
            for sparse, model in ((own, OWN), (shared, "glm-5.2")):
                below, above, between = crossover(full, sparse)
                if phase == "decode" and below != above:
                    between = bisected(below, above, machine, LAYOUTS["8"][1], ALL, model)
                found.append("nowhere" if above is None else f"{between:.0f}")
            print(f"| {machine} | " + " | ".join(cells) + f" | {' | '.join(found)} |")


def workload_of(phase, context):
    """Of a prompt its last chunk, which has all keys before it."""
    if phase == "decode":
        return f"workload={{phase: decode, batch_size: 32, kv_len: {context}}}"
    cached = max(0, context - 8192)
    return f"workload={{phase: prefill, tokens: 8192, prompt_len: {context}, cached_len: {cached}}}"


def share_row(model, machine, tp, phase, context):
    name, layout = LAYOUTS[tp]
    changes = [f"model={model}", f"hardware={machine}", *layout, workload_of(phase, context)]
    modules = ask("explain", SCENARIO, "--modules", changes=changes)["modules"]
    us = {(module["parent"], module["module"]): module["us"] for module in modules}
    total, indexer, attention = us[None, "model"], us["layers", "indexer"], us["layers", "attention"]
    run = ask("simulate", SCENARIO, changes=changes)
    kernels = [each for each in run["provenance"] if "kernels" in each]
    solo = sum(each["solo_us"] for each in kernels)
    by = {kind: sum(each["solo_us"] for each in kernels if each["provenance"] == kind) for kind in ("roofline", "extrapolated")}
    return {"model": model, "hardware": machine, "layout": name, "phase": phase, "context": context,
            "step_ms": round(run["metrics"]["step_ms"], 3), "indexer_ms": round(indexer / 1e3, 3),
            "scores_ms": round(us["indexer", "indexer/scores"] / 1e3, 3), "attention_ms": round(attention / 1e3, 3),
            "indexer_percent_of_kernels": round(100 * indexer / total, 1),
            "indexer_percent_of_attention": round(100 * indexer / (indexer + attention), 1),
            "roofline_percent": round(100 * by["roofline"] / solo, 1),
            "extrapolated_percent": round(100 * by["extrapolated"] / solo, 1)}


def of_indexer():
    table = [share_row(model, machine, tp, phase, context) for model in ("deepseek-v3.2", "glm-5.2") for machine in MACHINES
             for tp in LAYOUTS for phase in ("decode", "prefill") for context in CONTEXTS]
    with open(os.path.join(HERE, "shares.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, table[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print("\nindexer's share of the kernels' time, %\n\n| | " + " | ".join(f"{context // 1024}K" for context in CONTEXTS)
          + " |\n|---|" + "---:|" * len(CONTEXTS))
    for model in ("deepseek-v3.2", "glm-5.2"):
        for phase in ("decode", "prefill"):
            for machine in MACHINES:
                for name, _ in LAYOUTS.values():
                    cells = [f"{row['indexer_percent_of_kernels']:.0f}" for row in table
                             if (row["model"], row["phase"], row["hardware"], row["layout"]) == (model, phase, machine, name)]
                    print(f"| {model}, {phase}, {machine}, {name} | " + " | ".join(cells) + " |")
    for phase in ("decode", "prefill"):
        for kind in ("roofline_percent", "extrapolated_percent"):
            values = [row[kind] for row in table if row["phase"] == phase]
            print(f"{phase}: {kind} {min(values)} to {max(values)}")


def of_memory():
    print("\nKV cache, bytes per token")
    for model, without in (("deepseek-v3.2", "deepseek-v3"), ("glm-5.2", ALL), (OWN, ALL)):
        sizes = []
        for each in (model, without):
            path = os.path.join(HERE, each) if each.endswith(".yaml") else each
            sizes.append(ask("model", path)["kv_bytes_per_token"])
        print(f"  {model}: {sizes[0]}, of that index keys {sizes[0] - sizes[1]}: {100 * (1 - sizes[1] / sizes[0]):.1f} %")


if __name__ == "__main__":
    of_deepseek()
    of_glm()
    of_indexer()
    of_memory()
