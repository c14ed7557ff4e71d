"""Declarative state over the services."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from gatewayd.assembly.services import GatewayServices
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.state import ControlStateRoutes
from gatewayd.http.routes import Route
from gatewayd.plugins.records import PluginFamily
from gatewayd.state.accounts import GroupTable, UserTable
from gatewayd.state.collections import CollectionTable
from gatewayd.state.models import ModelTable
from gatewayd.state.plugins import PluginTable
from gatewayd.state.providers import ProviderTable
from gatewayd.state.service import StateService
from gatewayd.state.tool_servers import ToolServerTable
from gatewayd.state.values import PermissionTable, SettingTable

DUTY: Final = "state"
"""Name of the duty of nodes."""


def make_state(services: GatewayServices) -> StateService:
    """Return the service, with its tables in the order in which objects are created."""
    accounts, extensions = services.accounts, services.extensions
    plugins = [
        PluginTable(
            family, extensions.plugins, extensions.registry, extensions.installing, extensions.checker
        )
        for family in (PluginFamily.FUNCTION, PluginFamily.TOOL)
    ]
    tables = [
        UserTable(accounts.users),
        GroupTable(accounts.groups, accounts.commits),
        PermissionTable(accounts.permissions),
        ToolServerTable(services.servers.service),
        *plugins,
        CollectionTable(services.documents.collections),
        ModelTable(services.catalog),
        SettingTable(accounts.runtime),
        ProviderTable(services.providers),
    ]
    return StateService(accounts.users, accounts.groups, tables, partial(applying, services))


@asynccontextmanager
async def applying(services: GatewayServices) -> AsyncIterator[None]:
    """Run a block while no other node applies a document, over the changes that others made before."""
    async with services.cluster.duties.alone(DUTY):
        await services.change_log.freshness.renew()
        yield


def control_state_rows(services: GatewayServices, viewers: ControlActors) -> Sequence[Route]:
    """Return the rows of declarative state of the control socket."""
    return ControlStateRoutes(make_state(services), viewers).routes()
