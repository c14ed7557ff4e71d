"""What the client sends for an endpoint, and where the socket is."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from gatewayctl import client
from gatewayctl.client import ControlClient, default_socket, everything, fill, segment
from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.chat import Chat, Message
from gatewayctl.wire.files import NewFile
from gatewayctl.wire.models import Holders
from gatewayctl.wire.plugins import NewPlugin
from gatewayctl.wire.stored_chats import ChatExport
from tests.fakes.daemons.control_socket import Control


def test_the_socket_of_the_system_comes_before_that_of_a_quickstart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, quickstart = tmp_path / "system.sock", tmp_path / "quickstart.sock"
    monkeypatch.setattr(client, "SYSTEM_SOCKET", system)
    monkeypatch.setattr(client, "QUICKSTART_SOCKET", quickstart)
    assert default_socket() == system
    quickstart.touch()
    assert default_socket() == quickstart
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(system))
        listener.listen()
        assert default_socket() == system
    # What a daemon that was killed leaves behind.
    assert system.exists()
    assert default_socket() == quickstart


class NotingTransport:
    """A transport that notes what it is asked, and how patiently."""

    def __init__(self, is_patient: bool = False, asked: list[tuple[Any, ...]] | None = None) -> None:
        self._is_patient = is_patient
        self.asked = [] if asked is None else asked

    @property
    def patient(self) -> "NotingTransport":
        return NotingTransport(True, self.asked)

    def call(self, method: str, path: str, reply: Any, query: Any, request: Any = None) -> None:
        self._note(method, path, query, request)

    def upload(self, path: str, reply: Any, query: Any, content: Any, size: int) -> None:
        self._note("upload", path, query, None)

    def ask(self, path: str, request: Any) -> None:
        self._note("ask", path, {}, request)

    def stream(self, path: str, request: Any) -> None:
        self._note("stream", path, {}, request)

    def listen(self, path: str, query: Any) -> None:
        self._note("listen", path, query, None)

    def _note(self, method: str, path: str, query: Any, request: Any) -> None:
        given = {name: value for name, value in query.items() if value is not None}
        body = None if request is None else request.model_dump(exclude_unset=True)
        self.asked.append((method, path, given, body, self._is_patient))


EVERYONE = Holders(everyone=True)
QUESTION = Chat(messages=[Message(role="user", content="hi")])


@pytest.mark.parametrize(
    ("send", "sent"),
    [
        (lambda to: to.call(routes.LIST_TASKS), ("GET", "/v1/tasks", {}, None, False)),
        (
            lambda to: to.call(routes.LIST_CHATS, query="text", user=None, archived=True, limit=5),
            ("GET", "/v1/chats", {"query": "text", "archived": "true", "limit": 5}, None, False),
        ),
        (
            lambda to: to.call(routes.GET_CHAT, "a/b", tree=False),
            ("GET", "/v1/chats/a%2Fb", {}, None, False),
        ),
        (
            lambda to: to.call(routes.GRANT_PLUGIN, "tool", "a", body=EVERYONE, dry_run=True),
            ("POST", "/v1/plugins/tool/a/grant", {"dry_run": "true"}, {"everyone": True}, False),
        ),
        (
            lambda to: to.call(routes.REMOVE_MODEL, id="a/b", dry_run=False),
            ("DELETE", "/v1/models/one", {"id": "a/b"}, None, False),
        ),
        (
            lambda to: to.call(routes.INSTALL_PLUGIN, "tool", "a", body=NewPlugin(content="x")),
            ("PUT", "/v1/plugins/tool/a", {}, {"content": "x"}, True),
        ),
        (
            lambda to: to.upload(NewFile(name="a", user="ann"), BytesIO(b"x"), 1),
            ("upload", "/v1/files", {"name": "a", "user": "ann"}, None, False),
        ),
        (
            lambda to: to.stream(routes.EXPORT_CHATS, ChatExport(id="c")),
            ("stream", "/v1/chats/export", {}, {"id": "c"}, False),
        ),
        (
            lambda to: to.ask(QUESTION),
            (
                "ask",
                "/v1/chat",
                {},
                {"messages": [{"role": "user", "content": "hi"}], "stream": False},
                False,
            ),
        ),
        (
            lambda to: to.listen(routes.FOLLOW_EVENTS, chat="c", since="x-1", everybody=True),
            ("listen", "/v1/events", {"chat": "c", "since": "x-1", "everybody": "true"}, None, False),
        ),
    ],
)
def test_what_is_sent(send: Callable[[ControlClient], object], sent: tuple[Any, ...]) -> None:
    transport = NotingTransport()
    send(ControlClient(transport))  # type: ignore[arg-type]
    assert transport.asked == [sent]


def test_a_call_that_does_not_fit_its_row_is_refused() -> None:
    to = ControlClient(NotingTransport())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"GET /v1/users/\{ref\} takes 1 segments, 2 were given"):
        to.call(routes.GET_USER, "a", "b")
    with pytest.raises(TypeError, match="GET /v1/tasks takes no parameter 'usr'"):
        to.call(routes.LIST_TASKS, usr="ann")


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("ann@example.org", "ann@example.org"),
        ("a/../?x=1#%2F", "a%2F..%2F%3Fx%3D1%23%252F"),
        ("ä b", "%C3%A4%20b"),
        ("{id}", "%7Bid%7D"),
    ],
)
def test_a_reference_stays_one_segment(ref: str, expected: str) -> None:
    assert segment(ref) == expected
    assert fill(routes.GRANT_PLUGIN, (ref, ref)) == f"/v1/plugins/{expected}/{expected}/grant"


def test_an_empty_reference_is_refused() -> None:
    with pytest.raises(CommandError, match="cannot use an empty id or name"):
        segment("")


def test_a_reference_must_be_text() -> None:
    with pytest.raises(CommandError, match="not UTF-8 text") as caught:
        segment("\udcff")
    assert caught.value.exit_code == 2


async def test_references_are_escaped(control: Control) -> None:
    await control.accounts.add_user("ann")
    made = await control.call(control.client.call, routes.GET_USER, "ann@example.org")
    assert made.name == "ann"
    with pytest.raises(Exception, match=r"cannot find user 'a/\.\./\?x=1#%2F'"):
        await control.call(control.client.call, routes.GET_USER, "a/../?x=1#%2F")


@dataclass(frozen=True)
class Page:
    rows: Sequence[int]
    total: int


@pytest.mark.parametrize(("count", "asked"), [(0, [0]), (1, [0]), (3, [0]), (4, [0, 3]), (7, [0, 3, 6])])
def test_pages_are_read_until_all_rows_are_there(count: int, asked: list[int]) -> None:
    offsets: list[int] = []

    def read(offset: int) -> Page:
        offsets.append(offset)
        return Page(range(offset, min(offset + 3, count)), count)

    assert everything(read, lambda page: page.rows) == list(range(count))
    assert offsets == asked


def test_rows_that_went_meanwhile_are_not_waited_for() -> None:
    pages = [Page([1, 2], 5), Page([], 2)]
    assert everything(lambda _: pages.pop(0), lambda page: page.rows) == [1, 2]
