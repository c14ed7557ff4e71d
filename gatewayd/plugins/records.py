"""Records of plugins, and their rendering for clients and other plugins."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd import ids
from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.records import Grant

SWITCHES_KEY: Final = "switches"
REVISION_CHARACTERS: Final = 32
"""Key in the `meta` of a plugin from a file for switches set by hand: `{"is_active", "is_global"}`."""

DERIVED_FIELDS: Final = frozenset({"description", "manifest", "toggle", "has_user_valves", SWITCHES_KEY})
"""Members of a rendered `meta` that are derived from columns or the source; clients cannot store them."""


class PluginFamily(StrEnum):
    """The two namespaces of plugin ids, as in Open WebUI."""

    FUNCTION = "function"
    TOOL = "tool"


class PluginKind(StrEnum):
    """Kind of a plugin, determined by the name of its class."""

    TOOL = "tool"
    PIPE = "pipe"
    FILTER = "filter"
    ACTION = "action"


class PluginOrigin(StrEnum):
    """Where the source of a plugin is stored."""

    DATABASE = "database"
    FILE = "file"
    BUILTIN = "builtin"


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """The last failure: time in epoch seconds, operation (`load`, `inlet`, ...), and error sentence."""

    at: int
    doing: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    `manifest` is its frontmatter, all values text. `specs` are the OpenAI function specifications of the
    methods of a tool. `valves` are the values that an administrator set; the class has the defaults.
    `missing` lists the `open_webui` names that it imports and this gateway lacks. `path` is the path of its
    file, None without one. `locked` is the reason why it must not run, whatever its switches; normally None.
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
    """Return the log fields that identify a plugin."""
    return {"plugin": plugin_id, "family": family.value}


def revision_of(plugin: Plugin) -> str:
    """Return a name of what an editor changes in a plugin; another text has another one."""
    grants = [render_grant(grant) for grant in plugin.grants]
    parts = (plugin.name, plugin.description, plugin.content, repr(grants))
    return ids.digest("\x00".join(parts))[:REVISION_CHARACTERS]


def render_plugin(plugin: Plugin, *, has_source: bool = True) -> dict[str, Any]:
    """Return the JSON of a function or tool, with the keys of Open WebUI."""
    meta = {key: value for key, value in plugin.meta.items() if key != SWITCHES_KEY}
    rendered: dict[str, Any] = {
        "id": plugin.id,
        "user_id": plugin.user_id,
        "name": plugin.name,
        **({"content": plugin.content, "revision": revision_of(plugin)} if has_source else {}),
        "meta": {**meta, "description": plugin.description, "manifest": dict(plugin.manifest)},
        "updated_at": plugin.updated_at,
        "created_at": plugin.created_at,
    }
    if plugin.family is PluginFamily.FUNCTION:
        state = {"type": plugin.kind.value, "is_active": plugin.is_active, "is_global": plugin.is_global}
        return {**rendered, **state}
    grants = [render_grant(grant) for grant in plugin.grants]
    return {**rendered, "specs": [dict(spec) for spec in plugin.specs], "access_grants": grants}
