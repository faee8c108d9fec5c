#!/usr/bin/env python3
"""Lists every key of a folder of published config.json files, each with a value that asks for something.

    list_config_keys.py CONFIGS config_keys.txt > config_keys.new

Lines are KIND KEY VALUE. The kind is ours: `changes` an architecture or is `neutral` to size and time. It is kept from
the old list; a key that is not in there gets `?`, for a person to decide.
"""
import json
import pathlib
import sys


def asks(value):
    """Ones are how many families write that there is nothing special."""
    return value not in (None, False, 0, 1, "", [], {}) and shortened(value) != [1] or value is True


def made_to_ask(value):
    return {bool: True, str: "x", list: [0, 1], dict: {"x": 1}}.get(type(value), 2)


def shortened(value):
    """Of a long list what is in it, once each."""
    if isinstance(value, list):
        return [x for i, x in enumerate(value) if x not in value[:i]][:3]
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in list(value.items())[:2]}
    return value


def main(folder, old):
    kinds = dict(reversed(line.split(" ", 2)[:2]) for line in pathlib.Path(old).read_text().splitlines())
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*/config.json")):
        outer = json.loads(path.read_text())
        for config in (outer.get("text_config") or {}, outer):
            for key, value in config.items():
                if key != "text_config" and (key not in found or not asks(found[key])):
                    found[key] = value
    for key in sorted(found):
        value = found[key] if asks(found[key]) else made_to_ask(found[key])
        print(kinds.get(key, "?"), key, json.dumps(shortened(value)))


main(*sys.argv[1:])
