"""Stored chats, messages, plugins and servers with everything filled in that a test does not care about."""

from typing import Any

from gatewayd.chats.records import Chat, Message
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.servers.records import ToolServer


def chat(chat_id: str, user_id: str = "u1", **fields: Any) -> Chat:
    """Return a chat titled like its id."""
    return Chat(**{"id": chat_id, "user_id": user_id, "title": chat_id} | fields)


def message(message_id: str, parent_id: str | None = None, **fields: Any) -> Message:
    """Return a message of the user that says its id."""
    return Message(
        **{"id": message_id, "parent_id": parent_id, "role": "user", "content": message_id} | fields
    )


def plugin(plugin_id: str, family: PluginFamily = PluginFamily.FUNCTION, **fields: Any) -> Plugin:
    """Return a plugin named like its id: a filter, or a tool."""
    kind = PluginKind.TOOL if family is PluginFamily.TOOL else PluginKind.FILTER
    content = "class Tools: ..." if family is PluginFamily.TOOL else "class Filter: ..."
    values = {"id": plugin_id, "family": family, "kind": kind, "user_id": "u1", "name": plugin_id}
    return Plugin(**{**values, "content": content} | fields)


def tool_server(server_id: str, **fields: Any) -> ToolServer:
    """Return a tool server named like its id."""
    return ToolServer(**{"id": server_id, "name": server_id, "url": "http://127.0.0.1:1"} | fields)
