"""Functions and tools served over HTTP, really loaded, over plugins in memory or another store."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gatewayd.accounts.records import Actor, User
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.http.public.plugins.functions import FunctionRoutes, PublicPluginServices
from gatewayd.http.public.plugins.serializers import PluginSerializer
from gatewayd.http.public.plugins.tools import ToolRoutes
from gatewayd.http.routes import Route
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.function_sync import FunctionSync
from gatewayd.plugins.interfaces import PluginStore, UserValvesStore
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.user_valves import UserValves
from gatewayd.transactions import Transactor
from tests.fakes.accounts.services import Accounts, Site, serving_accounts
from tests.fakes.plugins.memory import Plugged, make_registry

FUNCTIONS = "/api/v1/functions"
TOOLS = "/api/v1/tools"


def make_services(
    registry: PluginManager,
    store: PluginStore,
    user_valves: UserValvesStore,
    accounts: Accounts,
    transactor: Transactor | None = None,
    freshness: Freshness = ALWAYS_FRESH,
) -> PublicPluginServices:
    """Return what the routes call."""
    access, commits = PluginAccess(current=accounts.current.of), transactor or accounts.commits
    return PublicPluginServices(
        PluginService(registry, store, commits, access, accounts.clock, freshness),
        UserValves(registry, user_valves, access),
        FunctionSync(registry, store, commits, access, accounts.clock),
        PluginSerializer(registry, access, OwnerFinder(accounts.users)),
    )


@dataclass
class PluginSite:
    """A served application with an administrator, a user and another one."""

    site: Site
    plugged: Plugged
    rows: Sequence[Route]
    other: User

    @property
    def admin(self) -> User:
        return self.site.admin

    @property
    def user(self) -> User:
        return self.site.user

    async def call(self, method: str, path: str, who: User | None = None, body: Any = None) -> Any:
        """Send a request, as the administrator unless told otherwise; return status and JSON."""
        return await self.site.call(method, path, who or self.admin, body)

    async def ok(self, method: str, path: str, who: User | None = None, body: Any = None) -> Any:
        status, answer = await self.call(method, path, who, body)
        assert status == 200, answer
        return answer

    async def refused(
        self, status: int, method: str, path: str, who: User | None = None, body: Any = None
    ) -> Any:
        """Send what has to be refused with a status; return the sentence."""
        found, answer = await self.call(method, path, who, body)
        assert found == status, answer
        return answer["error"]["message"]


@dataclass
class OtherNode:
    """Another node, which has committed plugins that this one hears of when it asks."""

    plugins: Sequence[Plugin] = ()
    plugged: Plugged | None = None

    def is_fresh(self) -> bool:
        return True

    async def renew(self) -> None:
        if self.plugged is not None:
            for plugin in self.plugins:
                await self.plugged.store.put(plugin)
            await self.plugged.registry.refresh()


@asynccontextmanager
async def serving_plugins(
    *plugins: Plugin, servers: Sequence[ToolServer] = (), node: OtherNode | None = None, **options: Any
) -> AsyncIterator[PluginSite]:
    accounts = Accounts()

    async def list_servers(_: Actor) -> Sequence[ToolServer]:
        return servers

    async with make_registry(*plugins, **options) as plugged:
        node = node or OtherNode()
        node.plugged = plugged
        services = make_services(
            plugged.registry, plugged.store, plugged.user_valves, accounts, freshness=node
        )
        rows = [*FunctionRoutes(services).routes(), *ToolRoutes(services, list_servers).routes()]
        async with serving_accounts(accounts, rows) as site:
            yield PluginSite(site, plugged, rows, await accounts.add_user("other"))
