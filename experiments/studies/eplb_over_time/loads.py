#!/usr/bin/env python3
"""Loads of experts while a service runs, as CSV that `moeline balance` reads: step,layer,expert,load.

    loads.py power_law --tokens 4096 > LOADS.csv     nothing changes; only the counts scatter
    loads.py walk --drift 0.1 > LOADS.csv            each expert's popularity goes its own way
    loads.py day --unlike 0.5 > LOADS.csv            four domains, whose shares change with the hour

A step stands for --minutes, and a load is the number of tokens that chose the expert in it, top 8 of 256. Tokens of one
request choose alike; --tokens counts those that are independent. Equal arguments give equal bytes.
"""
import argparse
import math
import random
import sys
from collections.abc import Iterator

EXPERTS, TOP_K = 256, 8
POWER = 0.5  # of the power law: popularity is rank^-POWER
SPREAD = 0.5  # of log-popularity between experts, of a walk and of what domains have in common
DOMAINS = 4  # chat, code, maths, another language
BUSIEST_HOUR = (20, 15, 11, 4)  # of each domain, the last one on the other side of the world
SWING = 1.0  # of a domain's log-share, over the day
JUMPS = ((2.0, 6.0, 2, 1.5), (9.5, 12.0, 1, 1.0), (17.25, 18.0, 3, 1.5))  # from hour, to hour, domain, of log-share

Popularity = list[list[float]]  # by layer and expert, mean 1
Loads = list[list[int]]  # by layer and expert


def even(weights: list[float]) -> list[float]:
    """The same with mean 1."""
    scale = len(weights) / sum(weights)
    return [weight * scale for weight in weights]


def power_law(dice: random.Random, args: argparse.Namespace) -> Iterator[Popularity]:
    layers = [even([rank**-POWER for rank in range(1, EXPERTS + 1)]) for _ in range(args.layers)]
    for layer in layers:
        dice.shuffle(layer)
    for _ in range(args.steps):
        yield layers


def walk(dice: random.Random, args: argparse.Namespace) -> Iterator[Popularity]:
    """Log-popularity wanders by --drift in an hour, and is pulled back so that experts stay SPREAD apart."""
    wander = args.drift * math.sqrt(args.minutes / 60)
    keep = math.exp(-(wander**2) / (2 * SPREAD**2))
    fresh = SPREAD * math.sqrt(1 - keep**2)
    layers = [[dice.gauss(0, SPREAD) for _ in range(EXPERTS)] for _ in range(args.layers)]
    for _ in range(args.steps):
        yield [even([math.exp(height) for height in layer]) for layer in layers]
        layers = [[keep * height + fresh * dice.gauss(0, 1) for height in layer] for layer in layers]


def shares(hour: float) -> list[float]:
    """Of the domains, at an hour of the day."""
    logs = [SWING * math.cos(2 * math.pi * (hour - busiest) / 24) for busiest in BUSIEST_HOUR]
    for start, end, domain, height in JUMPS:
        if start <= hour % 24 < end:
            logs[domain] += height
    weights = [math.exp(log) for log in logs]
    return [weight / sum(weights) for weight in weights]


def day(dice: random.Random, args: argparse.Namespace) -> Iterator[Popularity]:
    """Domains have SPREAD in common, and differ in log-popularity by --unlike."""
    def layer_of_domains() -> list[list[float]]:
        common = [dice.gauss(0, SPREAD) for _ in range(EXPERTS)]
        return [even([math.exp(height + dice.gauss(0, args.unlike)) for height in common]) for _ in range(DOMAINS)]

    layers = [layer_of_domains() for _ in range(args.layers)]
    for step in range(args.steps):
        now = shares(step * args.minutes / 60)
        yield [[sum(share * of_domain for share, of_domain in zip(now, expert)) for expert in zip(*layer)]
               for layer in layers]


def count(dice: random.Random, popularity: list[float], tokens: int) -> list[int]:
    """Tokens that chose each expert: Poisson's counts, by their normal limit."""
    mean = tokens * TOP_K / EXPERTS
    return [max(0, round(dice.gauss(mean * weight, math.sqrt(mean * weight)))) for weight in popularity]


TRACES = {"power_law": power_law, "walk": walk, "day": day}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", choices=TRACES)
    parser.add_argument("--drift", type=float, default=0.1, help="of walk: change of log-popularity in an hour (0.1)")
    parser.add_argument("--unlike", type=float, default=0.5, help="of day: deviation between domains (0.5)")
    parser.add_argument("--tokens", type=int, default=65536, help="independent ones in a step (65536)")
    parser.add_argument("--minutes", type=float, default=5, help="that a step stands for (5)")
    parser.add_argument("--steps", type=int, default=289, help="(289: one to place by, and a day of five minutes each)")
    parser.add_argument("--layers", type=int, default=4, help="(4)")
    parser.add_argument("--seed", type=int, default=1, help="(1)")
    return parser.parse_args(arguments)


def trace(args: argparse.Namespace) -> list[Loads]:
    """The loads of each step, oldest first."""
    popularity_dice, count_dice = random.Random(f"{args.seed} popularity"), random.Random(f"{args.seed} counts")
    return [[count(count_dice, popularity, args.tokens) for popularity in layers]
            for layers in TRACES[args.trace](popularity_dice, args)]


def as_csv(steps: list[Loads]) -> str:
    rows = ["step,layer,expert,load"]
    for step, layers in enumerate(steps):
        for layer, loads in enumerate(layers):
            rows += [f"{step},{layer},{expert},{load}" for expert, load in enumerate(loads)]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_csv(trace(parse(sys.argv[1:]))))
