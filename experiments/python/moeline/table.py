"""The answer of a sweep as columns."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping


def _value(text: str) -> Any:
    """A number where the axis had one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def table(answer: Mapping[str, Any]) -> dict[str, list[Any]]:
    """A column for each axis and metric of ``moeline.sweep(...)``, as ``pandas.DataFrame`` takes them.

    A metric that a point does not have is NaN. Where any point failed, ``failure`` says why, and is None of the others.
    """
    points = answer["points"]
    axes = dict.fromkeys(key for point in points for key in point["axes"])
    metrics = dict.fromkeys(key for point in points for key in point["metrics"])
    columns: dict[str, list[Any]] = {key: [_value(point["axes"][key]) for point in points] for key in axes}
    columns.update({key: [point["metrics"].get(key, math.nan) for point in points] for key in metrics})
    if any("failure" in point for point in points):
        columns["failure"] = [point.get("failure") for point in points]
    return columns
