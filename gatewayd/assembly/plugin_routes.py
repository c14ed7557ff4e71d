"""The routes of functions, tools, tool servers and custom models, on both sockets."""

from collections.abc import Sequence

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.plugins import ExtensionServices
from gatewayd.assembly.tool_servers import ToolServerServices
from gatewayd.catalog.service import Catalog
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.accounts.permission_audit import PermissionAuditRoutes
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.models.custom_models import CustomModelParts, CustomModelRoutes
from gatewayd.http.control.plugins.access import PluginAccessRoutes
from gatewayd.http.control.plugins.plugins import ControlPluginServices as ControlPluginServices
from gatewayd.http.control.plugins.plugins import PluginRoutes
from gatewayd.http.control.plugins.serializers import PluginViews
from gatewayd.http.control.plugins.tool_servers import ControlToolServerRoutes as ControlToolServerRoutes
from gatewayd.http.control.plugins.valves import PluginValveRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.http.public.plugins.functions import FunctionRoutes, PublicPluginServices
from gatewayd.http.public.plugins.serializers import PluginSerializer
from gatewayd.http.public.plugins.tool_servers import ToolServerRoutes
from gatewayd.http.public.plugins.tools import ToolRoutes
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import CollectionService
from gatewayd.plugins.audit import PermissionAudit


def public_plugin_rows(
    extensions: ExtensionServices, servers: ToolServerServices, accounts: AccountServices
) -> Sequence[Route]:
    """Return the rows of functions, tools and tool servers."""
    plugins = extensions.plugins
    shapes = PluginSerializer(extensions.registry, plugins.access, OwnerFinder(accounts.users))
    services = PublicPluginServices(plugins, extensions.user_valves, extensions.sync, shapes)
    return [
        *FunctionRoutes(services).routes(),
        *ToolRoutes(services, servers.service.known.usable).routes(),
        *ToolServerRoutes(servers.service).routes(),
    ]


def control_plugin_rows(
    extensions: ExtensionServices,
    servers: ToolServerServices,
    accounts: AccountServices,
    viewers: ControlActors,
    writes: WriteTransactions,
) -> Sequence[Route]:
    """Return the rows of the nouns function, tool and tool-server, and of the permission audit."""
    plugins, registry = extensions.plugins, extensions.registry
    principals = GranteeFinder(accounts.users, accounts.groups)
    lists = AccessLists(accounts.users, accounts.groups)
    views = PluginViews(registry, extensions.places, principals, lists)
    services = ControlPluginServices(plugins, extensions.installing, extensions.checker)
    audit = PermissionAudit(registry, accounts.users, accounts.groups, accounts.permissions)
    return [
        *PluginRoutes(services, views, principals, viewers).routes(),
        *PluginValveRoutes(plugins, registry, viewers).routes(),
        *PluginAccessRoutes(plugins, views, lists, viewers).routes(),
        *PermissionAuditRoutes(audit, principals).routes(),
        *ControlToolServerRoutes(servers.service, lists, viewers, writes).routes(),
    ]


def control_model_rows(
    catalog: Catalog,
    collections: CollectionService,
    extensions: ExtensionServices,
    accounts: AccountServices,
    viewers: ControlActors,
    writes: WriteTransactions,
) -> Sequence[Route]:
    """Return the rows of custom models."""
    lists = AccessLists(accounts.users, accounts.groups)
    parts = CustomModelParts(collections, extensions.registry, viewers)
    return CustomModelRoutes(catalog, lists, parts, accounts.users, writes).routes()
