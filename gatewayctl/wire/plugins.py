"""Plugins on the wire: functions and tools have the same messages, under `/v1/plugins/{family}`."""

from typing import Any

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written
from gatewayctl.wire.models import Grant


class PluginProblem(Reply):
    """The last failure of a plugin: when, doing what (`load`, `inlet`, ...), and a sentence."""

    at: str | None = None
    doing: str
    sentence: str


class Plugin(Reply):
    """A plugin; `family` is function or tool, `kind` is pipe, filter, action or tool.

    `origin` is database, file or builtin; `path` that of its file. `methods` are those of a tool that models
    may call. `missing` names what it imports and this gateway does not have. `left_behind` counts plain calls
    that still run after they were stopped. `isolation` is thread or process, "" when its header names
    neither; `pid` and `memory`, in bytes, are those of its process while that runs. `content` is its source,
    where that was asked for.
    """

    id: str
    family: str
    kind: str
    name: str
    description: str = ""
    version: str = ""
    user_id: str = ""
    user: str = ""
    is_active: bool = False
    is_global: bool = False
    origin: str = "database"
    path: str | None = None
    requirements: list[str] = Field(default_factory=list)
    methods: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    problem: PluginProblem | None = None
    left_behind: int = 0
    isolation: str = ""
    pid: int | None = None
    memory: int | None = None
    grants: list[Grant] = Field(default_factory=list)
    updated_at: str | None = None
    created_at: str | None = None
    content: str | None = None


class PluginList(Reply):
    """Plugins by id."""

    plugins: list[Plugin]


class PluginWritten(Written, Plugin):
    """A plugin after a write."""


class NewPlugin(Request):
    """A plugin to install under the id in the path, which may be there already.

    What is absent stays as it is, or is as the header of the source says. `user` (id or e-mail) owns a new
    one, the first administrator when absent.
    """

    content: str
    name: str | None = None
    description: str | None = None
    user: str | None = None
    is_active: bool | None = None
    is_global: bool | None = None


class PluginChange(Request):
    """Which switches of a plugin to set; what is absent stays."""

    is_active: bool | None = None
    is_global: bool | None = None


class Reloaded(Reply):
    """What reading everything again did, by names such as `filter x`; `failed` has a sentence for each."""

    loaded: list[str] = Field(default_factory=list)
    failed: dict[str, str] = Field(default_factory=dict)
    removed: list[str] = Field(default_factory=list)
    unchanged: int = 0


class Valve(Reply):
    """One valve; `value` is what is in force. A secret is masked unless it was asked for.

    `known` is false for what is stored although the plugin has no such valve.
    """

    name: str
    value: Any = None
    default: Any = None
    is_set: bool = False
    type: str = ""
    description: str = ""
    required: bool = False
    secret: bool = False
    known: bool = True


class ValveList(Reply):
    """The valves of a plugin and their JSON schema; `problem` says why that is not known."""

    valves: list[Valve]
    fields: dict[str, Any] | None = None
    problem: str | None = None


class ValveChange(Request):
    """Valves to set and to unset; `values` are JSON, `texts` are read as the type of each valve says."""

    values: dict[str, Any] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    unset: list[str] = Field(default_factory=list)


class ValvesWritten(Written):
    """The valves of a plugin after a write, secrets masked."""

    valves: list[Valve]


class PluginSource(Request):
    """A source to check; `id` is the one that it would have."""

    id: str
    content: str


class Parameter(Reply):
    """One parameter of a method; one that is not required may be left out."""

    name: str
    required: bool = True


class Method(Reply):
    """A method that the gateway or a model calls."""

    name: str
    parameters: list[Parameter] = Field(default_factory=list)


class MissingImport(Reply):
    """An import that finds nothing; the plugin is prepared for it where it is guarded.

    `requirement` is the line of its header that names the package.
    """

    name: str
    guarded: bool = False
    requirement: str = ""


class SentEvent(Reply):
    """A type of event that stands in the source; `known` tells whether the gateway knows it."""

    type: str
    known: bool = True


class Requirement(Reply):
    """A package that the header names, and its version where it is installed."""

    requirement: str
    version: str | None = None


class PluginReport(Reply):
    """What is known of a source; `error` says why it does not load, `problems` what will not work.

    `valves` and `user_valves` are those that an administrator, and each user, can set.
    """

    id: str
    family: str | None = None
    kind: str | None = None
    name: str = ""
    version: str = ""
    loads: bool
    error: str | None = None
    methods: list[Method] = Field(default_factory=list)
    missing: list[MissingImport] = Field(default_factory=list)
    events: list[SentEvent] = Field(default_factory=list)
    valves: list[Valve] = Field(default_factory=list)
    user_valves: list[Valve] = Field(default_factory=list)
    requirements: list[Requirement] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
