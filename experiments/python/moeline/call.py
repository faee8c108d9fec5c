"""How a function becomes a command line, and its output a dict."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Sequence, Union

from . import _native

Path = Union[str, "os.PathLike[str]"]
#: A word, a path or a number.
Text = Union[str, "os.PathLike[str]", float]
#: A file, or what would stand in it.
Source = Union[Path, Mapping[str, Any]]
#: {"workload.batch_size": 64}, or ["workload.batch_size=64"].
Assignments = Union[str, Sequence[str], Mapping[str, Any]]


class UsageError(ValueError):
    """A call that makes no sense whatever its files hold."""


class BadInput(ValueError):
    """Bad input. ``file``, ``line`` (from 1) and ``key`` say where; each is None where it is not known."""

    def __init__(self, message: str, file: str = "", line: int = 0, key: str = ""):
        super().__init__(message)
        self.file = file or None
        self.line = line or None
        self.key = key or None


class Answer(dict):
    """What a command prints with ``--format json``.

    ``exit_code`` is 0, or 1 where nothing was feasible or a threshold failed; ``messages`` are the program's, one a line.
    """

    exit_code: int = 0
    messages: list[str]


def assigned(assignments: Assignments | None) -> list[str]:
    """What follows ``--set``, each ``key=value`` with a value of YAML."""
    if assignments is None:
        return []
    if isinstance(assignments, str):
        return [assignments]
    if isinstance(assignments, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in assignments.items()]
    return list(assignments)


def source(name: str, value: Source, given: list[tuple[str, str]]) -> str:
    """The file's name; of a dict a name that no file has, under which its text is given."""
    if not isinstance(value, Mapping):
        return os.fspath(value)
    given.append((f"<{name}>", json.dumps(value)))
    return f"<{name}>"


def _arguments(name: str, value: Any, given: list[tuple[str, str]]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [os.fspath(each) for each in value]
    return [source(name, value, given)]


def _options(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [name]
    values = assigned(value) if name == "--set" else value if isinstance(value, (list, tuple)) else [value]
    words = (str(os.fspath(each) if isinstance(each, os.PathLike) else each) for each in values)
    return [part for word in words for part in ([f"{name}={word}"] if name.startswith("--") else [name, word])]


def call(command: str, arguments: Sequence[tuple[str, Any]], options: Mapping[str, Any], has_json: bool) -> Answer:
    """Runs a command. Other threads run meanwhile."""
    given: list[tuple[str, str]] = []
    words = [command]
    for name, value in options.items():
        words += _options(name, value)
    if has_json:
        words.append("--format=json")
    words.append("--")
    for name, value in arguments:
        words += _arguments(name, value, given)
    exit_code, results, messages = _native.call(words, given)
    text = results.decode("utf-8", "replace")
    answer = Answer(json.loads(text) if has_json else {"text": text})
    answer.exit_code = exit_code
    answer.messages = messages.decode("utf-8", "replace").splitlines()
    return answer
