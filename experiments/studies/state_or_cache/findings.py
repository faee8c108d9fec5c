#!/usr/bin/env python3
"""What the README says: from which context a state takes less memory and less time than a cache.

    findings.py MOELINE

Reads expected_*.csv beside this script, which `tests/update_studies.sh` rewrites, and prints the tables.
"""
import csv
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402

MACHINES = ("h200", "b200")
# With linear attention; the same with its full attention in every layer; a published model that has full attention alone.
MODELS = [("nemotron-3-nano", "nemotron-3-nano_all_full.yaml", None),
          ("qwen3-next-80b-a3b", "qwen3-next_all_full.yaml", "qwen3-235b-a22b"),
          ("kimi-k3", "kimi-k3_all_full.yaml", "kimi-k2")]
SHOWN = (1024, 4096, 16384, 65536, 262144, 1048576)
LAYOUTS = {"nemotron-3-nano": "parallelism={ep: 1}", "qwen3-next-80b-a3b": "parallelism={tp: 2, ep: 2}",
           "kimi-k3": "parallelism={tp: 8, dp: 2, ep: 16}"}


def path_of(model):
    return os.path.join(HERE, model) if model.endswith(".yaml") else model


def facts_of(model):
    return ask("model", path_of(model))


def size(count):
    return f"{count / 1024:.0f}K" if count < 1 << 20 else f"{count / (1 << 20):.0f}M"


def series(table, time, length, machine, model):
    return {int(row[length]): (float(row[time]), row["fits_memory"] == "1") for row in table
            if row["hardware"] == machine and row["model"] == model}


def crossover(full, linear):
    """Where linear attention becomes faster for good, by interpolation of the logarithms; None: nowhere."""
    contexts = sorted(full)
    last = next((length for length in reversed(contexts) if linear[length][0] >= full[length][0]), None)
    if last is None:
        return f"at {size(contexts[0])} already"
    if last == contexts[-1]:
        return "nowhere"
    above = contexts[contexts.index(last) + 1]
    at_last, at_above = (math.log(linear[length][0] / full[length][0]) for length in (last, above))
    return f"{last * (above / last) ** (at_last / (at_last - at_above)):.0f}"


def of_memory():
    print("| | state, MB | cache, KB per token | all full: KB per token | state smaller from, tokens | "
          + " | ".join(f"MB at {size(context)}" for context in SHOWN) + " |\n|---|" + "---:|" * (4 + len(SHOWN)))
    for linear, full, beside in MODELS:
        one, other = facts_of(linear), facts_of(full)
        state = one["state_bytes_per_sequence"]
        per_token, per_token_full = one["kv_bytes_per_token"], other["kv_bytes_per_token"]
        even = state / (per_token_full - per_token)
        cells = [f"{(state + per_token * context) / 1e6:.4g} / {per_token_full * context / 1e6:.4g}" for context in SHOWN]
        print(f"| {linear} | {state / 1e6:.1f} | {per_token / 1e3:.1f} | {per_token_full / 1e3:.1f} | {even:.0f} | "
              + " | ".join(cells) + " |")
        if beside:
            per_token = facts_of(beside)["kv_bytes_per_token"]
            print(f"| {beside} | | {per_token / 1e3:.1f} | | | "
                  + " | ".join(f"{per_token * context / 1e6:.4g}" for context in SHOWN) + " |")


def of_time():
    for phase, time, length in (("decode", "step_ms", "workload.kv_len"), ("prefill", "ttft_ms", "workload.prompt_len")):
        with open(os.path.join(HERE, f"expected_{phase}.csv")) as file:
            table = list(csv.DictReader(file))
        print(f"\n{phase}, {time}: linear / all full; * the first does not fit\n\n| | "
              + " | ".join(size(context) for context in SHOWN) + " | linear faster from |\n|---|" + "---:|" * (len(SHOWN) + 1))
        for linear, full, beside in MODELS:
            for machine in MACHINES:
                one, other = (series(table, time, length, machine, model) for model in (linear, full))
                cells = [f"{one[context][0]:.4g} / {other[context][0]:.4g}{'' if one[context][1] else ' *'}"
                         for context in SHOWN]
                print(f"| {linear}, {machine} | " + " | ".join(cells) + f" | {crossover(other, one)} |")
            if beside:
                for machine in MACHINES:
                    one = series(table, time, length, machine, beside)
                    cells = [f"{one[context][0]:.4g}{'' if one[context][1] else ' *'}" for context in SHOWN]
                    print(f"| {beside}, {machine} | " + " | ".join(cells) + " | |")


def of_provenance():
    """Of the kernels' solo time at 64K tokens."""
    print("\nat 64K tokens, of the kernels' time in %: linear attention; priced by roofline; extrapolated")
    scenario = os.path.join(HERE, "scenario.yaml")
    for linear, full, _ in MODELS:
        for machine in MACHINES:
            for workload in ("phase: decode, batch_size: 32, kv_len: 65536",
                             "phase: prefill, tokens: 8192, prompt_len: 65536, cached_len: 57344"):
                cells = []
                for model in (linear, full):
                    run = [scenario, "--set", f"model={path_of(model)}", "--set", f"hardware={machine}",
                           "--set", LAYOUTS[linear], "--set", f"workload={{{workload}}}"]
                    if linear == "kimi-k3":
                        run += ["--set", "precision.experts=mxfp4"]
                    modules = ask("explain", *run, "--modules")["modules"]
                    us = {module["module"]: module["us"] for module in modules if module["depth"] in (0, 2)}
                    kernels = [each for each in ask("simulate", *run)["provenance"] if "kernels" in each]
                    solo = sum(each["solo_us"] for each in kernels)
                    by = [100 * sum(each["solo_us"] for each in kernels if each["provenance"] == kind) / solo
                          for kind in ("roofline", "extrapolated")]
                    cells.append(f"{100 * us.get('linear attention', 0) / us['model']:.0f}; {by[0]:.0f}; {by[1]:.0f}")
                print(f"  {linear}, {machine}, {workload.split(',')[0]}: {cells[0]}   all full: {cells[1]}")


if __name__ == "__main__":
    of_memory()
    of_time()
    of_provenance()
