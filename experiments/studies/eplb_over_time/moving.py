"""What it costs to move experts to where a new placement wants them."""
from typing import NamedTuple

import loads
from step_curve import two_steps
from unit import (EPLB, EXPERT_BYTES, GPUS, LAYERS, NODES, SLOTS, balance, nic_bytes_per_s, simulate_loads, written)

SLOTS_PER_GPU, GPUS_PER_NODE = SLOTS // GPUS, GPUS // NODES
SAMPLES = ("power_law", "walk --drift 0.02", "walk --drift 0.1", "walk --drift 0.4", "day --unlike 0.5 --minutes 360")
MEANWHILE = ("walk --drift 0.1 --minutes 5", "walk --drift 0.1 --minutes 60", "walk --drift 0.3 --minutes 60")
HIDDEN_SHARE = 0.1  # of the NIC, which a hidden move takes from the all-to-all
Placement = list[int]  # the expert of each slot


class LayerMove:
    """Copies over each GPU's NIC. A copy comes from its own node where that has one, else from the holder that has
    sent least."""

    def __init__(self, before: Placement, after: Placement):
        self.moved, self.across_nodes = 0, 0
        self.sent, self.received = [0] * GPUS, [0] * GPUS
        old, new = holders(before), holders(after)
        for expert in sorted(new):
            for gpu in sorted(new[expert] - old[expert]):
                self.receive(gpu, sorted(old[expert]))

    def receive(self, gpu: int, sources: list[int]) -> None:
        self.moved += 1
        if any(source // GPUS_PER_NODE == gpu // GPUS_PER_NODE for source in sources):
            return
        self.across_nodes += 1
        self.received[gpu] += 1
        self.sent[min(sources, key=lambda source: self.sent[source])] += 1


class Move(NamedTuple):
    """One rebalancing of all layers."""
    name: str
    moved: int
    across_nodes: int
    at_once: int  # copies through the busiest NIC
    layer_by_layer: int  # the same where each layer waits for its own busiest NIC


class Price(NamedTuple):
    """Seconds of service lost per moved copy."""
    synchronous_s: float
    hidden_bound_s: float


class HiddenMove(NamedTuple):
    imbalance: float  # of the old placement, which serves meanwhile
    lasts_s: float
    lost_s: float


def holders(placement: Placement) -> dict[int, set[int]]:
    gpus: dict[int, set[int]] = {}
    for slot, expert in enumerate(placement):
        gpus.setdefault(expert, set()).add(slot // SLOTS_PER_GPU)
    return gpus


def placements(folder: str, step: loads.Loads) -> list[Placement]:
    return balance(written(folder, [step]), 1)["placement"]


def busiest(counts: list[list[int]]) -> int:
    return max(sum(of_gpu) for of_gpu in zip(*counts))


def sample(folder: str, arguments: str, seed: int) -> Move:
    """From a placement by one step of a trace to one by the next."""
    before, after = (placements(folder, step) for step in two_steps(arguments, seed))
    layers = [LayerMove(*pair) for pair in zip(before, after)]
    return Move(arguments, sum(layer.moved for layer in layers), sum(layer.across_nodes for layer in layers),
                max(busiest([layer.sent for layer in layers]), busiest([layer.received for layer in layers])),
                sum(max(layer.sent + layer.received) for layer in layers))


def copy_s() -> float:
    """One expert of one layer over one NIC."""
    return EXPERT_BYTES / nic_bytes_per_s()


def dearest(moves: list[Move]) -> Price:
    return Price(copy_s() * max(move.at_once / move.moved for move in moves),
                 copy_s() * max(move.layer_by_layer / move.moved for move in moves))


def hidden(folder: str, arguments: str, seed: int, price: Price) -> HiddenMove:
    """All slots of all layers move while steps run on the rest of the NIC."""
    path = written(folder, two_steps(arguments, seed))
    alone = simulate_loads(path, EPLB)
    rest_GBps = nic_bytes_per_s() / 1e9 * (1 - HIDDEN_SHARE)
    beside = simulate_loads(path, EPLB, f"hardware.nic_GBps={rest_GBps}")
    lasts_s = price.hidden_bound_s * SLOTS * LAYERS / HIDDEN_SHARE
    return HiddenMove(alone["imbalance"], lasts_s, lasts_s * (1 - alone["step_ms"] / beside["step_ms"]))
