#!/usr/bin/env python3
"""From which drift on does rebalancing by EPLB pay, and how often?

    run.py MOELINE [SEED [LAYERS]]

Tokens/s per GPU of DeepSeek's decode unit over a day of drifting loads, by how often experts are placed anew. LAYERS of
the model have loads over time, 4 by default, and stand for all.
"""
import sys
import tempfile
from typing import NamedTuple

import loads
import moving
from moving import Price
from step_curve import Check, Point, StepCurve, checks, exactly_even, gemm_us, simulated_curve
from unit import BATCH, EXPERT_BYTES, LAYERS, SLOTS, balance, written

TRACES = (("power_law", "tokens", (1048576, 65536, 8192, 1024), "stationary; independent tokens counted in a step"),
          ("walk", "drift", (0.02, 0.04, 0.06, 0.1, 0.2, 0.4), "random walk; change of log-popularity in an hour"),
          ("day", "unlike", (0.1, 0.2, 0.3, 0.4, 0.6, 1.0), "a day of domains; difference of their log-popularity"))
INTERVALS = (64, 16, 4, 1)  # steps
SLOW_WEIGHT = 0.1  # of the newest step in a longer memory; moeline's default is 0.5
STEP_S = 300.0
ROWS = (255, 256, 257, 320, 384)
FASTER_STEPS_S = (300.0, 60.0, 10.0, 2.0)


class Served(NamedTuple):
    """A policy over a trace: what each step had, and how many copies moved before it."""
    imbalances: list[float]
    moved: list[float]  # of all layers of the model

    def mean_imbalance(self) -> float:
        return sum(self.imbalances) / len(self.imbalances)

    def tokens_per_s(self, curve: StepCurve, move_s: float = 0, step_s: float = STEP_S) -> float:
        """Per GPU, moving included; a placement that takes longer to move than it lasts serves nothing."""
        return sum(BATCH * 1e3 / curve.step_ms(imbalance) * max(0.0, 1 - moved * move_s / step_s)
                   for imbalance, moved in zip(self.imbalances, self.moved)) / len(self.imbalances)


class Followed(NamedTuple):
    """A trace under every policy: none, no EPLB; once, placed by the first step; hindsight, once by all of them; an
    interval in steps."""
    strength: float
    policies: dict[str, Served]

    def rebalanced(self) -> dict[int, Served]:
        return {every: self.policies[str(every)] for every in INTERVALS}

    def best(self, curve: StepCurve, move_s: float, step_s: float = STEP_S) -> tuple[int, float]:
        """Interval and tokens/s; of equals the rarest."""
        return max(((every, served.tokens_per_s(curve, move_s, step_s)) for every, served in self.rebalanced().items()),
                   key=lambda found: found[1])

    def gain(self, curve: StepCurve, move_s: float, step_s: float = STEP_S) -> float:
        """Of the best interval over the first placement."""
        return self.gain_over("once", curve, move_s, step_s)

    def gain_over(self, policy: str, curve: StepCurve, move_s: float, step_s: float = STEP_S) -> float:
        return self.best(curve, move_s, step_s)[1] / self.policies[policy].tokens_per_s(curve) - 1


def served(steps: list[dict], policy: str, layers: int) -> Served:
    moves = [step["moved_copies"] * LAYERS / layers if policy == "rebalanced" else 0.0 for step in steps]
    return Served([step[policy]["mean"] for step in steps], moves)


def summed(steps: list[loads.Loads]) -> loads.Loads:
    return [[sum(of_expert) for of_expert in zip(*layers)] for layers in zip(*steps)]


def follow(folder: str, trace: str, option: str, strength: float, seed: int, layers: int) -> Followed:
    args = loads.parse([trace, f"--{option}", str(strength), "--seed", str(seed), "--layers", str(layers), "--minutes",
                        str(STEP_S / 60)])
    steps = loads.trace(args)
    path = written(folder, steps)
    by_interval = {every: balance(path, every)["rebalancing"]["steps"] for every in INTERVALS}
    slow = balance(path, 16, SLOW_WEIGHT)["rebalancing"]["steps"]
    in_hindsight = balance(written(folder, [summed(steps), *steps[1:]]), len(steps))["rebalancing"]["steps"]
    policies = {"none": served(slow, "before", args.layers), "once": served(slow, "static", args.layers),
                "hindsight": served(in_hindsight, "static", args.layers)}
    policies |= {str(every): served(found, "rebalanced", args.layers) for every, found in by_interval.items()}
    policies["16 slow"] = served(slow, "rebalanced", args.layers)
    return Followed(strength, policies)


def print_step_time(curve: StepCurve, even: Point) -> None:
    points = [even, *curve.points]
    print("a decode step by its imbalance; first, exactly even\n")
    print(f"{'imbalance':25}" + "".join(f"{at.imbalance:7.2f}" for at in points))
    print(f"{'step, ms':25}" + "".join(f"{at.step_ms:7.1f}" for at in points))
    print(f"{'exposed communication, ms':25}" + "".join(f"{at.exposed_ms:7.1f}" for at in points))
    print("\nthe first GEMM of a GPU's two slots, us by rows of each: "
          + ", ".join(f"{rows} {gemm_us(rows):.1f}" for rows in ROWS))


def print_checks(found: list[Check]) -> None:
    print(f"\n{'other loads, by that curve':42}{'imbalance':>10}{'balance says':>14}{'ms':>8}{'curve':>8}"
          f"{'error, %':>10}")
    for check in found:
        at = check.simulated
        print(f"{check.name:42}{at.imbalance:10.3f}{check.balanced:14.3f}{at.step_ms:8.1f}{check.by_curve_ms:8.1f}"
              f"{100 * check.error():10.1f}")


def print_moves(moves: list[moving.Move], price: Price, meanwhile: list[moving.HiddenMove]) -> None:
    print(f"\none expert of one layer: {EXPERT_BYTES / 1e6:.2f} MB, {1e6 * moving.copy_s():.0f} us over a NIC")
    head = f"one rebalancing of {LAYERS} layers"
    print(f"\n{head:32}{'moved, %':>10}{'across nodes, %':>17}{'at once, s':>12}{'by layer, s':>13}")
    for move in moves:
        print(f"{move.name:32}{100 * move.moved / (SLOTS * LAYERS):10.1f}{100 * move.across_nodes / move.moved:17.1f}"
              f"{move.at_once * moving.copy_s():12.3f}{move.layer_by_layer * moving.copy_s():13.3f}")
    print(f"\nall slots moved by the dearest of these: {price.synchronous_s * SLOTS * LAYERS:.3f} s with the service "
          f"stopped, at most {price.hidden_bound_s * SLOTS * LAYERS:.3f} s hidden")
    print(f"simulated with {moving.HIDDEN_SHARE:.0%} of the NIC taken for {meanwhile[0].lasts_s:.2f} s, s lost by "
          "imbalance: " + ", ".join(f"{move.imbalance:.2f}: {move.lost_s:.3f}" for move in meanwhile))


def cells(values: list[float], decimals: int) -> str:
    return "".join(f"{value:10.{decimals}f}" for value in values)


def thresholds(followed: list[Followed], curve: StepCurve, price: Price) -> str:
    """The first strengths at which the best interval is ahead of placements that stay."""
    def first(policy: str, least: float) -> str:
        return next((str(one.strength) for one in followed
                     if one.gain_over(policy, curve, price.synchronous_s) > least), "no strength tried")

    return "\n".join(f"ahead of {policy} by 0.1 % from {first(policy, 0.001)}, by 1 % from {first(policy, 0.01)}"
                     for policy in ("once", "hindsight"))


def print_trace(name: str, followed: list[Followed], curve: StepCurve, price: Price) -> None:
    names = list(followed[0].policies)
    head = f"{'':8}" + "".join(f"{policy:>10}" for policy in names)
    print(f"\n{name}\n\ntokens/s per GPU, service stops while experts move\n{head}{'best':>6}{'gain, %':>9}"
          f"{'hidden':>8}")
    for one in followed:
        rates = [policy.tokens_per_s(curve, price.synchronous_s) for policy in one.policies.values()]
        best, hidden = one.best(curve, price.synchronous_s), one.best(curve, price.hidden_bound_s)
        print(f"{one.strength!s:8}{cells(rates, 1)}{best[0]:6}{100 * one.gain(curve, price.synchronous_s):9.2f}"
              f"{hidden[1]:8.1f}")
    print(f"\nimbalance, mean over steps\n{head}")
    for one in followed:
        print(f"{one.strength!s:8}{cells([policy.mean_imbalance() for policy in one.policies.values()], 3)}")
    print(f"\n{thresholds(followed, curve, price)}")


def print_faster(followed: list[Followed], curve: StepCurve, price: Price) -> None:
    """The same trace, told faster."""
    print("\nthe same walks where a step stands for less: best interval, s, and its gain over the first placement, %\n")
    print("change in a step" + "".join(f"{f'a step is {seconds:g} s':>20}" for seconds in FASTER_STEPS_S))
    for one in followed:
        found = [(one.best(curve, price.synchronous_s, seconds)[0] * seconds,
                  100 * one.gain(curve, price.synchronous_s, seconds)) for seconds in FASTER_STEPS_S]
        print(f"{one.strength * (STEP_S / 3600) ** 0.5:<16.3f}"
              + "".join(f"{interval_s:11g}{gain:9.2f}" for interval_s, gain in found))


def print_prices(folder: str, seed: int) -> tuple[StepCurve, Price]:
    curve, even = simulated_curve(folder, seed), exactly_even()
    print_step_time(curve, even)
    print_checks(checks(folder, curve, seed))
    moves = [moving.sample(folder, arguments, seed) for arguments in moving.SAMPLES]
    price = moving.dearest(moves)
    print_moves(moves, price, [moving.hidden(folder, arguments, seed, price) for arguments in moving.MEANWHILE])
    print(f"\nperfect balance: {BATCH * 1e3 / even.step_ms:.1f} tokens/s per GPU, exactly even; "
          f"{BATCH * 1e3 / curve.step_ms(1):.1f} barely uneven")
    return curve, price


def main() -> None:
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    layers = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    with tempfile.TemporaryDirectory() as folder:
        curve, price = print_prices(folder, seed)
        for trace, option, strengths, name in TRACES:
            followed = [follow(folder, trace, option, strength, seed, layers) for strength in strengths]
            print_trace(name, followed, curve, price)
            if trace == "walk":
                print_faster(followed, curve, price)


if __name__ == "__main__":
    main()
