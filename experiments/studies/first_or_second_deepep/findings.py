#!/usr/bin/env python3
"""The tables of the README: what moving from DeepEP's first version to its second gains.

    findings.py

Reads expected_*.csv beside this script, which `tests/update_studies.sh` rewrites.
"""
import csv
import os

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES, RANKS = ("h800", "h200", "b200", "gb200-nvl72"), (8, 16, 32, 64, 128, 256)


def table_of(name):
    with open(os.path.join(HERE, f"expected_{name}.csv")) as file:
        return [row for row in csv.DictReader(file) if not row.get("failure")]


def where(rows, **values):
    return [row for row in rows if all(row[key] == str(value) for key, value in values.items())]


def of(machine, ranks):
    return {"hardware": machine, "parallelism.ep": ranks}


def fastest(rows, metric):
    return min(rows, key=lambda row: float(row[metric]), default=None)


def gain(first, second):
    return f"{100 * (first / second - 1):+.1f} %"


def cell(row):
    return f"{float(row['layer_us']):.0f} ({row['comm.num_sms']})" if row else "-"


def own_and_best(rows, mode):
    """Of this library: with the SMs that it takes by itself, and with the best number of all."""
    mine = where(rows, **{"comm.mode": mode})
    return fastest(where(mine, **{"comm.num_sms": "auto"}), "layer_us"), fastest(mine, "layer_us")


def of_layers(name):
    rows = table_of(name)
    print(f"{name}: us a layer (SMs)\n")
    print("| | first, usual SMs | best | second, by its formula | best | usual: gain | best: gain |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for machine in MACHINES:
        for ranks in RANKS:
            here = where(rows, **of(machine, ranks))
            if not here:
                continue
            (own1, best1), (own2, best2) = own_and_best(here, "normal"), own_and_best(here, "deepep_v2")
            us = [float(row["layer_us"]) if row else None for row in (own1, best1, own2, best2)]
            gains = [gain(us[0], us[2]), gain(us[1], us[3])] if own1 else ["-", "-"]
            print(f"| {machine} EP{ranks} | {us[0] and f'{us[0]:.0f}' or '-'} | {cell(best1)} | {us[2]:.0f} | "
                  f"{cell(best2)} | {gains[0]} | {gains[1]} |")
    print()


def unhindered():
    rows, measured = table_of("unhindered"), where(table_of("chunk"), hardware="h800")
    print("chunk on h800, us a layer (SMs): the first version as measured, and were its copies not slowed by compute\n")
    print("| | first, best | its copies not slowed | second, best |\n|---|---:|---:|---:|")
    for ranks in RANKS[:-1]:
        at = {"parallelism.ep": ranks}
        best1, best2 = (own_and_best(where(measured, **at), mode)[1] for mode in ("normal", "deepep_v2"))
        print(f"| EP{ranks} | {cell(best1)} | {cell(own_and_best(where(rows, **at), 'normal')[1])} | {cell(best2)} |")
    print()


def of_decode():
    rows = table_of("decode")
    print("decode: ms a step by the best schedule; * does not fit into memory\n")
    for batch in (16, 64, 256):
        print(f"| {batch} requests per GPU | low latency | second version | gain | in two batches: gain |")
        print("|---|---:|---:|---:|---:|")
        for machine in MACHINES:
            for ranks in RANKS:
                here = where(rows, **of(machine, ranks), **{"workload.batch_size": batch})
                if not here:
                    continue
                first, second = (fastest(where(here, **{"comm.mode": mode}), "tpot_ms")
                                 for mode in ("low_latency", "deepep_v2"))
                two = where(here, schedule="decode-two-batch")
                two1, two2 = (float(fastest(where(two, **{"comm.mode": mode}), "tpot_ms")["tpot_ms"])
                              for mode in ("low_latency", "deepep_v2"))
                ms = [f"{float(row['tpot_ms']):.1f} {row['schedule']}{'' if row['fits_memory'] == '1' else ' *'}"
                      for row in (first, second)]
                print(f"| {machine} EP{ranks} | {ms[0]} | {ms[1]}, {second['comm.num_sms']} SMs | "
                      f"{gain(float(first['tpot_ms']), float(second['tpot_ms']))} | {gain(two1, two2)} |")
        print()


def main():
    for name in ("chunk", "prefill"):
        of_layers(name)
    unhindered()
    of_decode()


if __name__ == "__main__":
    main()
