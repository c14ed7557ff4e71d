"""Functions and tools behind the control socket, really loaded, over plugins in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gatewayd.catalog.service import Catalog
from gatewayd.http.control.access_lists import AccessLists
from gatewayd.http.control.custom_models import CustomModelRoutes, ModelParts
from gatewayd.http.control.plugin_access import PluginAccessRoutes
from gatewayd.http.control.plugin_valves import PluginValveRoutes
from gatewayd.http.control.plugin_views import PluginViews
from gatewayd.http.control.plugins import PluginRoutes, PluginServices
from gatewayd.http.control.principals import Principals
from gatewayd.http.control.viewers import Viewers
from gatewayd.http.control.writes import Writes
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import Collections
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.checking import Checker
from gatewayd.plugins.installing import Installing
from gatewayd.plugins.requirements import Installation
from gatewayd.plugins.service import Plugins
from tests.fakes.accounts import Accounts
from tests.fakes.plugins import Plugged, make_registry

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


@dataclass
class PluginHouse:
    """A registry, and a directory of plugins that it reads."""

    plugged: Plugged
    directory: Path

    def rows(self, accounts: Accounts, viewers: Viewers) -> Sequence[Route]:
        registry, store = self.plugged.registry, self.plugged.store
        plugins = Plugins(registry, store, accounts.commits, PluginAccess(), accounts.clock)
        checker = Checker(Installation(Path("/nonexistent")), 20.0)
        services = PluginServices(plugins, Installing(plugins, registry, checker, accounts.clock), checker)
        principals = Principals(accounts.users, accounts.groups)
        lists = AccessLists(accounts.users, accounts.groups)
        views = PluginViews(registry, principals, lists)
        return [
            *PluginRoutes(services, views, principals, viewers).routes(),
            *PluginValveRoutes(plugins, registry, viewers).routes(),
            *PluginAccessRoutes(plugins, views, lists, viewers).routes(),
        ]

    def model_rows(
        self, catalog: Catalog, collections: Collections, accounts: Accounts, viewers: Viewers, writes: Writes
    ) -> Sequence[Route]:
        lists = AccessLists(accounts.users, accounts.groups)
        parts = ModelParts(collections, self.plugged.registry, viewers)
        return CustomModelRoutes(catalog, lists, parts, accounts.users, writes).routes()


def make_house(folder: Path) -> PluginHouse:
    """Return plugins over a directory `plugins.d` in a folder; enter `plugged` to open them."""
    directory = folder / "plugins.d"
    directory.mkdir()
    return PluginHouse(make_registry(directory=directory), directory)
