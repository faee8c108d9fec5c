#!/usr/bin/env python3
"""How much GPUs differ in speed, by how long they wait for each other in the training trace.

    calib/fit/speed_spread.py ../shared/data/traces/deepseek_v3_train_h800_ep64.kernels.csv

Finds the spread with which the barriers of layers 0 and 1, all together, come out as long as they are: medians of the
draws of the chunk with all its ranks, in which GPUs differ by their SMs' clock and rank 0 is one like any other. Prints
it, and what it makes of layers 2 and 3. Runs build/release/moeline some ten times.
"""
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MOELINE = os.path.join(HERE, "../../build/release/moeline")
CHUNK = os.path.join(HERE, "../../experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml")
FITTED, LEFT_OUT = (0, 1), (2, 3)


def measured_us(path, layers):
    barriers = (row for row in csv.DictReader(open(path)) if "notify" in row["name"])
    return sum(float(row["end_us"]) - float(row["start_us"]) for row in barriers if int(row["layer"]) in layers)


def predicted_us(speed_spread, layers):
    settings = [f"speed_spread={speed_spread}", "samples=400"]
    command = [MOELINE, "simulate", CHUNK, "--format", "json"] + [word for s in settings for word in ("--set", s)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return sum(phase["barrier_us"]["median"] for phase in result["samples"]["phases"] if phase["layer"] in layers)


def main(path):
    goal, low, high = measured_us(path, FITTED), 0.0, 0.1
    while high - low > 2e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if predicted_us(middle, FITTED) < goal else (low, middle)
    spread = round((low + high) / 2, 4)
    print(f"speed_spread {spread}")
    for layers in (FITTED, LEFT_OUT):
        measured, predicted = measured_us(path, layers), predicted_us(spread, layers)
        print(f"barriers of layers {layers}: {measured:.0f} us, predicted {predicted:.0f}, {predicted / measured - 1:+.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
