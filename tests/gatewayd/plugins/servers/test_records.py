"""Tests for gatewayd.plugins.servers.records."""

from gatewayd.plugins.servers.records import ServerOrigin, ServerType, ToolServer


def test_a_server_is_described_by_openapi_and_open_to_its_owner_alone() -> None:
    server = ToolServer("s", "S", "http://127.0.0.1:1")
    assert (server.type, server.path, server.origin) == (
        ServerType.OPENAPI,
        "openapi.json",
        ServerOrigin.DATABASE,
    )
    assert not server.grants
    assert server.is_active


def test_a_server_is_named_among_tools_by_what_it_speaks() -> None:
    assert ToolServer("s", "S", "http://127.0.0.1:1").tool_id == "server:s"
    assert ToolServer("s", "S", "http://127.0.0.1:1", ServerType.MCP).tool_id == "server:mcp:s"
