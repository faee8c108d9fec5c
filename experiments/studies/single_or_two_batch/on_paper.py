#!/usr/bin/env python3
"""What overlap can hide of a layer on paper, and what it gains by the engine, us a layer.

    on_paper.py MOELINE

On paper, from the kernels of the schedule without overlap (D, C: the wires of dispatch and combine; S: shared experts;
M: experts; d: their down GEMM; i: the kernel that issues the combine):
  single-batch   min(D, S) + min(i + C, d)
  per-expert     min(D, S + M/2) + min(C/2, M/2), less one more start of each transfer: two of half the size against one
  two batches    D + C, less what kernels that compute take more in halves
"""
import functools
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402

MACHINES, BATCHES = ("h20", "h200"), (8, 16, 32, 64, 128)


def simulated(schedule, machine, batch, *arguments):
    return ask("simulate", os.path.join(HERE, "scenario.yaml"), *arguments,
               changes=(f"schedule={schedule}", f"hardware={machine}", f"workload.batch_size={batch}"))


def mean_us(trace, name):
    """Of the kernels with this name."""
    times = [event["dur"] for event in trace["traceEvents"] if event.get("cat") == "kernel" and name in event["name"]]
    return sum(times) / len(times)


def phase_us(run, name, layer=30):
    return sum(phase["solo_us"] for phase in run["phases"] if phase["phase"] == name and phase["layer"] == layer)


@functools.cache
def kernels(machine, batch):
    with tempfile.TemporaryDirectory() as folder:
        run = simulated("sequential", machine, batch, "--trace", folder + "/trace.json")
        with open(folder + "/trace.json") as file:
            trace = json.load(file)
    found = {name: mean_us(trace, kernel) for name, kernel in
             {"D": "dispatch on the wire", "C": "combine on the wire", "d": "expert down", "i": "combine issue"}.items()}
    return found | {"S": phase_us(run, "shared"), "M": phase_us(run, "mlp"), "layer": run["metrics"]["layer_us"],
                    "issue": mean_us(trace, "dispatch issue") + found["i"]}


def on_paper(k, starts):
    """starts: what one more piece of each transfer costs."""
    single = min(k["D"], k["S"]) + min(k["i"] + k["C"], k["d"])
    expert = min(k["D"], k["S"] + k["M"] / 2) + min(k["C"] / 2, k["M"] / 2) - starts
    return single, expert


def starts_of(machine):
    """What two transfers of 8 requests take more than one of 16."""
    whole, half = kernels(machine, 16), kernels(machine, 8)
    return sum(2 * half[name] - whole[name] for name in ("D", "C")) / 2 + 2 * half["issue"] - whole["issue"]


def computing_in_halves(machine, batch):
    """What kernels that compute take more with two micro-batches than with one, us a layer."""
    one, two = (simulated(schedule, machine, batch) for schedule in ("sequential", "decode-two-batch"))
    return (two["metrics"]["compute_busy_us"] - one["metrics"]["compute_busy_us"]) / 61


def main():
    print("machine,batch,layer_us,dispatch_wire,combine_wire,shared,experts,down,"
          "single_on_paper,single_gained,expert_on_paper,expert_gained,two_on_paper,two_gained")
    for machine in MACHINES:
        starts = starts_of(machine)
        for batch in BATCHES:
            k = kernels(machine, batch)
            paper = [*on_paper(k, starts), k["D"] + k["C"] - computing_in_halves(machine, batch)]
            gained = [k["layer"] - simulated(schedule, machine, batch)["metrics"]["layer_us"]
                      for schedule in ("single-batch", "per-expert", "decode-two-batch")]
            row = [k[name] for name in ("layer", "D", "C", "S", "M", "d")]
            for pair in zip(paper, gained):
                row += pair
            print(f"{machine},{batch}," + ",".join(f"{value:.0f}" for value in row))


if __name__ == "__main__":
    main()
