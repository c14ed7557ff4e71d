"""Cached description of an isolated plugin: methods, attributes and flags that its process last sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import orjson
from pydantic import FailFast, TypeAdapter, ValidationError

from gatewayd.plugins.runtime.arguments import MethodParameters
from gatewayd.plugins.runtime.instance import ATTRIBUTES, PluginInstance

HOOKS: Final = ("on_startup", "on_shutdown", "on_valves_updated")
ENTRIES: Final = ("pipe", "pipes", "inlet", "stream", "outlet", "action", *HOOKS)
"""Methods that the gateway calls."""

MAX_METHODS: Final = 1_000
MAX_ATTRIBUTE_BYTES: Final = 256 << 10
"""Maximum size of one attribute as JSON; a larger one counts as absent."""


Names = Annotated[frozenset[str], FailFast()]
"""A set of names whose validation stops at the first error."""


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """Description of a plugin.

    `methods` maps each method to its parameters and to those with a default. `values` has the attributes that
    exist, `flags` their truth values. The `idle` methods return their argument unchanged.
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
        """Return the parameters of a method."""
        names, with_defaults = self.methods[method]
        return MethodParameters(names, with_defaults)


_FACTS: Final = TypeAdapter(PluginFacts)


def read_facts(value: Any) -> PluginFacts:
    """Return the facts of a message; ValueError for an invalid one."""
    members = value.values() if isinstance(value, dict) else ()
    # Checked before pydantic, which would collect an error for each of possibly a million members.
    if any(len(member) > MAX_METHODS for member in members if isinstance(member, dict | list)):
        raise ValueError("it has too many methods")
    try:
        return _FACTS.validate_python(value)
    except ValidationError as error:
        raise ValueError("its description of the plugin is invalid") from error


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
    """Return facts with the current attributes, priority and `left_behind`, which a call may change."""
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
