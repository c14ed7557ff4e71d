"""Tool servers from the settings and the database."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from gatewayd.plugins.servers.config import read_connections
from gatewayd.plugins.servers.service import CHANGE_LOCK, KnownServers, ToolServers
from gatewayd.settings import Settings
from gatewayd.storage.tool_servers import TortoiseToolServers
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.upstream.tools.servers import ServerTools, ToolServerOptions, make_tool_servers


@dataclass(frozen=True, slots=True)
class ToolServerServices:
    """The management of tool servers and the finder of their tools."""

    service: ToolServers
    tools: ServerTools


def make_servers(
    settings: Settings, tasks: TaskRegistry, stack: AsyncExitStack, commits: Transactor
) -> ToolServerServices:
    """Return the services. A server is contacted when a request names it."""
    store = TortoiseToolServers()
    configured = read_connections(settings.tool_server_connections.get_secret_value())
    known = KnownServers(store, configured, bypass_admins=settings.bypass_admin_access_control)
    options = ToolServerOptions(
        call_timeout=settings.aiohttp_client_timeout_tool_server,
        data_timeout=settings.aiohttp_client_timeout_tool_server_data,
        begin_timeout=settings.mcp_initialize_timeout,
        identity=identity_headers(settings),
    )
    tools = make_tool_servers(known, tasks, options)
    stack.callback(tools.close)
    return ToolServerServices(
        ToolServers(known, store, tools, changing=partial(commits.exclusive, CHANGE_LOCK)), tools
    )


def identity_headers(settings: Settings) -> IdentityHeaders | None:
    """Return the headers that identify the caller to tool servers; None if forwarding is disabled."""
    if not settings.enable_forward_user_info_headers:
        return None
    return IdentityHeaders(
        user_name=settings.forward_user_info_header_user_name,
        user_id=settings.forward_user_info_header_user_id,
        user_email=settings.forward_user_info_header_user_email,
        user_role=settings.forward_user_info_header_user_role,
        chat_id=settings.forward_session_info_header_chat_id,
        message_id=settings.forward_session_info_header_message_id,
    )
