"""Documents of declarative state as TOML: reader with references to secrets and files, and writer."""

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tomli_w

from gatewayctl.failures import CommandError
from gatewayctl.prompts import read_secret, read_whole
from gatewayctl.values import read_json

MAX_INTEGER: Final = 2**63 - 1
MAX_DEPTH: Final = 100
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")

FILE: Final = "file"
ENV: Final = "env"
JSON: Final = "json"

SECRETS: Final = {"users": ("password",), "tool_servers": ("key",)}
"""Fields that may be given as `{ file = "PATH" }` or `{ env = "NAME" }`, by their table."""

SECRET_TABLES: Final = {"tool_servers": ("headers",), "functions": ("valves",), "tools": ("valves",)}
"""Fields with a table of which each value may be given so."""

SOURCES: Final = {"functions": ("content",), "tools": ("content",)}
"""Fields that may be given as `{ file = "PATH" }`."""

OBJECTS: Final = {"models": ("params", "meta"), "tool_servers": ("spec",)}
"""Fields with any JSON object, which may be given as `{ json = "TEXT" }`."""

VALVES: Final = "valves."
"""Prefix of valves among the fields of a plan."""

FieldPath = tuple[str, str, str]
"""Table, name of the object, and field."""


@dataclass
class StateFile:
    """A document with its references replaced; `secrets` are the fields that came from files or the
    environment."""

    document: dict[str, Any]
    secrets: set[FieldPath] = field(default_factory=set)


def read_state(source: str) -> StateFile:
    """Return the document in a TOML file, or on standard input for `-`; CommandError names the path.

    The files of references are relative to the directory of the document.
    """
    try:
        text = read_whole(source, source, "FILE")
        document = tomllib.loads(text)
        _check_value(document, (), 0)
    except CommandError as error:
        # Exit code 2 stands for differences.
        raise CommandError("invalid_request", error.message, param=error.param) from error
    except tomllib.TOMLDecodeError as error:
        raise CommandError("invalid_request", f"cannot read {source}: {error}") from error
    except RecursionError as error:
        raise CommandError("invalid_request", f"cannot read {source}: it is nested too deeply") from error
    found = StateFile(document)
    base = Path() if source == "-" else Path(source).parent
    for table, objects in document.items():
        for name, fields in objects.items() if isinstance(objects, dict) else ():
            if isinstance(fields, dict):
                _resolve(found, table, name, fields, base)
    return found


def write_state(document: Mapping[str, Any]) -> str:
    """Return a document as TOML; `read_state` returns an equal one."""
    shown = {table: _writable_table(table, value) for table, value in document.items()}
    # In the long form of a text the library replaces CRLF by LF.
    return tomli_w.dumps(shown, multiline_strings=not _has(shown, lambda value: "\r" in value))


def join_path(*parts: str) -> str:
    """Return a path of the document as a dotted key of TOML."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else json.dumps(part) for part in parts)


def _resolve(found: StateFile, table: str, name: str, fields: dict[str, Any], base: Path) -> None:
    for each in OBJECTS.get(table, ()):
        if each in fields:
            fields[each] = _json(fields[each], (table, name, each))
    for each in SOURCES.get(table, ()):
        if _is_reference(fields.get(each), FILE):
            fields[each] = _read_source(fields[each][FILE], base, (table, name, each))
    for each in SECRETS.get(table, ()):
        if each in fields:
            _resolve_secret(found, fields, each, (table, name, each), base)
    for each in SECRET_TABLES.get(table, ()):
        values = fields.get(each)
        if not isinstance(values, dict):
            continue
        for key in list(values):
            place = (table, name, f"{VALVES}{key}" if each == "valves" else each)
            _resolve_secret(found, values, key, place, base)
            values[key] = _json(values[key], place)


def _resolve_secret(found: StateFile, values: dict[str, Any], key: str, place: FieldPath, base: Path) -> None:
    value = values[key]
    if _is_reference(value, FILE):
        values[key] = _read_secret(str(base / _text(value[FILE], place)), place)
    elif _is_reference(value, ENV):
        name = _text(value[ENV], place)
        given = os.environ.get(name)  # noqa: TID251 - the caller's environment, which the document names
        if given is None:
            raise _refused(place, f"the environment has no {name}")
        values[key] = given
    else:
        return
    found.secrets.add(place)


def _read_source(name: Any, base: Path, place: FieldPath) -> str:
    path = str(base / _text(name, place))
    try:
        # Bytes, because the end of a line is part of a source.
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise _refused(place, f"cannot read {path}: {(error.strerror or '').lower()}") from error
    except UnicodeDecodeError as error:
        raise _refused(place, f"cannot read {path}: it is not UTF-8 text") from error


def _read_secret(path: str, place: FieldPath) -> str:
    try:
        return read_secret(path, "the file")
    except CommandError as error:
        raise _refused(place, error.message) from error


def _json(value: Any, place: FieldPath) -> Any:
    if not _is_reference(value, JSON):
        return value
    try:
        return read_json(_text(value[JSON], place))
    except ValueError as error:
        raise _refused(place, "its text is not JSON, or nested too deeply") from error


def _text(value: Any, place: FieldPath) -> str:
    if not isinstance(value, str) or not value:
        raise _refused(place, "expected a text in the reference")
    return value


def _refused(place: tuple[str, ...], reason: str) -> CommandError:
    *outer, last = place
    is_valve = len(outer) == 2 and last.startswith(VALVES)
    path = join_path(*outer, *(last.split(".", 1) if is_valve else [last]))
    return CommandError("invalid_request", f"cannot apply {path}: {reason}", param=path)


def _is_reference(value: Any, kind: str) -> bool:
    return isinstance(value, dict) and set(value) == {kind}


def _check_value(value: Any, place: tuple[str, ...], depth: int) -> None:
    """Refuse what TOML has and JSON has not, with its path."""
    if depth > MAX_DEPTH:
        raise CommandError("invalid_request", "cannot apply the document: it is nested too deeply")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_value(inner, (*place, name), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_value(inner, place, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _refused(place, "expected a finite number")
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise _refused(place, "expected an integer of at most 64 bits")
    elif not isinstance(value, str | bool | int | float):
        raise _refused(place, "expected no date or time: write it as text")


def _writable_table(table: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: _writable_object(table, fields) for name, fields in value.items()}


def _writable_object(table: str, fields: Any) -> Any:
    if not isinstance(fields, Mapping):
        return fields
    shown = dict(fields)
    for each in OBJECTS.get(table, ()):
        if each in shown:
            shown[each] = _wrapped(shown[each])
    if table in SOURCES and "valves" in shown:
        shown["valves"] = {name: _wrapped(value) for name, value in shown["valves"].items()}
    return shown


def _wrapped(value: Any) -> Any:
    """Return a JSON value as it is, or as `{ json = TEXT }` if TOML lacks a part or it looks like a
    reference."""
    ambiguous = any(_is_reference(value, kind) for kind in (FILE, ENV, JSON))
    if not ambiguous and _is_writable(value):
        return value
    return {JSON: json.dumps(value, ensure_ascii=False)}


def _is_writable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_writable, value.values()))
    if isinstance(value, list):
        return all(map(_is_writable, value))
    is_large = isinstance(value, int) and abs(value) > MAX_INTEGER
    return value is not None and not is_large


def _has(value: Any, test: Callable[[str], bool]) -> bool:
    if isinstance(value, Mapping):
        return any(_has(inner, test) for inner in value.values())
    if isinstance(value, list):
        return any(_has(inner, test) for inner in value)
    return isinstance(value, str) and test(value)
