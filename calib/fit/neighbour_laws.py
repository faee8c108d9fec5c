#!/usr/bin/env python3
"""How the copies of DeepEP's transfers are slowed down by what runs beside them: laws compared on the training trace.

    calib/fit/neighbour_laws.py ../shared/data/traces/deepseek_v3_train_h800_ep64.kernels.csv

A transfer goes at the least of its speed alone and of its copies, which neighbours stretch: its rate is
min(1 / alone, 1 / (start-up + copies x stretch)), stretch given by a law from the kernel beside it. Laws are fitted on
layers 0 and 1 (least squares of the logarithm), scored there and on layers 2 and 3; those that are not per kind of
transfer also on each kind left out of the fit. Prints root mean squares and worst errors of predicted / measured - 1.
"""
import csv
import math
import sys

KINDS = ("dispatch(F)", "combine(B)", "combine(F)", "dispatch(B)")
CLASSES = ("memory-bound", "dense GEMM", "grouped GEMM", "weight gradient", "attention")
# us at 20 SMs by the curves of deepseek-2025-02: alone, start-up, copies.
ALONE = {"dispatch(F)": 2670, "combine(B)": 2643, "combine(F)": 5121, "dispatch(B)": 5132}
START = {"dispatch(F)": 83, "combine(B)": 82, "combine(F)": 159, "dispatch(B)": 159}
COPIES = {"dispatch(F)": 989, "combine(B)": 980, "combine(F)": 2456, "dispatch(B)": 2461}
HBM_TBPS = 3.35


def class_of(name):
    if "dptp128c" in name:
        return "weight gradient"
    if "m_grouped" in name:
        return "grouped GEMM"
    if "ptp128c" in name or "gemm" in name:
        return "dense GEMM"
    return "attention" if "flash" in name.lower() else "memory-bound"


def megabytes(row, kind):
    """Read, written. MLA's attention must move 0.67 GB forward; of memory-bound kernels half is taken to be written."""
    m, n, k = (float(row[key] or 0) for key in "MNK")
    if kind == "attention":
        return (536, 134) if "Bwd" not in row["name"] else (1200, 500)
    if kind == "memory-bound":
        return (float(row["mbytes"] or 0) / 2,) * 2
    read = (m * k + n * k * (4 if kind == "grouped GEMM" else 1)) / 1e6
    return (read + 4 * m * n / 1e6, 4 * m * n / 1e6) if kind == "weight gradient" else (read, 2 * m * n / 1e6)


def read_trace(path):
    kernels, transfers = [], []
    for row in csv.DictReader(open(path)):
        event = {"start": float(row["start_us"]), "end": float(row["end_us"]), "layer": int(row["layer"])}
        event["kind"] = row["phase"]
        if int(row["stream"]) == 27:
            if row["name"].startswith("internode::") and "notify" not in row["name"]:
                transfers.append(event)
            continue
        event["class"] = class_of(row["name"])
        us = max(1.0, event["end"] - event["start"])
        read, written = megabytes(row, event["class"])
        event["load"] = min(0.9, (read + written) / us / HBM_TBPS)
        event["writes"] = min(0.9, written / us / HBM_TBPS)
        kernels.append(event)
    for transfer in transfers:
        transfer["beside"] = list(stretches_of_time(transfer, kernels))
    return transfers


def stretches_of_time(transfer, kernels):
    """(us, kernel or None) in order of time; where two streams compute, the kernel that came first."""
    now = transfer["start"]
    for kernel in sorted(kernels, key=lambda k: k["start"]):
        start, end = max(now, kernel["start"]), min(transfer["end"], kernel["end"])
        if end <= start:
            continue
        if start > now:
            yield start - now, None
        yield end - start, kernel
        now = end
    if now < transfer["end"]:
        yield transfer["end"] - now, None


def predicted(transfer, stretch):
    kind, done, time, rate = transfer["kind"], 0.0, 0.0, 1.0
    for us, kernel in transfer["beside"]:
        copying = START[kind] + COPIES[kind] * (max(1.0, stretch(kind, kernel)) if kernel else 1.0)
        rate = min(1 / ALONE[kind], 1 / copying)
        if done + us * rate >= 1:
            break
        done, time = done + us * rate, time + us
    return time + (1 - done) / rate


def errors(law, constants, transfers):
    return [predicted(t, law(constants)) / (t["end"] - t["start"]) - 1 for t in transfers]


def fit(law, count, transfers):
    """The best of several descents, constant by constant over a shrinking range."""
    def cost(constants):
        return sum(math.log1p(e) ** 2 for e in errors(law, constants, transfers))

    def descend(start):
        constants, width = [start] * count, start
        while width > 0.005:
            before = cost(constants)
            for i in range(count):
                tried = [max(0.0, constants[i] + width * step / 4) for step in range(-4, 5)]
                constants[i] = min(tried, key=lambda x: cost(constants[:i] + [x] + constants[i + 1:]))
            if cost(constants) > 0.999 * before:
                width /= 2
        return constants

    return min((descend(start) for start in (1.0, 3.0, 8.0)), key=cost)


def family(kind):
    return 0 if kind == "dispatch(F)" else 1 if kind == "combine(B)" else 2


LAWS = {  # number of constants, law, whether it knows kinds of transfers
    "one stretch for all": (1, lambda c: lambda kind, k: c[0], False),
    "by class of neighbour": (5, lambda c: lambda kind, k: c[CLASSES.index(k["class"])], False),
    "memory-bound or not": (2, lambda c: lambda kind, k: c[k["class"] != "memory-bound"], False),
    "HBM load, 1 + a u / (1 - u)": (1, lambda c: lambda kind, k: 1 + c[0] * k["load"] / (1 - k["load"]), False),
    "HBM load, 1 + a u": (1, lambda c: lambda kind, k: 1 + c[0] * k["load"], False),
    "HBM load, b + a u": (2, lambda c: lambda kind, k: c[1] + c[0] * k["load"], False),
    "writes, b + a w": (2, lambda c: lambda kind, k: c[1] + c[0] * k["writes"], False),
    "dispatch, combine": (2, lambda c: lambda kind, k: c[family(kind) == 2], True),
    "by kernel: dispatch, cached, combine": (3, lambda c: lambda kind, k: c[family(kind)], True),
    "by kernel, and memory-bound or not": (
        4, lambda c: lambda kind, k: c[family(kind)] * (c[3] if k["class"] == "memory-bound" else 1), True),
    "by kernel, times 1 + a u": (4, lambda c: lambda kind, k: c[family(kind)] * (1 + c[3] * k["load"]), True),
    "by kind of phase": (4, lambda c: lambda kind, k: c[KINDS.index(kind)], True),
}


def shown(found):
    rms = math.sqrt(sum(e * e for e in found) / len(found))
    return f"{100 * rms:5.1f} {100 * max(found, key=abs):+6.1f}"


def main(path):
    transfers = read_trace(path)
    fitted = [t for t in transfers if t["layer"] < 2]
    others = [t for t in transfers if t["layer"] >= 2]
    print(f"{'':38}layers 0-1   layers 2-3   left out: {'  '.join(f'{k:12}' for k in KINDS)}")
    for name, (count, law, knows_kinds) in LAWS.items():
        constants = fit(law, count, fitted)
        row = f"{name:37}{shown(errors(law, constants, fitted))} {shown(errors(law, constants, others))}  "
        for kind in () if knows_kinds else KINDS:
            without = fit(law, count, [t for t in fitted if t["kind"] != kind])
            row += " " + shown(errors(law, without, [t for t in transfers if t["kind"] == kind]))
        print(row, " constants", " ".join(f"{c:.2f}" for c in constants))
    means = {k: [t["end"] - t["start"] for t in fitted if t["kind"] == k] for k in KINDS}
    copied = [sum(means[t["kind"]]) / 2 / (t["end"] - t["start"]) - 1 for t in others]
    print(f"{'null: the mean of each kind, copied':50}{shown(copied)}")
    alone = [[ALONE[t["kind"]] / (t["end"] - t["start"]) - 1 for t in group] for group in (fitted, others)]
    print(f"{'null: as alone':37}" + " ".join(map(shown, alone)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
