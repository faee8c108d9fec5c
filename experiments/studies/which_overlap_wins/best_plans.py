#!/usr/bin/env python3
"""The best plan of decode there is, by model, machine and requests per GPU: of all schedules, orders, SMs and pieces.

    best_plans.py MOELINE

ms a step with all ranks simulated: without overlap, by the best schedule as it is published, and by the best plan, which
is found on one rank that stands for all.
"""
import csv
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402

MODELS = ("deepseek-v3", "kimi-k2", "qwen3-235b-a22b", "glm-4.5", "minimax-m3", "deepseek-v4-flash")
MACHINES, BATCHES = ("h800", "h200", "b200", "gb200-nvl72"), (16, 64, 256)


def best_plan(model, machine, batch):
    return ask("search", os.path.join(HERE, "scenario.yaml"), "--over", "orders,schedules,sms,pieces",
               changes=(f"model={model}", f"hardware={machine}", f"workload.batch_size={batch}"))


def published():
    """ms a step by the best schedule as it is, by model, machine and batch."""
    best = {}
    with open(os.path.join(HERE, "expected.csv")) as file:
        for row in csv.DictReader(file):
            key = (row["model"], row["hardware"], int(row["workload.batch_size"]))
            best[key] = min(best.get(key, float("inf")), float(row["tpot_ms"]))
    return best


def main():
    known = published()
    print("model,hardware,batch_size,none_ms,published_ms,best_ms,gain_on_published,schedule,num_sms,pieces,pieces_by,"
          "exhaustive,gap_to_bound")
    for model in MODELS:
        for machine in MACHINES:
            for batch in BATCHES:
                found = best_plan(model, machine, batch)
                run, plan = found["run"], found["choices"]
                as_published = known[model, machine, batch]
                print(f"{model},{machine},{batch},{run['published_ms']:.2f},{as_published:.2f},{run['best_ms']:.2f},"
                      f"{1 - run['best_ms'] / as_published:.3f},{plan['schedule']},{plan['num_sms']},{plan['pieces']},"
                      f"{plan['pieces_by']},{found['exhaustive']},{found['gap']:.4f}", flush=True)


if __name__ == "__main__":
    main()
