#!/usr/bin/env python3
"""The nodes of DeepSeek-V3's published service hour by hour, were its load a wave over the day.

    day.py MOELINE [PEAK]

The day's course was published as a picture alone. Here it is a cosine whose peak over the mean is PEAK, by default that
of the published nodes, 278 / 226.75. Every hour has a plan of its own (plan.yaml at that load); a row says what it takes.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = "input_tokens_per_s: 7037037"
PUBLISHED_MEAN, PUBLISHED_PEAK, GPUS_PER_NODE = 226.75, 278, 8


def load(hour: float, peak: float) -> float:
    """Over the day's mean; the peak is at 16 h."""
    return 1 + (peak - 1) * math.cos(2 * math.pi * (hour - 16) / 24)


def plan_at(load_of_mean: float, confirm: bool) -> dict:
    with open(os.path.join(HERE, "plan.yaml")) as file:
        text = file.read()
    rate = float(RATE.split(": ")[1]) * load_of_mean
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as plan:
        plan.write(text.replace(RATE, f"input_tokens_per_s: {rate:.0f}"))
        plan.flush()
        options = ["--confirm"] if confirm else []
        done = subprocess.run([sys.argv[1], "plan", plan.name, "--no-sensitivity", "--format", "json", *options],
                              capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def nodes(plan: dict) -> tuple[int, int]:
    best = plan["deployments"][0]
    return best["prefill"]["gpus"] // GPUS_PER_NODE, best["decode"]["gpus"] // GPUS_PER_NODE


def print_summary(hours: list[tuple[int, int]]) -> None:
    prefill, decode = (sum(side) / len(hours) for side in zip(*hours))
    together, most = prefill + decode, max(sum(each) for each in hours)
    always = sum(nodes(plan_at(1, False)))
    print(f"\nmean of the day {together:.2f} ({prefill:.2f} + {decode:.2f}), most {most}; published {PUBLISHED_MEAN}, "
          f"{PUBLISHED_PEAK}: {together / PUBLISHED_MEAN - 1:+.1%}, {most / PUBLISHED_PEAK - 1:+.1%}")
    print(f"one plan for the mean load {always}, one for the peak all day {most}")


def main() -> None:
    peak = float(sys.argv[2]) if len(sys.argv) > 2 else PUBLISHED_PEAK / PUBLISHED_MEAN
    hours = []
    print("hour  load  prefill  decode  nodes   served request by request: TTFT ms  TPOT ms, at 95 %")
    for hour in range(24):
        plan = plan_at(load(hour + 0.5, peak), confirm=hour % 6 == 3)
        hours.append(nodes(plan))
        served = plan.get("confirmed")
        told = f"{served['ttft_ms']:41.0f} {served['tpot_ms']:8.1f}" if served else ""
        print(f"{hour:4}  {load(hour + 0.5, peak):4.2f}  {hours[-1][0]:7}  {hours[-1][1]:6}  {sum(hours[-1]):5} {told}")
    print_summary(hours)


if __name__ == "__main__":
    main()
