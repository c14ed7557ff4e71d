"""What the gateway knows of a plugin in a process without asking it: its names, as they were last told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import orjson
from pydantic import FailFast, TypeAdapter, ValidationError

from gatewayd.plugins.runtime.arguments import MethodParameters
from gatewayd.plugins.runtime.instance import ATTRIBUTES, PluginInstance

HOOKS: Final = ("on_startup", "on_shutdown", "on_valves_updated")
ENTRIES: Final = ("pipe", "pipes", "inlet", "stream", "outlet", "action", *HOOKS)
"""The methods that the gateway calls itself."""

MAX_METHODS: Final = 1_000
MAX_ATTRIBUTE_BYTES: Final = 256 << 10
"""Of one attribute as JSON; a longer one counts as absent."""


Names = Annotated[frozenset[str], FailFast()]
"""Checked up to the first that is none."""


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """What a plugin says of itself.

    `methods` has each method with the names that it takes and those of them with a default, `values` the
    attributes that are there, `flags` whether each of them counts as true. The methods that are `idle` do
    nothing but return what they get.
    """

    methods: dict[str, tuple[Names, Names]] = field(default_factory=dict)
    public: tuple[str, ...] = ()
    idle: frozenset[str] = frozenset()
    values: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    priority: int = 0
    has_valves: bool = False
    has_user_valves: bool = False
    left_behind: int = 0

    def parameters(self, method: str) -> MethodParameters:
        """Return the names that a method takes."""
        names, with_defaults = self.methods[method]
        return MethodParameters(names, with_defaults)


_FACTS: Final = TypeAdapter(PluginFacts)


def read_facts(value: Any) -> PluginFacts:
    """Return the facts that a process told; ValueError for what is none."""
    members = value.values() if isinstance(value, dict) else ()
    # Before the library does so: it would collect an error for each of what may be a million.
    if any(len(member) > MAX_METHODS for member in members if isinstance(member, dict | list)):
        raise ValueError("it has too many methods")
    try:
        return _FACTS.validate_python(value)
    except ValidationError as error:
        raise ValueError("it told what is no description of a plugin") from error


def facts_of(loaded: PluginInstance) -> dict[str, Any]:
    """Return the facts of a plugin as JSON."""
    public = loaded.methods()[:MAX_METHODS]
    methods = [name for name in dict.fromkeys([*ENTRIES, *public]) if loaded.has(name)][:MAX_METHODS]
    lasting = {
        "methods": {name: _names(loaded, name) for name in methods},
        "public": public,
        "idle": [name for name in methods if name in ENTRIES and loaded.is_idle(name)],
        "has_valves": loaded.value("Valves") is not None,
        "has_user_valves": loaded.has_user_valves(),
    }
    return refresh_facts(lasting, loaded)


def refresh_facts(facts: Mapping[str, Any], loaded: PluginInstance) -> dict[str, Any]:
    """Return facts with what a call may change as it is now: attributes, and what is left behind."""
    there = object()
    found = {name: loaded.value(name, there) for name in ATTRIBUTES if name not in facts["methods"]}
    values = {name: value for name, value in found.items() if value is not there}
    return {
        **facts,
        "values": {name: value for name, value in values.items() if _fits(value)},
        "flags": {name: loaded.flag(name) for name in values},
        "priority": loaded.priority(),
        "left_behind": loaded.left_behind,
    }


def _names(loaded: PluginInstance, method: str) -> tuple[list[str], list[str]]:
    known = loaded.parameters(method)
    return sorted(known.names), sorted(known.with_defaults)


def _fits(value: Any) -> bool:
    try:
        return len(orjson.dumps(value)) <= MAX_ATTRIBUTE_BYTES
    except TypeError:
        return False
