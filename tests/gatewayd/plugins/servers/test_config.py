"""Tests for gatewayd.plugins.servers.config."""

import json
from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.config import MASK, read_connection, read_connections, render_connection
from gatewayd.plugins.servers.records import ServerOrigin, ServerType, ToolServer

WHOLE: dict[str, Any] = {
    "url": "https://tools.example.org/api",
    "path": "v2/openapi.json",
    "type": "mcp",
    "auth_type": "bearer",
    "key": "secret",
    "headers": {"X-Chat": "{{CHAT_ID}}"},
    "config": {
        "enable": False,
        "access_grants": [{"principal_type": "group", "principal_id": "g1", "permission": "read", "id": "x"}],
        "function_name_filter_list": ["a", "b", "a"],
        "timeout": 3,
    },
    "info": {"id": "tickets", "name": "Tickets", "description": "all"},
    "spec_type": "json",
    "spec": '{"paths": {}}',
}
SERVER = ToolServer(
    "tickets",
    "Tickets",
    "https://tools.example.org/api",
    ServerType.MCP,
    "all",
    "v2/openapi.json",
    "secret",
    {"X-Chat": "{{CHAT_ID}}"},
    {"paths": {}},
    ("a", "b"),
    3.0,
    is_active=False,
    grants=(Grant("group", "g1", "read"),),
)


def test_every_field_is_read() -> None:
    assert read_connection(WHOLE, "0") == SERVER


def test_least_entry_has_the_defaults() -> None:
    server = read_connection({"url": "http://127.0.0.1:1"}, "4", ServerOrigin.SETTINGS)
    assert server == ToolServer("4", "4", "http://127.0.0.1:1", origin=ServerOrigin.SETTINGS)


def test_what_is_shown_can_be_read_again() -> None:
    shown = render_connection(SERVER)
    assert (shown["key"], shown["headers"]) == (MASK, {"X-Chat": MASK})
    assert "secret" not in json.dumps(shown)
    again = read_connection({**shown, "key": "secret", "headers": {"X-Chat": "{{CHAT_ID}}"}}, "0")
    assert again == SERVER


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://[x"}, "url"),
        ({"url": "http://x:99999"}, "url"),
        ({"url": "http://a b/"}, "url"),
        ({"url": "http://u:p@x/"}, "url"),
        ({"url": "http://" + "漢" * 300}, "url"),
        ({"url": "http://" + "\u0327\u0301" * 500_000}, "url"),
        ({"url": "http://x/\r\nA: b"}, "url"),
        ({"url": 4}, "url"),
        ({"path": "file://x"}, "path"),
        ({"type": "soap"}, "type"),
        ({"auth_type": "session"}, "auth_type"),
        ({"key": "a\r\nb"}, "key"),
        ({"key": "é"}, "key"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"a": "b\r\nc: d"}}, "headers"),
        ({"headers": {"a": 1}}, "headers"),
        ({"headers": "{"}, "headers"),
        ({"headers": "[]"}, "headers"),
        ({"spec": "["}, "spec"),
        ({"spec": "[]"}, "spec"),
        ({"spec": "[" * 100_000}, "spec"),
        ({"info": {"id": "a|b"}}, "info.id"),
        ({"info": {"id": "mcp:x"}}, "info.id"),
        ({"info": {"id": "x", "name": "a\nb"}}, "info.name"),
        ({"info": []}, "info"),
        ({"config": {"timeout": True}}, "config.timeout"),
        ({"config": {"timeout": -1}}, "config.timeout"),
        ({"config": {"access_grants": [1]}}, "config.access_grants"),
        ({"config": {"access_grants": {}}}, "config.access_grants"),
        ({"config": {"function_name_filter_list": [1]}}, "config.function_name_filter_list"),
    ],
)
def test_bad_fields_are_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read_connection({**WHOLE, **change}, "0")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert "secret" not in caught.value.message


def test_grants_have_the_forms_of_all_grants() -> None:
    grant = {"principal_type": "robot", "principal_id": "x", "permission": "read"}
    with pytest.raises(GatewayError, match="principal_type"):
        read_connection({**WHOLE, "config": {"access_grants": [grant]}}, "0")


def test_other_forms_of_the_same() -> None:
    entry = {**WHOLE, "headers": '{"X-A": "b"}', "config": {"function_name_filter_list": "a, b,"}}
    server = read_connection({**entry, "spec": {"paths": {}}, "auth_type": "none"}, "0")
    assert (server.headers, server.functions, server.spec) == ({"X-A": "b"}, ("a", "b"), {"paths": {}})
    assert server.key == ""


def test_a_bad_entry_of_the_settings_does_not_harm_the_others() -> None:
    entries = [{"url": "http://a"}, {"url": "no"}, 3, {"url": "http://b", "info": {"id": "0"}}]
    found = read_connections(json.dumps(entries))
    assert [server.id for server in found.servers] == ["0"]
    for index, problem in zip((1, 2, 3), found.problems, strict=True):
        assert problem.startswith(f"cannot use tool_server_connections[{index}]: ")
    assert found.servers[0].origin is ServerOrigin.SETTINGS


def test_settings_that_are_no_list() -> None:
    for text in ("{", "{}", '"x"'):
        with pytest.raises(GatewayError, match="tool_server_connections"):
            read_connections(text)
    assert read_connections("").servers == ()
