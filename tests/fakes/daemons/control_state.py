"""Declarative state over the services behind a control socket."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayd.catalog.providers.records import ManagedProvider, StoredProviders
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.state import ControlStateRoutes
from gatewayd.http.routes import Route
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.installation import PluginInstaller
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.servers.config import ConfiguredServers
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer
from gatewayd.plugins.servers.service import KnownServers, ToolServers
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.requirements import InstallationOptions
from gatewayd.state.accounts import GroupTable, UserTable
from gatewayd.state.collections import CollectionTable
from gatewayd.state.models import ModelTable
from gatewayd.state.plugins import PluginTable
from gatewayd.state.providers import ProviderTable
from gatewayd.state.service import StateService
from gatewayd.state.tool_servers import ToolServerTable
from gatewayd.state.values import PermissionTable, SettingTable
from gatewayd.upstream.tools.servers import ToolServerOptions, make_tool_servers
from tests.fakes.providers.managed import FakeTester, MemoryProviderStore, configured

if TYPE_CHECKING:
    from tests.fakes.daemons.control_socket import Control


def make_providers() -> ManagedProviders:
    """Return one provider of the settings and one of the database, whose keys are canaries."""
    stored = ManagedProvider("p1", "acme", "openai", "https://acme.test/v1", key="canary-stored-key")
    made = ManagedProviders(
        MemoryProviderStore(StoredProviders((stored,), {}, 1)), FakeTester(), persistent=True
    )
    made.configure(configured())
    return made


def make_state(control: "Control", providers: ManagedProviders) -> StateService:
    """Return the service over what stands behind a control socket."""
    accounts, house = control.accounts, control.plugins
    registry = house.plugged.registry
    access = PluginAccess(current=accounts.current.of)
    plugins = PluginService(registry, house.plugged.store, accounts.commits, access, accounts.clock)
    checker = SourceChecker(InstallationOptions(Path("/nonexistent")), 20.0)
    installer = PluginInstaller(plugins, registry, checker, accounts.clock)
    fixed = ToolServer("fixed", "Fixed", "http://127.0.0.1:9", origin=ServerOrigin.SETTINGS)
    known = KnownServers(house.servers, ConfiguredServers((fixed,)))
    fetcher = make_tool_servers(known, house.plugged.tasks, ToolServerOptions())
    return StateService(
        accounts.users,
        accounts.groups,
        [
            UserTable(accounts.users),
            GroupTable(accounts.groups, accounts.commits),
            PermissionTable(accounts.permissions),
            ToolServerTable(ToolServers(known, house.servers, fetcher, accounts.clock)),
            *(PluginTable(family, plugins, registry, installer, checker) for family in PluginFamily),
            CollectionTable(control.documents.collections),
            ModelTable(control.catalog),
            SettingTable(accounts.runtime),
            ProviderTable(providers),
        ],
    )


def state_rows(control: "Control", viewers: ControlActors) -> Sequence[Route]:
    return ControlStateRoutes(make_state(control, control.providers), viewers).routes()
