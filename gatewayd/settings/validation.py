"""Validation of a layer: turns the errors of pydantic into problems with key, place and expected value."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gatewayd.settings.definitions import FURTHER_SECRETS, TABLE_SECRETS, TABLES, definitions, expectation
from gatewayd.settings.layers import KeyPath, OriginKind, SettingEntry, SettingLayer
from gatewayd.settings.result import ConfigurationProblem, did_you_mean, problem_at
from gatewayd.settings.settings_model import Settings

_MAX_SHOWN_CHARACTERS: Final = 60
_TEXT_LAYERS: Final = frozenset({OriginKind.ENVIRONMENT, OriginKind.CREDENTIAL})


def check_layer(layer: SettingLayer) -> tuple[SettingLayer, list[ConfigurationProblem], set[str]]:
    """Return the valid part of a layer, the problems of the rest, and the names of the rest.

    Each layer is checked alone, so that a bad value is found even if a higher layer replaces it. Empty text
    from the environment means "not set" if it is no value of the setting.
    """
    try:
        Settings.from_layers([layer])
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
    else:
        return layer, [], set()
    failed = {str(detail["loc"][0]) for detail in details}
    bad = {name for name in failed if not _is_unset(layer.entries[name])}
    problems: dict[KeyPath, ConfigurationProblem] = {}
    for detail in details:
        place = _place(detail["loc"])
        if place[0] in bad and place not in problems:
            problems[place] = _problem(place, detail, layer.entries)
    return layer.without(failed), list(problems.values()), bad


def _is_unset(entry: SettingEntry) -> bool:
    return entry.value == "" and entry.origin.kind in _TEXT_LAYERS


def _place(location: KeyPath) -> KeyPath:
    """Return a location without the parts that pydantic adds for members of a type."""
    if location[0] in TABLES:
        return location[:3]
    return location[:2] if len(location) > 1 and isinstance(location[1], int) else location[:1]


def _problem(
    place: KeyPath, detail: ErrorDetails, entries: Mapping[str, SettingEntry]
) -> ConfigurationProblem:
    entry = entries[str(place[0])]
    key = _spell(entry.key, place[1:])
    if detail["type"] == "extra_forbidden":
        sentence = f"unknown key {key}{did_you_mean(str(place[-1]), TABLES[str(place[0])].model_fields)}"
    elif detail["type"] == "missing":
        sentence = f"cannot use {_spell(entry.key, place[1:-1])}: expected the key {place[-1]}"
    else:
        where = "environment " if entry.origin.kind is OriginKind.ENVIRONMENT else ""
        sentence = (
            f"cannot use {where}{key}{_format_value(place, detail['input'])}: expected {_expected(place)}"
        )
    return problem_at(entry.origin_of(place), key, sentence)


def _spell(key: str, rest: KeyPath) -> str:
    return key + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def _expected(place: KeyPath) -> str:
    if place[0] in TABLES:
        field = TABLES[str(place[0])].model_fields.get(str(place[-1]))
        return expectation(field) if field else f"[[{place[0]}]] tables"
    definition = definitions()[str(place[0])]
    split = f" separated by {definition.separator!r}" if definition.separator else ""
    return definition.expects + split


def _format_value(place: KeyPath, value: Any) -> str:
    """Return " = VALUE", or "" for a value that may be secret or is a list or table."""
    is_table = place[0] in TABLES
    if (is_table and place[-1] in (TABLE_SECRETS[str(place[0])], *FURTHER_SECRETS)) or (
        not is_table and definitions()[str(place[0])].secret
    ):
        return ""
    if isinstance(value, bool):
        return f" = {str(value).lower()}"
    if isinstance(value, int | float):
        return f" = {value}"
    if isinstance(value, str):
        return (
            f" = {value if len(value) <= _MAX_SHOWN_CHARACTERS else value[:_MAX_SHOWN_CHARACTERS] + '...'!r}"
        )
    return ""
