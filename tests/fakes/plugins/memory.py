"""Plugins in memory, and a registry that really loads them; their sources are texts in the tests."""

import asyncio
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import Actor, CredentialKind, PermissionTree, Role, User
from gatewayd.catalog.records import Grant
from gatewayd.events.records import EventTarget
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind, PluginProblem
from gatewayd.plugins.registry import PluginManager, PluginSources
from gatewayd.plugins.runtime.arguments import CallServices, RequestMaker, TokenFinder
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.interfaces import PluginIsolation
from gatewayd.plugins.runtime.loader import LoadingOptions
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from gatewayd.tasks import TaskRegistry

Key = tuple[PluginFamily, str]
Isolating = Callable[[CallServices, TaskRegistry], PluginIsolation]


class MemoryPlugins:
    """A `PluginStore` in memory."""

    def __init__(self, *plugins: Plugin) -> None:
        self.rows: dict[Key, Plugin] = {(one.family, one.id): one for one in plugins}

    async def list(self, family: PluginFamily | None = None) -> Sequence[Plugin]:
        rows = [row for row in self.rows.values() if family in (None, row.family)]
        return sorted(rows, key=lambda row: (row.id, row.family))

    async def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        return self.rows.get((family, plugin_id))

    async def put(self, plugin: Plugin) -> None:
        self.rows[plugin.family, plugin.id] = plugin

    async def remove(self, family: PluginFamily, plugin_id: str) -> bool:
        return self.rows.pop((family, plugin_id), None) is not None

    async def note(self, family: PluginFamily, plugin_id: str, problem: PluginProblem | None) -> None:
        if row := self.rows.get((family, plugin_id)):
            self.rows[family, plugin_id] = replace(row, problem=problem)


class MemoryUserValves:
    """A `UserValvesStore` in memory."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, PluginFamily, str], dict[str, Any]] = {}

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        return self.values.get((user_id, family, plugin_id))

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        self.values[user_id, family, plugin_id] = values


@dataclass
class NotedEvents:
    """Events and calls as plugins send them; calls are answered with `answers`, in their order."""

    emitted: list[tuple[EventTarget, Any]] = field(default_factory=list)
    asked: list[tuple[EventTarget, Any]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def emit(self, target: EventTarget, event: Any) -> bool:
        self.emitted.append((target, event))
        self.arrived.set()
        return True

    async def call(self, target: EventTarget, event: Any) -> Any:
        self.asked.append((target, event))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def texts(self) -> list[str]:
        """Return the descriptions or contents of what was emitted."""
        data = [event["data"] for _, event in self.emitted]
        return [str(one.get("description", one.get("content"))) for one in data]


@dataclass
class Plugged:
    """A registry and what is around it; `open` and `close` by `async with`."""

    store: MemoryPlugins
    user_valves: MemoryUserValves
    events: NotedEvents
    tasks: TaskRegistry
    registry: PluginManager

    async def __aenter__(self) -> "Plugged":
        await self.registry.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.registry.close()
        await self.tasks.close()


def make_registry(
    *plugins: Plugin,
    directory: Path | None = None,
    sources: PluginSources | None = None,
    installation: InstallationOptions | None = None,
    make_request: RequestMaker | None = None,
    timeout: float = 20.0,
    events: Any = None,
    user_valves: Any = None,
    isolation: Isolating | None = None,
    provider_token: TokenFinder | None = None,
) -> Plugged:
    """Return a registry over plugins in memory; without `sources` it has no built-in ones.

    Call it where a loop runs, and enter it: `async with make_registry(plugin_of(...)) as plugged:`.
    """
    store, tasks = MemoryPlugins(*plugins), TaskRegistry()
    events = NotedEvents() if events is None else events
    user_valves = MemoryUserValves() if user_valves is None else user_valves
    around = CallServices(asyncio.get_running_loop(), events, user_valves, make_request, provider_token)
    requirements = RequirementsInstaller(installation or InstallationOptions(Path("/nonexistent")))
    registry = PluginManager(
        store,
        around,
        LoadingOptions(requirements, timeout, None if isolation is None else isolation(around, tasks)),
        sources or PluginSources(directory, has_builtin=False),
        tasks,
    )
    return Plugged(store, user_valves, events, tasks, registry)


def plugin_of(plugin_id: str, content: str, **fields: Any) -> Plugin:
    """Return a stored, active plugin of a source, which may be indented; the kind is that of its class."""
    text = textwrap.dedent(content).lstrip("\n")
    try:
        family, kind = source_code.detect_kind(text)
    except Exception:
        family, kind = PluginFamily.FUNCTION, PluginKind.FILTER
    manifest = frontmatter.parse_frontmatter(text)
    made = Plugin(
        id=plugin_id,
        family=family,
        kind=kind,
        user_id="u-admin",
        name=plugin_id.title(),
        content=text,
        manifest=manifest,
        is_active=True,
        is_global=kind in (PluginKind.FILTER, PluginKind.ACTION),
    )
    return replace(made, **fields)


def actor_of(
    user_id: str = "u1",
    role: Role = Role.USER,
    groups: Sequence[str] = (),
    permissions: PermissionTree | None = None,
) -> Actor:
    """Return somebody who calls plugins."""
    user = User(id=user_id, email=f"{user_id}@example.org", name=user_id.upper(), role=role)
    return Actor(user, CredentialKind.SESSION, tuple(groups), permissions or {})


def scope_of(actor: Actor | None = None, **fields: Any) -> CallScope:
    """Return what a call knows: chat `c1`, message `m1` and session `s1`, unless `target` says otherwise."""
    actor = actor or actor_of()
    target = fields.pop("target", EventTarget(actor.user_id, "c1", "m1", "s1"))
    return CallScope(actor, target, **fields)


def readable_by(user_id: str, permission: str = "read") -> tuple[Grant, ...]:
    """Return the grant to one user."""
    return (Grant("user", user_id, permission),)
