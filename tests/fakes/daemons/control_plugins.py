"""Functions and tools behind the control socket, really loaded, over plugins in memory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gatewayd.catalog.service import Catalog
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.accounts.permission_audit import PermissionAuditRoutes
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.models.custom_models import CustomModelParts, CustomModelRoutes
from gatewayd.http.control.plugins.access import PluginAccessRoutes
from gatewayd.http.control.plugins.plugins import ControlPluginServices, PluginRoutes
from gatewayd.http.control.plugins.serializers import PluginViews
from gatewayd.http.control.plugins.tool_servers import ControlToolServerRoutes
from gatewayd.http.control.plugins.valves import PluginValveRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import CollectionService
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.audit import PermissionAudit
from gatewayd.plugins.installation import PluginInstaller
from gatewayd.plugins.placement import PluginPlaces
from gatewayd.plugins.servers.config import ConfiguredServers
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer
from gatewayd.plugins.servers.service import KnownServers, ToolServers
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.requirements import InstallationOptions
from gatewayd.transactions import Transactor
from gatewayd.upstream.tools.servers import ToolServerOptions, make_tool_servers
from tests.fakes.accounts.services import Accounts
from tests.fakes.plugins.memory import Plugged, make_registry
from tests.fakes.storage.tool_server_store import MemoryServers

FILTER = '''"""
title: Loud
version: 1.2
requirements: pydantic
"""
from pydantic import BaseModel, Field


class Filter:
    class Valves(BaseModel):
        priority: int = 0
        words: list[str] = ["a"]
        api_key: str = ""
        mark: str = Field("!", description="What is put behind it.")

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(self, body, __user__=None, __event_emitter__=None):
        await __event_emitter__({"type": "status", "data": {"description": "loud"}})
        return body
'''

TOOL = '''"""
title: Weather
"""


from pydantic import BaseModel


class Tools:
    class Valves(BaseModel):
        unit: str = "C"

    def forecast(self, town: str, days: int = 1) -> str:
        """Tell the weather.

        :param town: where
        """
        return "rain"
'''

BROKEN = "class Filter:\n    lost = 1 / 0\n"


SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "Maps", "version": "3"},
    "paths": {
        "/find": {
            "get": {
                "operationId": "find",
                "summary": "Find a place.",
                "parameters": [{"name": "town", "in": "query", "schema": {"type": "string"}}],
            }
        }
    },
}


class Undoing:
    """The transactor of the accounts, whose rehearsals take tool servers back, too."""

    def __init__(self, inner: Transactor, store: MemoryServers) -> None:
        self._inner = inner
        self._store = store
        self.transaction = inner.transaction
        self.exclusive = inner.exclusive

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[None]:
        before = dict(self._store.rows)
        async with self._inner.rehearsal():
            yield
        self._store.rows = before


@dataclass
class PluginHouse:
    """A registry, a directory of plugins that it reads, and tool servers beside the one of the settings."""

    plugged: Plugged
    directory: Path
    servers: MemoryServers = field(default_factory=MemoryServers)

    def server_rows(self, accounts: Accounts, viewers: ControlActors) -> Sequence[Route]:
        fixed = ToolServer("fixed", "Fixed", "http://127.0.0.1:9", origin=ServerOrigin.SETTINGS)
        known = KnownServers(
            self.servers, ConfiguredServers((fixed,), ("cannot use tool_server_connections[1]",))
        )
        tools = make_tool_servers(known, self.plugged.tasks, ToolServerOptions())
        lists = AccessLists(accounts.users, accounts.groups)
        writes = WriteTransactions(Undoing(accounts.commits, self.servers))
        return ControlToolServerRoutes(
            ToolServers(known, self.servers, tools, accounts.clock), lists, viewers, writes
        ).routes()

    def rows(self, accounts: Accounts, viewers: ControlActors) -> Sequence[Route]:
        registry, store = self.plugged.registry, self.plugged.store
        access = PluginAccess(current=accounts.current.of)
        plugins = PluginService(registry, store, accounts.commits, access, accounts.clock)
        audit = PermissionAudit(registry, accounts.users, accounts.groups, accounts.permissions)
        checker = SourceChecker(InstallationOptions(Path("/nonexistent")), 20.0)
        services = ControlPluginServices(
            plugins, PluginInstaller(plugins, registry, checker, accounts.clock), checker
        )
        principals = GranteeFinder(accounts.users, accounts.groups)
        lists = AccessLists(accounts.users, accounts.groups)
        views = PluginViews(registry, PluginPlaces(registry), principals, lists)
        return [
            *PluginRoutes(services, views, principals, viewers).routes(),
            *PluginValveRoutes(plugins, registry, viewers).routes(),
            *PermissionAuditRoutes(audit, principals).routes(),
            *PluginAccessRoutes(plugins, views, lists, viewers).routes(),
        ]

    def model_rows(
        self,
        catalog: Catalog,
        collections: CollectionService,
        accounts: Accounts,
        viewers: ControlActors,
        writes: WriteTransactions,
    ) -> Sequence[Route]:
        lists = AccessLists(accounts.users, accounts.groups)
        parts = CustomModelParts(collections, self.plugged.registry, viewers)
        return CustomModelRoutes(catalog, lists, parts, accounts.users, writes).routes()


def make_house(folder: Path) -> PluginHouse:
    """Return plugins over a directory `plugins.d` in a folder; enter `plugged` to open them."""
    directory = folder / "plugins.d"
    directory.mkdir()
    return PluginHouse(make_registry(directory=directory), directory)
