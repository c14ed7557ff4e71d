"""Tool servers of the settings and of the database."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from gatewayd.plugins.servers.config import read_connections
from gatewayd.plugins.servers.service import KnownServers, ToolServers
from gatewayd.settings import Settings
from gatewayd.storage.tool_servers import ToolServerRows
from gatewayd.tasks import Tasks
from gatewayd.upstream.tools.identity import Identity
from gatewayd.upstream.tools.servers import ServerTools, ToolServerOptions, make_tool_servers


@dataclass(frozen=True, slots=True)
class Servers:
    """What manages tool servers, and what finds their tools."""

    service: ToolServers
    tools: ServerTools


def make_servers(settings: Settings, tasks: Tasks, stack: AsyncExitStack) -> Servers:
    """Return the services; nothing is asked before a request names a server."""
    store = ToolServerRows()
    configured = read_connections(settings.tool_server_connections.get_secret_value())
    known = KnownServers(store, configured, bypass_admins=settings.bypass_admin_access_control)
    options = ToolServerOptions(
        call_timeout=settings.aiohttp_client_timeout_tool_server,
        data_timeout=settings.aiohttp_client_timeout_tool_server_data,
        begin_timeout=settings.mcp_initialize_timeout,
        identity=identity(settings),
    )
    tools = make_tool_servers(known, tasks, options)
    stack.callback(tools.close)
    return Servers(ToolServers(known, store, tools), tools)


def identity(settings: Settings) -> Identity | None:
    """Return the headers that say who asks (6.4); None when nobody is to be told."""
    if not settings.enable_forward_user_info_headers:
        return None
    return Identity(
        user_name=settings.forward_user_info_header_user_name,
        user_id=settings.forward_user_info_header_user_id,
        user_email=settings.forward_user_info_header_user_email,
        user_role=settings.forward_user_info_header_user_role,
        chat_id=settings.forward_session_info_header_chat_id,
        message_id=settings.forward_session_info_header_message_id,
    )
