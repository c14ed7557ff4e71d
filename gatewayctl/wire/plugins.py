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
    may call. `missing` names imports that this gateway does not have. `left_behind` counts synchronous calls
    that still run after they were stopped. `isolation` is thread or process, "" if its header names neither;
    `pid` and `memory`, in bytes, are those of its running process. `content` is its source, on request.
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
    """A plugin to install under the id in the path, which may exist already.

    Absent fields stay, or come from the header of the source. `user` (id or e-mail) owns a new plugin, by
    default the first administrator.
    """

    content: str
    name: str | None = None
    description: str | None = None
    user: str | None = None
    is_active: bool | None = None
    is_global: bool | None = None


class PluginChange(Request):
    """Switches of a plugin to set; absent ones stay."""

    is_active: bool | None = None
    is_global: bool | None = None


class Reloaded(Reply):
    """Result of reloading all plugins, by names such as `filter x`; `failed` has a sentence for each."""

    loaded: list[str] = Field(default_factory=list)
    failed: dict[str, str] = Field(default_factory=dict)
    removed: list[str] = Field(default_factory=list)
    unchanged: int = 0


class Valve(Reply):
    """One valve; `value` is the effective value. A secret is masked unless the request asks for it.

    `known` is false for a stored value of a valve that the plugin does not have.
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
    """The valves of a plugin and their JSON schema; `problem` says why the schema is not known."""

    valves: list[Valve]
    fields: dict[str, Any] | None = None
    problem: str | None = None


class ValveChange(Request):
    """Valves to set and to unset; `values` are JSON, `texts` are converted to the type of each valve."""

    values: dict[str, Any] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    unset: list[str] = Field(default_factory=list)


class ValvesWritten(Written):
    """The valves of a plugin after a write, secrets masked."""

    valves: list[Valve]


class PluginSource(Request):
    """A source to check; `id` is that of the future plugin."""

    id: str
    content: str


class Parameter(Reply):
    """One parameter of a method; one that is not required may be omitted."""

    name: str
    required: bool = True


class Method(Reply):
    """A method that the gateway or a model calls."""

    name: str
    parameters: list[Parameter] = Field(default_factory=list)


class MissingImport(Reply):
    """An import that fails; a guarded one is within a `try` statement of the plugin.

    `requirement` is the line of its header that names the package.
    """

    name: str
    guarded: bool = False
    requirement: str = ""


class SentEvent(Reply):
    """A type of event in the source; `known`: the gateway knows it."""

    type: str
    known: bool = True


class Requirement(Reply):
    """A package that the header names, and its version where it is installed."""

    requirement: str
    version: str | None = None


class PluginReport(Reply):
    """Report about a source; `error` says why it does not load, `problems` list what will not work.

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
