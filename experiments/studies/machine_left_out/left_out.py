#!/usr/bin/env python3
"""Every measured machine, derived from each other one, against its own kernels: the tables of the README.

    left_out.py [MOELINE [TABLE]]

Steps of decode and prefill of four models, simulated with the machine's own kernels and with another's at its facts; by
step, and by family of kernels where both steps run the same number of it. TABLE is where hwprofiles/left_out.csv goes.
"""
import collections
import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MOELINE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(HERE, "../../../build/release/moeline")
MACHINES = ("a100", "h100", "h200", "b200", "gb200-nvl72")
SPLITS = {  # of the experts' and attention's ranks, and number formats: those that every machine multiplies in
    "deepseek-v3": ("{ep: 8}", "{tp: 8, ep: 8}"),
    "qwen3-235b-a22b": ("{tp: 8, ep: 8}",),
    "gpt-oss-120b": ("{tp: 4}",),
    "mixtral-8x7b": ("{tp: 8}",),
}
DECODE = [f"{{phase: decode, batch_size: {batch}, kv_len: 4096}}" for batch in (4, 32, 128)]
PREFILL = [f"{{phase: prefill, tokens: {tokens}, prompt_len: 4096}}" for tokens in (4096, 16384)]


def scenario(model, split, work, hardware):
    return (f"schema: 1\nmodel: {model}\nhardware: {hardware}\nschedule: sequential\nparallelism: {split}\n"
            f"workload: {work}\nrouting: {{distribution: balanced}}\n")


def json_of(*arguments, text=None):
    done = subprocess.run([MOELINE, *arguments, "--format", "json", "-q"], input=text, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else None


@functools.cache
def step_of(model, split, work, hardware):
    return json_of("simulate", "-", text=scenario(model, split, work, hardware))


def cases():
    for model, splits in SPLITS.items():
        for split, work in itertools.product(splits, DECODE + PREFILL):
            yield model, split, work


def families_of(step):
    sums = collections.defaultdict(lambda: [0, 0.0])
    for use in step["provenance"]:
        if "kernels" in use:  # else what runs between them
            sums[use["family"]][0] += use["kernels"]
            sums[use["family"]][1] += use["solo_us"]
    return sums


def errors_of(machine, profile):
    """Of each step and family: what it is of, the model, and predicted / by its own kernels - 1."""
    for model, split, work in cases():
        own = step_of(model, split, work, machine)
        derived = step_of(model, split, work, profile)
        if own is None or derived is None or own["metrics"]["extrapolated_share"] > 0.5:
            continue
        phase = "decode" if "decode" in work else "prefill"
        yield f"{phase} step", model, derived["metrics"]["step_ms"] / own["metrics"]["step_ms"] - 1
        truth = families_of(own)
        for family, (kernels, us) in families_of(derived).items():
            if family in truth and truth[family][0] == kernels and truth[family][1] > 0:
                yield family, model, us / truth[family][1] - 1


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(errors):
    sizes = [abs(error) for error in errors]
    return (len(errors), quantile(sizes, 0.5), quantile(sizes, 0.95), sum(errors) / len(errors), max(errors, key=abs))


def percent(value):
    return f"{100 * value:+.0f}"


def main():
    by_kin, by_pair = collections.defaultdict(list), collections.defaultdict(list)
    for machine, like in itertools.permutations(MACHINES, 2):
        with tempfile.TemporaryDirectory() as folder:
            profile = os.path.join(folder, "derived.yaml")
            derived = json_of("hardware", "derive", machine, "--like", like, "-o", profile)
            for what, _, error in errors_of(machine, profile):
                by_kin[derived["kin"], what].append(error)
                by_pair[derived["kin"], like, machine, what].append(error)
    print("steps: % of predicted / by its own kernels - 1\n")
    print("| kernels of | for | what they share | decode: mean | worst | prefill: mean | worst |")
    print("|---|---|---|---:|---:|---:|---:|")
    for kin, like, machine in sorted({key[:3] for key in by_pair}):
        cells = []
        for what in ("decode step", "prefill step"):
            errors = by_pair.get((kin, like, machine, what))
            cells += [percent(sum(errors) / len(errors)), percent(max(errors, key=abs))] if errors else ["-", "-"]
        print(f"| {like} | {machine} | {kin} | {' | '.join(cells)} |")
    print("\nall pairs: % of predicted / by its own kernels - 1\n")
    print("| what they share | of | cases | median of sizes | 95 % | mean | worst |")
    print("|---|---|---:|---:|---:|---:|---:|")
    rows = [(kin, what, *summary(errors)) for (kin, what), errors in sorted(by_kin.items())]
    for kin, what, count, median, p95, mean, worst in rows:
        print(f"| {kin} | {what} | {count} | {100 * median:.0f} | {100 * p95:.0f} | {percent(mean)} | {percent(worst)} |")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as table:
            table.write("kin,what,cases,median_abs_error,p95_abs_error,mean_error,worst_error\n")
            for kin, what, count, *errors in rows:
                table.write(f"{kin},{what},{count},{','.join(f'{error:.4f}' for error in errors)}\n")


main()
