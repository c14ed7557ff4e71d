"""The routes of functions, tools, tool servers and custom models, on both sockets."""

from collections.abc import Sequence

from gatewayd.assembly.accounts import Accounts
from gatewayd.assembly.plugins import Extensions
from gatewayd.assembly.servers import Servers
from gatewayd.catalog.service import Catalog
from gatewayd.http.control.access_lists import AccessLists
from gatewayd.http.control.custom_models import CustomModelRoutes, ModelParts
from gatewayd.http.control.permission_audit import PermissionAuditRoutes
from gatewayd.http.control.plugin_access import PluginAccessRoutes
from gatewayd.http.control.plugin_valves import PluginValveRoutes
from gatewayd.http.control.plugin_views import PluginViews
from gatewayd.http.control.plugins import PluginRoutes
from gatewayd.http.control.plugins import PluginServices as ControlPluginServices
from gatewayd.http.control.principals import Principals
from gatewayd.http.control.tool_servers import ToolServerRoutes as ControlToolServerRoutes
from gatewayd.http.control.viewers import Viewers
from gatewayd.http.control.writes import Writes
from gatewayd.http.public.document_shapes import Owners
from gatewayd.http.public.functions import FunctionRoutes, PluginServices
from gatewayd.http.public.plugin_shapes import PluginShapes
from gatewayd.http.public.tools import ToolRoutes
from gatewayd.http.public.toolservers import ToolServerRoutes
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import Collections
from gatewayd.plugins.audit import PermissionAudit


def public_plugin_rows(extensions: Extensions, servers: Servers, accounts: Accounts) -> Sequence[Route]:
    """Return the rows of functions, tools and tool servers."""
    plugins = extensions.plugins
    shapes = PluginShapes(extensions.registry, plugins.access, Owners(accounts.users))
    services = PluginServices(plugins, extensions.user_valves, extensions.sync, shapes)
    return [
        *FunctionRoutes(services).routes(),
        *ToolRoutes(services, servers.service.known.usable).routes(),
        *ToolServerRoutes(servers.service).routes(),
    ]


def control_plugin_rows(
    extensions: Extensions, servers: Servers, accounts: Accounts, viewers: Viewers, writes: Writes
) -> Sequence[Route]:
    """Return the rows of the nouns function, tool and tool-server, and of the audit of what they grant."""
    plugins, registry = extensions.plugins, extensions.registry
    principals = Principals(accounts.users, accounts.groups)
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
    collections: Collections,
    extensions: Extensions,
    accounts: Accounts,
    viewers: Viewers,
    writes: Writes,
) -> Sequence[Route]:
    """Return the rows of models that stand on others."""
    lists = AccessLists(accounts.users, accounts.groups)
    parts = ModelParts(collections, extensions.registry, viewers)
    return CustomModelRoutes(catalog, lists, parts, accounts.users, writes).routes()
