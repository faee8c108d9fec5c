"""A simulated timeline, kernel by kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _native
from .call import Assignments, Source, assigned, source

if TYPE_CHECKING:
    import numpy
    import pandas


class Timeline:
    """The spans of a scenario's run: kernels, transfers, and work of the host, one element of each array a task.

    Arrays are read-only views of the simulator's own memory and keep it alive; nothing is copied. Times are whole
    picoseconds since the run's start.
    """

    def __init__(self, native: Any):
        self._native = native
        #: What ``moeline.simulate`` returns of this run.
        self.metrics: dict[str, Any] = json.loads(native.metrics_json())
        #: Names that ``name_id`` counts in.
        self.names: list[str] = native.names()
        #: Classes of work that ``class_id`` counts in, such as "attention" or "dispatch".
        self.classes: list[str] = native.classes()
        #: Streams of ranks that ``stream_id`` counts in: dicts of ``rank``, ``stream`` and ``name``.
        self.streams: list[dict[str, Any]] = native.streams()
        #: Phases that ``phase_id`` counts in: dicts of ``name``, ``rank``, ``micro_batch`` and ``layer``.
        self.phases: list[dict[str, Any]] = native.phases()

    def __len__(self) -> int:
        return len(self.start_ps)

    @property
    def ready_ps(self) -> numpy.ndarray:
        """When each task was released and its launch was over. What lies between it and the start is waiting for SMs."""
        return self._native.ready_ps()

    @property
    def start_ps(self) -> numpy.ndarray:
        return self._native.start_ps()

    @property
    def end_ps(self) -> numpy.ndarray:
        return self._native.end_ps()

    @property
    def solo_ps(self) -> numpy.ndarray:
        """How long each task takes with the GPU and the links to itself."""
        return self._native.solo_ps()

    @property
    def sms(self) -> numpy.ndarray:
        """SMs that each task wants."""
        return self._native.sms()

    @property
    def name_id(self) -> numpy.ndarray:
        return self._native.name_id()

    @property
    def class_id(self) -> numpy.ndarray:
        return self._native.class_id()

    @property
    def stream_id(self) -> numpy.ndarray:
        return self._native.stream_id()

    @property
    def phase_id(self) -> numpy.ndarray:
        return self._native.phase_id()

    def frame(self) -> pandas.DataFrame:
        """One row a task, by start: rank, stream, phase, layer, name, class, start_us, end_us, solo_us, sms."""
        import pandas

        streams = pandas.DataFrame(self.streams).iloc[self.stream_id].reset_index(drop=True)
        phases = pandas.DataFrame(self.phases).iloc[self.phase_id].reset_index(drop=True)
        table = pandas.DataFrame(
            {
                "rank": streams["rank"],
                "stream": streams["name"],
                "phase": phases["name"],
                "layer": phases["layer"],
                "micro_batch": phases["micro_batch"],
                "name": pandas.Categorical.from_codes(self.name_id.astype("int64"), self.names),
                "class": pandas.Categorical.from_codes(self.class_id.astype("int64"), self.classes),
                "start_us": self.start_ps / 1e6,
                "end_us": self.end_ps / 1e6,
                "solo_us": self.solo_ps / 1e6,
                "sms": self.sms,
            }
        )
        return table.sort_values(["start_us", "rank", "stream"], kind="stable", ignore_index=True)


def timeline(scenario: Source, *, set: Assignments | None = None) -> Timeline:
    """Simulates a scenario and keeps its spans. Other threads run meanwhile.

    scenario: a file, or a dict of what would stand in it
    set: changes, as {"workload.batch_size": 64}
    """
    given: list[tuple[str, str]] = []
    name = source("scenario", scenario, given)
    return Timeline(_native.timeline(name, assigned(set), given))
