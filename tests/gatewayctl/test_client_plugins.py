"""What the client sends for plugins and custom models; tests/gatewayd/http/control has what comes back."""

from typing import Any

import pytest

from gatewayctl.client_plugins import PluginClient
from gatewayctl.wire.models import Holders, NewModel
from gatewayctl.wire.plugins import NewPlugin, PluginChange, PluginSource, ValveChange
from gatewayctl.wire.tool_servers import NewToolServer


class Noting:
    """A transport that notes what it is asked, and how patiently."""

    def __init__(self, is_patient: bool = False, asked: list[tuple[Any, ...]] | None = None) -> None:
        self._is_patient = is_patient
        self.asked = [] if asked is None else asked

    @property
    def patient(self) -> "Noting":
        return Noting(True, self.asked)

    def call(self, method: str, path: str, reply: Any, query: Any, request: Any = None) -> None:
        given = {name: value for name, value in query.items() if value is not None}
        body = None if request is None else request.model_dump(exclude_unset=True)
        self.asked.append((method, path, given, body, self._is_patient))


DRY = {"dry_run": "true"}


@pytest.mark.parametrize(
    ("method", "arguments", "named", "expected"),
    [
        ("list_plugins", ("tool",), {}, ("GET", "/v1/plugins/tool", {}, None, False)),
        (
            "list_plugins",
            ("function", "pipe"),
            {},
            ("GET", "/v1/plugins/function", {"kind": "pipe"}, None, False),
        ),
        (
            "get_plugin",
            ("tool", "a/b"),
            {"source": True},
            ("GET", "/v1/plugins/tool/a%2Fb", {"source": "true"}, None, False),
        ),
        (
            "install_plugin",
            ("tool", "a", NewPlugin(content="x")),
            {"dry_run": True},
            ("PUT", "/v1/plugins/tool/a", DRY, {"content": "x"}, True),
        ),
        (
            "change_plugin",
            ("tool", "a", PluginChange(is_active=True)),
            {},
            ("PATCH", "/v1/plugins/tool/a", {}, {"is_active": True}, True),
        ),
        (
            "remove_plugin",
            ("tool", "a"),
            {"dry_run": True},
            ("DELETE", "/v1/plugins/tool/a", DRY, None, False),
        ),
        (
            "grant_plugin",
            ("tool", "a", Holders(everyone=True)),
            {},
            ("POST", "/v1/plugins/tool/a/grant", {}, {"everyone": True}, False),
        ),
        (
            "revoke_plugin",
            ("tool", "a", Holders(everyone=True)),
            {"dry_run": True},
            ("POST", "/v1/plugins/tool/a/revoke", DRY, {"everyone": True}, False),
        ),
        (
            "get_valves",
            ("tool", "a"),
            {"reveal": True},
            ("GET", "/v1/plugins/tool/a/valves", {"reveal": "true"}, None, False),
        ),
        (
            "set_valves",
            ("tool", "a", ValveChange(unset=["x"])),
            {"dry_run": True},
            ("PATCH", "/v1/plugins/tool/a/valves", DRY, {"unset": ["x"]}, False),
        ),
        (
            "check_plugin",
            ("tool", PluginSource(id="a", content="x")),
            {},
            ("POST", "/v1/plugins/tool/check", {}, {"id": "a", "content": "x"}, True),
        ),
        ("reload_plugins", (), {}, ("POST", "/v1/plugins/reload", {}, None, True)),
        (
            "create_model",
            (NewModel(id="a", base="b"),),
            {"dry_run": True},
            ("POST", "/v1/models", DRY, {"id": "a", "base": "b"}, False),
        ),
        ("list_tool_servers", (), {}, ("GET", "/v1/tool-servers", {}, None, False)),
        ("get_tool_server", ("a/b",), {}, ("GET", "/v1/tool-servers/a%2Fb", {}, None, False)),
        (
            "add_tool_server",
            (NewToolServer(id="a", url="http://x"),),
            {"dry_run": True},
            ("POST", "/v1/tool-servers", DRY, {"id": "a", "url": "http://x"}, False),
        ),
        ("remove_tool_server", ("a",), {}, ("DELETE", "/v1/tool-servers/a", {}, None, False)),
        ("check_tool_server", ("a",), {}, ("POST", "/v1/tool-servers/a/check", {}, None, True)),
        (
            "grant_tool_server",
            ("a", Holders(everyone=True)),
            {},
            ("POST", "/v1/tool-servers/a/grant", {}, {"everyone": True}, False),
        ),
        (
            "revoke_tool_server",
            ("a", Holders(everyone=True)),
            {},
            ("POST", "/v1/tool-servers/a/revoke", {}, {"everyone": True}, False),
        ),
        ("remove_model", ("a/b",), {}, ("DELETE", "/v1/models/one", {"id": "a/b"}, None, False)),
    ],
)
def test_what_is_sent(
    method: str, arguments: tuple[Any, ...], named: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    transport = Noting()
    getattr(PluginClient(transport), method)(*arguments, **named)  # type: ignore[arg-type]
    assert transport.asked == [expected]
