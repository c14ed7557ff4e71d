"""Plugins as they are kept, and as they are once loaded."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.catalog.records import Grant

SWITCHES_KEY: Final = "switches"
"""Where `meta` of a plugin from a file keeps what was switched by hand: `{"is_active", "is_global"}`."""

DERIVED_FIELDS: Final = frozenset({"description", "manifest", "toggle", "has_user_valves", SWITCHES_KEY})
"""Members of a shown `meta` that clients do not keep there: columns, and facts of the source."""


class PluginFamily(StrEnum):
    """The two name spaces of plugins: an id may be used once in each (peer-compatible)."""

    FUNCTION = "function"
    TOOL = "tool"


class PluginKind(StrEnum):
    """What a plugin is, told by the class that it has."""

    TOOL = "tool"
    PIPE = "pipe"
    FILTER = "filter"
    ACTION = "action"


class PluginOrigin(StrEnum):
    """Where a plugin's source is kept."""

    DATABASE = "database"
    FILE = "file"
    BUILTIN = "builtin"


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """The last failure: when (epoch seconds), doing what (`load`, `inlet`, ...), and a sentence."""

    at: int
    doing: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    `manifest` is its frontmatter, all values text. `specs` are the OpenAI function specifications of a tool's
    methods. `valves` are what an administrator set, over the defaults of the class. `missing` names what it
    imports from the host and this gateway does not have. `path` is that of its file, if it has one.
    `locked` is a sentence that says why it may not run whatever its switches are; None for most.
    """

    id: str
    family: PluginFamily
    kind: PluginKind
    user_id: str
    name: str
    content: str
    description: str = ""
    manifest: dict[str, str] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    specs: list[dict[str, Any]] = field(default_factory=list)
    valves: dict[str, Any] = field(default_factory=dict)
    is_active: bool = False
    is_global: bool = False
    origin: PluginOrigin = PluginOrigin.DATABASE
    path: str | None = None
    missing: tuple[str, ...] = ()
    problem: PluginProblem | None = None
    locked: str | None = None
    grants: tuple[Grant, ...] = ()
    updated_at: int = 0
    created_at: int = 0


def log_fields(family: PluginFamily, plugin_id: str) -> dict[str, str]:
    """Return what log lines say of a plugin."""
    return {"plugin": plugin_id, "family": family.value}
