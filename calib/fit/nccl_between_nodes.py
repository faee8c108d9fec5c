#!/usr/bin/env python3
"""What NCCL's cost model leaves out of a collective between nodes, by public logs of nccl-tests.

    calib/fit/nccl_between_nodes.py calib/data/nccl/nccl_tests.csv

Finds nccl_call_us, nccl_ramp_us and nccl_nic_share with which the rows `fit` have the least squares of log(predicted / measured), then
nccl_peer_us by the rows `fit_peers`; and prints the errors of all logs. Runs build/release/moeline some thousand times.
"""
import csv
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

MOELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/moeline")
CALL_US, RAMP_US, NIC_SHARES = range(6, 22, 2), range(0, 121, 20), [share / 20 for share in range(13, 21)]
PEER_US = [us / 5 for us in range(0, 31)]


def op_of(row):
    if row["collective"] == "send":
        return f"send:to=node,bytes={row['bytes']}"
    return "{collective}:ranks={ranks},gpus_per_node={gpus_per_node},bytes={bytes}".format(**row)


def predicted_us(rows, facts):
    """One time for each row; rows of one machine and NIC go into one call."""
    times = {}
    for machine, nic in {(row["hardware"], row["nic_GBps"]) for row in rows}:
        mine = [row for row in rows if (row["hardware"], row["nic_GBps"]) == (machine, nic)]
        settings = [f"--set=hardware.{key}={value}" for key, value in {**facts, "nic_GBps": nic}.items()]
        command = [MOELINE, "price", machine, *map(op_of, mine), "--format", "json", *settings]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        times.update((id(row), kernel["solo_us"]) for row, kernel in zip(mine, answer["ops"]))
    return [times[id(row)] for row in rows]


def logs_of_ratios(rows, facts):
    return [math.log(us / float(row["us"])) for row, us in zip(rows, predicted_us(rows, facts))]


def best(rows, candidates):
    return min(candidates, key=lambda facts: sum(x * x for x in logs_of_ratios(rows, facts)))


def print_errors(name, rows, facts):
    errors = [math.exp(x) - 1 for x in logs_of_ratios(rows, facts)]
    size = statistics.mean(abs(e) for e in errors)
    print(f"{name:60} {len(rows):4} rows, mean |error| {size:6.1%}, mean {statistics.mean(errors):+7.1%}")


def main(path):
    rows = list(csv.DictReader(open(path)))
    used = {use: [row for row in rows if row["use"] == use] for use in ("fit", "fit_peers", "held_out")}
    grid = itertools.product(CALL_US, RAMP_US, NIC_SHARES)
    names = ("nccl_call_us", "nccl_ramp_us", "nccl_nic_share")
    facts = best(used["fit"], [dict(zip(names, values)) for values in grid])
    facts = best(used["fit_peers"], [{**facts, "nccl_peer_us": us} for us in PEER_US])
    print(facts)
    for use, mine in used.items():
        print_errors(use, mine, facts)
    for log in sorted({row["log"] for row in rows}, key=int):
        mine = [row for row in rows if row["log"] == log and row["use"] != "outlier"]
        name = "  {log} {collective} {ranks} ranks, {machine}".format(**mine[0])
        print_errors(name[:60], mine, facts)


if __name__ == "__main__":
    main(*sys.argv[1:])
