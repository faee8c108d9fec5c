#!/usr/bin/env python3
"""What disturbs a service, and what each costs in goodput: run.py MOELINE"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ask import ask  # noqa: E402

SCENARIO = os.path.join(HERE, "scenario.yaml")
LOADS = os.path.join(os.path.dirname(HERE), "eplb_over_time", "loads.py")
DRIFTS = (0.2, 1.0)  # change of log-popularity in an hour
HEAD = f"{'':50}{'TTFT p50':>10}{'p99, ms':>10}{'TPOT p50':>10}{'p99, ms':>9}{'good, %':>9}{'of base':>9}"


def served(*changes: str) -> dict:
    return ask("simulate", SCENARIO, changes=changes)


def row(name: str, result: dict, base: dict) -> str:
    ttft, tpot = result["steady"]["ttft_ms"], result["steady"]["tpot_ms"]
    kept = result["good_output_tokens_per_s_per_gpu"] / base["good_output_tokens_per_s_per_gpu"]
    return (f"{name:50}{ttft['p50']:10.0f}{ttft['p99']:10.0f}{tpot['p50']:10.2f}{tpot['p99']:9.2f}"
            f"{100 * result['good_share']:9.1f}{kept:9.3f}")


def print_outages() -> None:
    base = served()
    outage = "workload.outages=[{{replica: 0, of_prefill: {}, at_s: 600, for_s: {}, drains: {}}}]"
    print("a replica goes after ten minutes\n" + HEAD)
    print(row("none", base, base))
    for name, of_prefill, for_s, drains in (("a decode unit fails for 1 minute", "false", 60, "false"),
                                            ("for 5 minutes", "false", 300, "false"),
                                            ("it drains, for 5 minutes", "false", 300, "true"),
                                            ("a prefill unit fails for 5 minutes", "true", 300, "false")):
        print(row(name, served(outage.format(of_prefill, for_s, drains)), base))
    print(row("no unit fails, a third one decodes", served("workload.replicas=3"), base))
    print(row("a third one decodes, one fails for 5 minutes",
              served("workload.replicas=3", outage.format("false", 300, "false")), base))


def print_chance() -> None:
    base = served("ranks=all")
    print("\nslow GPUs and loads by chance, in every step\n" + HEAD)
    print(row("one draw for all steps", base, base))
    print(row("each step one of four draws", served("samples=4"), base))


def print_drift(folder: str) -> None:
    print("\nloads of the decode units' experts drift, from the start on, placed by EPLB with 32 copies\n" + HEAD)
    for drift in DRIFTS:
        path = os.path.join(folder, f"{drift}.csv")
        with open(path, "w") as file:
            subprocess.run([sys.executable, LOADS, "walk", "--drift", str(drift), "--layers", "1", "--minutes", "5"],
                           stdout=file, check=True)
        routing = f"routing={{distribution: file, file: {path}, redundant_experts: 32, placement: eplb}}"
        base = served(routing, "workload.loads={step_s: 1e6}")
        print(row(f"walk of {drift} in an hour: stands still", base, base))
        for name, loads in (("placed once", ""), ("every 5 minutes, steps wait", ", rebalance_every: 1"),
                            ("every 5 minutes, beside steps", ", rebalance_every: 1, moves_beside: true")):
            print(row("  " + name, served(routing, f"workload.loads={{step_s: 300{loads}}}"), base))


def print_scaling() -> None:
    waves = ("workload.rate=[70, 200]", "workload.rate_s=300", "workload.requests=243000", "workload.replicas=3")
    base = served(*waves)
    print("\n70 and 200 requests a second, five minutes each in turn; three decode units\n" + HEAD + f"{'on':>7}")
    print(row("all on", base, base) + f"{3:7.2f}")
    for start_s in (0, 60, 180):
        scaling = f"workload.scaling={{least: 1, on_above: 80, off_below: 60, start_s: {start_s}}}"
        result = served(*waves, scaling)
        print(row(f"switched by load, {start_s} s to start", result, base) + f"{result['mean_replicas_on']:7.2f}")


def main() -> None:
    print_outages()
    print_chance()
    with tempfile.TemporaryDirectory() as folder:
        print_drift(folder)
    print_scaling()


main()
