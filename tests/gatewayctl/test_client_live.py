"""What the client sends for chats, tasks and events; tests/gatewayd/http/control has what comes back."""

from typing import Any

import pytest

from gatewayctl.client_live import LiveClient
from gatewayctl.wire.events import CallAnswer
from gatewayctl.wire.stored_chats import ChatExport, ChatImport
from gatewayctl.wire.tasks import TaskStop


class Noting:
    """A transport that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def call(self, method: str, path: str, reply: Any, query: Any, request: Any = None) -> None:
        self._note(method, path, query, request)

    def stream(self, path: str, request: Any) -> None:
        self._note("stream", path, {}, request)

    def listen(self, path: str, query: Any) -> None:
        self._note("listen", path, query, None)

    def _note(self, method: str, path: str, query: Any, request: Any) -> None:
        given = {name: value for name, value in query.items() if value is not None}
        body = None if request is None else request.model_dump(exclude_unset=True)
        self.asked.append((method, path, given, body))


EXPORT, IMPORT = ChatExport(id="c"), ChatImport(user="a", chats=[{"chat": {}}])


@pytest.mark.parametrize(
    ("method", "args", "named", "asked"),
    [
        ("list_chats", (), {}, ("GET", "/v1/chats", {}, None)),
        (
            "list_chats",
            ("text", "ann"),
            {"archived": True, "limit": 5, "offset": 7},
            (
                "GET",
                "/v1/chats",
                {"query": "text", "user": "ann", "archived": "true", "limit": 5, "offset": 7},
                None,
            ),
        ),
        ("get_chat", ("a/b",), {}, ("GET", "/v1/chats/a%2Fb", {}, None)),
        ("get_chat", ("c",), {"tree": True}, ("GET", "/v1/chats/c", {"tree": "true"}, None)),
        ("export_chats", (EXPORT,), {}, ("stream", "/v1/chats/export", {}, {"id": "c"})),
        (
            "import_chats",
            (IMPORT,),
            {"dry_run": True},
            ("POST", "/v1/chats/import", {"dry_run": "true"}, {"user": "a", "chats": [{"chat": {}}]}),
        ),
        ("remove_chat", ("a/b",), {}, ("DELETE", "/v1/chats/a%2Fb", {}, None)),
        ("list_tasks", (), {}, ("GET", "/v1/tasks", {}, None)),
        ("list_tasks", ("c", "ann"), {}, ("GET", "/v1/tasks", {"chat": "c", "user": "ann"}, None)),
        ("stop_tasks", (TaskStop(chat="c"),), {}, ("POST", "/v1/tasks/stop", {}, {"chat": "c"})),
        ("follow_events", ("ann",), {}, ("listen", "/v1/events", {"user": "ann"}, None)),
        (
            "follow_events",
            (None, "c"),
            {"since": "x-1", "everybody": True},
            ("listen", "/v1/events", {"chat": "c", "since": "x-1", "everybody": "true"}, None),
        ),
        ("list_calls", ("ann",), {}, ("GET", "/v1/events/calls", {"user": "ann"}, None)),
        (
            "answer_call",
            ("a/b", CallAnswer(result=None)),
            {},
            ("POST", "/v1/events/calls/a%2Fb", {}, {"result": None}),
        ),
    ],
)
def test_what_is_asked(method: str, args: Any, named: Any, asked: Any) -> None:
    transport = Noting()
    getattr(LiveClient(transport), method)(*args, **named)  # type: ignore[arg-type]
    assert transport.asked == [asked]
