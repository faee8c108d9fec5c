#!/usr/bin/env python3
"""What a step of Vera Rubin gains where one fact of the machine is better, and what binds then: the table of the README.

    findings.py [MOELINE]
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MOELINE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(HERE, "../../../build/release/moeline")
STEPS = {
    "decode, 16 requests": "{phase: decode, batch_size: 16, kv_len: 8192}",
    "decode, 256 requests": "{phase: decode, batch_size: 256, kv_len: 8192}",
    "prefill, 16384 tokens": "{phase: prefill, tokens: 16384, prompt_len: 8192}",
}
FACTS = {"hbm_GBps": 22000, "fp4_tflops": 35000, "bf16_tflops": 4000, "nvlink_GBps": 1800}


def step_of(work, *changes):
    arguments = [MOELINE, "simulate", os.path.join(HERE, "scenario.yaml"), "--format", "json", "-q"]
    for change in (f"workload={work}", *changes):
        arguments += ["--set", change]
    return json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)


def longest(step):
    """The classes of kernels that take most of a layer, with their shares."""
    classes = sorted(step["classes"], key=lambda each: -each["busy_us_per_layer"])
    whole = step["metrics"]["layer_us"]
    return ", ".join(f"{each['class']} {100 * each['busy_us_per_layer'] / whole:.0f} %" for each in classes[:3])


def main():
    print("| step | machine | ms | | longest of a layer |\n|---|---|---:|---:|---|")
    for name, work in STEPS.items():
        base = step_of(work)
        ms = base["metrics"]["step_ms"]
        print(f"| {name} | as announced | {ms:.2f} | | {longest(base)} |")
        changes = [(f"{fact} x {times:g}", (f"hardware.{fact}={times * value:g}",))
                   for fact, value in FACTS.items() for times in (0.5, 2)]
        changes.append(("144 GPUs in a domain", ("hardware.gpus_per_node=144", "parallelism={ep: 144}")))
        changes.append(("144 GPUs of two domains", ("parallelism={ep: 144}",)))
        for title, change in changes:
            step = step_of(work, *change)
            now = step["metrics"]["step_ms"]
            print(f"| {name} | {title} | {now:.2f} | {100 * (now / ms - 1):+.0f} % | {longest(step)} |")


main()
