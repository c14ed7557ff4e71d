"""Parsers for values of the command line: NAME=VALUE, permission names, durations, sizes."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayctl.prompts import read_secret, usage
from gatewayctl.wire.base import Tree

BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Return the values by name of arguments such as `NAME=VALUE`."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise usage(f"cannot read {pair!r}: expected NAME=VALUE", param=pair)
        found[name] = value
    return found


def parse_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the values by name of arguments such as `NAME=VALUE`: decoded if they are JSON, else as text."""
    return {name: _value(text) for name, text in parse_pairs(pairs).items()}


def read_json(text: str) -> Any:
    """Return a JSON value; raises ValueError if it is invalid or nests too deep.

    NaN and Infinity are refused, because they would become null.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_object(source: str, option: str) -> dict[str, Any]:
    """Return the JSON object in a file, or on standard input for `-`."""
    try:
        value = read_json(read_secret(source, option))
    except ValueError as error:
        raise usage(
            f"cannot read {option} {source}: it is not JSON, or nested too deeply", param=option
        ) from error
    if not isinstance(value, dict):
        raise usage(f"cannot read {option} {source}: it is not an object", param=option)
    return value


def _value(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def parse_flags(pairs: Sequence[str]) -> dict[str, bool]:
    """Return the switches by name of arguments such as `features.api_keys=true`."""
    found: dict[str, bool] = {}
    for name, value in parse_pairs(pairs).items():
        if value.lower() not in {"true", "false"}:
            raise usage(f"cannot read {name}={value}: expected true or false", param=name)
        split_permission(name)
        found[name] = value.lower() == "true"
    return found


def split_permission(name: str) -> tuple[str, str]:
    """Return section and leaf of a permission's name."""
    section, separator, leaf = name.partition(".")
    if not (separator and section and leaf):
        raise usage(f"cannot read the permission {name!r}: expected SECTION.NAME", param=name)
    return section, leaf


def tree_of(flags: Mapping[str, bool]) -> Tree:
    """Return switches by dotted name as a tree."""
    tree: Tree = {}
    for name, value in flags.items():
        section, leaf = split_permission(name)
        tree.setdefault(section, {})[leaf] = value
    return tree


def by_name(values: Mapping[str, object]) -> list[str]:
    """Return values by name as `NAME=VALUE`, for output."""
    return [f"{name}={value}" for name, value in values.items()]


def parse_duration(text: str) -> int:
    """Return the seconds of `30d`, `12h`, `90m`, `45s` or `2w`."""
    match = re.fullmatch(r"([1-9]\d{0,8})([smhdw])", text)
    if match is None:
        raise usage(f"cannot read the duration {text!r}: expected a number and s, m, h, d or w", param=text)
    return int(match[1]) * SECONDS[match[2]]


def parse_size(text: str) -> int:
    """Return the bytes of `500`, `64K`, `20M`, `2G` or `1T`."""
    match = re.fullmatch(r"(\d{1,15})([kmgt]?)", text.lower())
    if match is None:
        raise usage(f"cannot read the size {text!r}: expected a number and K, M, G or T", param=text)
    return int(match[1]) * BYTES[match[2]]
