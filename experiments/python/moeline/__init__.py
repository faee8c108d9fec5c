"""moeline predicts the timeline of Mixture-of-Experts models on a GPU cluster.

Every command of the program is a function here, from a file or a dict to a dict:

    >>> import moeline
    >>> decode = {
    ...     "schema": 1, "model": "deepseek-v3", "hardware": "h800", "schedule": "decode-two-batch",
    ...     "parallelism": {"ep": 128}, "workload": {"phase": "decode", "batch_size": 128, "kv_len": 4096},
    ... }
    >>> moeline.simulate(decode)["metrics"]["tpot_ms"]
    >>> moeline.simulate(decode, set={"workload.batch_size": 64})["metrics"]["tpot_ms"]

``moeline.timeline`` returns the spans of a run as NumPy arrays. Bad input is a ``BadInput`` with ``file``, ``line`` and
``key``; a call that makes no sense a ``UsageError``.
"""

from . import _native
from .call import Answer, BadInput, UsageError
from .commands import *  # noqa: F403
from .commands import __all__ as _commands
from .table import table
from .timeline import Timeline, timeline

__version__ = _native.version
__all__ = [*_commands, "Answer", "BadInput", "Timeline", "UsageError", "table", "timeline"]
