"""How long a decode step takes by its imbalance: the busiest GPU's rows over the mean, on average over the layers."""
from bisect import bisect_right
from typing import NamedTuple

import loads
from unit import COPIES, EPLB, LAYERS, NO_COPIES, ask, balance, simulate, simulate_loads, written

EVEN = [2] * COPIES + [1] * (loads.EXPERTS - COPIES)  # as slots are: all alike
BARELY_UNEVEN = [load * 1000 + expert % 7 for expert, load in enumerate(EVEN)]
WALKS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)  # an hour after experts were placed
FAR = "distribution: power_law, alpha: 0.75, " + NO_COPIES

CHECKS = (("day --unlike 0.3 --minutes 360", EPLB), ("day --unlike 0.5 --minutes 480", EPLB),
          ("day --unlike 0.7 --minutes 180", EPLB), ("day --unlike 1 --minutes 540", EPLB),
          ("power_law --tokens 1024", EPLB), ("power_law --tokens 65536", EPLB),
          ("walk --drift 0.1 --minutes 60", NO_COPIES), ("day --unlike 1 --minutes 540", NO_COPIES),
          ("power_law --tokens 65536", NO_COPIES))


class Point(NamedTuple):
    imbalance: float
    step_ms: float
    exposed_ms: float  # communication


class Check(NamedTuple):
    name: str
    simulated: Point
    balanced: float  # the imbalance by `moeline balance`
    by_curve_ms: float

    def error(self) -> float:
        return self.by_curve_ms / self.simulated.step_ms - 1


class StepCurve:
    """Straight lines between the points; the first and the last go on."""

    def __init__(self, points: list[Point]):
        self.points = sorted(points)

    def step_ms(self, imbalance: float) -> float:
        right = min(max(bisect_right(self.points, (imbalance,)), 1), len(self.points) - 1)
        left, right = self.points[right - 1], self.points[right]
        slope = (right.step_ms - left.step_ms) / (right.imbalance - left.imbalance)
        return left.step_ms + slope * (imbalance - left.imbalance)


def point(metrics: dict) -> Point:
    return Point(metrics.get("imbalance", 1.0), metrics["step_ms"], metrics["exposed_comm_us"] / 1e3)


def two_steps(arguments: str, seed: int) -> list[loads.Loads]:
    """Of all layers; experts are placed by the first, and serve the second."""
    shape = f"--steps 2 --layers {LAYERS} --seed {seed}"
    return loads.trace(loads.parse(f"{arguments} {shape}".split()))


def simulated(folder: str, steps: list[loads.Loads], placement: str = EPLB) -> Point:
    return point(simulate_loads(written(folder, steps), placement))


def exactly_even() -> Point:
    return point(simulate(f"distribution: exact, redundant_experts: {COPIES}"))


def gemm_us(rows: int) -> float:
    """Of a GPU's two slots, with so many rows each."""
    return ask("price", "h800", f"grouped_gemm:layout=masked,groups=2,m={rows}", "--kernels",
               "deepseek-2025-02")["ops"][0]["solo_us"]


def simulated_curve(folder: str, seed: int) -> StepCurve:
    walks = [simulated(folder, two_steps(f"walk --minutes 60 --drift {drift}", seed)) for drift in WALKS]
    return StepCurve([simulated(folder, [[BARELY_UNEVEN]]), *walks, point(simulate(FAR))])


def checks(folder: str, curve: StepCurve, seed: int) -> list[Check]:
    """Other loads than the curve was made of."""
    found = []
    for arguments, placement in CHECKS:
        path = written(folder, two_steps(arguments, seed))
        at = point(simulate_loads(path, placement))
        step = balance(path, 1)["rebalancing"]["steps"][0]
        balanced = step["before" if placement == NO_COPIES else "rebalanced"]["mean"]
        name = arguments + (", no copies" if placement == NO_COPIES else "")
        found.append(Check(name, at, balanced, curve.step_ms(balanced)))
    return found
