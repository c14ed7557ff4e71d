"""The client against daemons that behave badly."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.transport import Frame, Transport
from gatewayctl.wire.chat import Chat, Message
from gatewayctl.wire.health import Health

QUESTION = Chat(messages=[Message(role="user", content="hi")])


@asynccontextmanager
async def answering(folder: Path, *answers: bytes, hold: asyncio.Event | None = None) -> AsyncIterator[Path]:
    """Serve raw bytes to each connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        # All of it is read: closing with something unread would take the answer back.
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        for answer in answers:
            writer.write(answer)
            await writer.drain()
        if hold is not None:
            await hold.wait()
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "s")
    async with server:
        yield folder / "s"


def reply(body: bytes, *, status: str = "200 OK", protocol: str = "Gatewayd-Protocol: 1\r\n") -> bytes:
    head = f"HTTP/1.1 {status}\r\nX-Request-Id: r1\r\n{protocol}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def stream(*lines: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nGatewayd-Protocol: 1\r\nConnection: close\r\n\r\n" + b"".join(lines)


async def failure(work: Callable[..., Any], *args: Any) -> CommandError:
    with pytest.raises(CommandError) as caught:
        await asyncio.to_thread(work, *args)
    return caught.value


def health(path: Path, timeout: float = 10) -> Callable[[], Health]:
    return lambda: Transport(path, timeout).call("GET", "/v1/health", Health, {})


async def test_no_socket_and_nobody_behind_it(tmp_path: Path) -> None:
    error = await failure(health(tmp_path / "absent"))
    assert (error.exit_code, error.kind) == (3, "unreachable")
    async with answering(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    for name in ("s", "file"):
        assert (await failure(health(tmp_path / name))).exit_code == 3
    assert (await failure(health(tmp_path / ("x" * 200)))).exit_code == 3


@pytest.mark.parametrize(
    ("answer", "exit_code", "word"),
    [
        (b"", 3, "closed the connection"),
        (b"nonsense\r\n\r\n", 3, "closed the connection"),
        (reply(b"{}", protocol=""), 7, "no control protocol"),
        (reply(b"{}", protocol="Gatewayd-Protocol: 2\r\n"), 7, "protocol 2"),
        (reply(b"{}", status="400 Bad", protocol="Gatewayd-Protocol: 2\r\n"), 7, "protocol 2"),
        (reply(b"not json"), 7, "not as expected"),
        (reply(b'{"status": 1}'), 7, "not as expected"),
        (reply(b"oops", status="500 Oops"), 7, "not as expected"),
        (reply(b"{}")[:-1], 3, "the connection broke"),
        (reply(b'{"error": {"kind": "conflict", "message": "cannot"}}', status="409 C"), 6, "cannot"),
        (reply(b'{"error": {"kind": "new", "message": "cannot"}}', status="418 C"), 1, "cannot"),
    ],
)
async def test_bad_answers(tmp_path: Path, answer: bytes, exit_code: int, word: str) -> None:
    async with answering(tmp_path, answer) as path:
        error = await failure(health(path))
    assert error.exit_code == exit_code
    assert word in error.message


@pytest.mark.parametrize(
    ("query", "question"),
    [({"query": "\udcff"}, "hi"), ({}, "\ud83d")],
)
async def test_what_is_no_text_is_not_sent(tmp_path: Path, query: dict[str, str], question: str) -> None:
    request = Chat(messages=[Message(role="user", content=question)])
    error = await failure(Transport(tmp_path / "absent").call, "POST", "/v1/x", Health, query, request)
    assert (error.kind, error.exit_code, error.hint) == ("usage", 2, "")
    assert "not UTF-8 text" in error.message


async def test_a_refusal_carries_its_request_and_when_to_try_again(tmp_path: Path) -> None:
    body = b'{"error": {"kind": "rate_limited", "message": "cannot", "param": "p", "retry_after": 7}}'
    async with answering(tmp_path, reply(body, status="429 Slow")) as path:
        error = await failure(health(path))
    assert (error.request_id, error.param, error.hint) == ("r1", "p", "try again in 7 seconds")


@pytest.mark.parametrize(("user", "is_advised"), [(0, False), (1000, True)])
async def test_nobody_who_is_root_is_told_to_be_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, is_advised: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    body = b'{"error": {"kind": "forbidden", "message": "cannot use model x"}}'
    async with answering(tmp_path, reply(body, status="403 Forbidden")) as path:
        refused = await failure(health(path))

    def forbid(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gatewayctl.transport.UnixConnection.connect", forbid)
    closed = await failure(health(tmp_path / "s"))
    for error in (refused, closed):
        assert error.exit_code == 4
        assert ("run as root" in error.hint) is is_advised
    assert ("run as the daemon's user" in closed.hint) is not is_advised


async def test_a_silent_daemon_times_out(tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with answering(tmp_path, hold=hold) as path:
        error = await failure(health(path, 0.05))
        hold.set()
    assert error.kind == "timeout"


async def read_stream(path: Path) -> list[dict[str, Any]]:
    return await asyncio.to_thread(lambda: list(Transport(path).stream("/v1/chat", QUESTION)))


async def test_a_whole_stream(tmp_path: Path) -> None:
    lines = (
        b": comment\n",
        b'data: {"a": 1}\n\n',
        b'data:{"a": 2}\n\n',
        b"data: [DONE]\n\n",
        b"data: junk\n",
    )
    async with answering(tmp_path, stream(*lines)) as path:
        assert await read_stream(path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"", "upstream_failed"),
        (b"data: junk\n\n", "protocol_mismatch"),
        (b"data: []\n\n", "protocol_mismatch"),
        (b'data: {"error": {"kind": "timeout", "message": "cannot"}}\n\n', "timeout"),
        (b'data: {"error": {"code": "rate_limited", "message": "cannot"}}\n\n', "rate_limited"),
        (b'data: {"error": {"code": 429}}\n\n', "upstream_failed"),
    ],
)
async def test_broken_streams(tmp_path: Path, line: bytes, kind: str) -> None:
    async with answering(tmp_path, stream(b'data: {"a": 1}\n\n', line)) as path:
        with pytest.raises(CommandError) as caught:
            await read_stream(path)
    assert caught.value.kind == kind


@pytest.mark.parametrize(("body", "exit_code"), [(b'{"a": 1}', 0), (b"[]", 7), (b"junk", 7)])
async def test_whole_answers(tmp_path: Path, body: bytes, exit_code: int) -> None:
    async with answering(tmp_path, reply(body)) as path:
        if exit_code:
            error = await failure(Transport(path).ask, "/v1/chat", QUESTION)
            assert error.exit_code == exit_code
        else:
            assert await asyncio.to_thread(Transport(path).ask, "/v1/chat", QUESTION) == {"a": 1}


async def test_closing_the_iterator_closes_the_connection(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream(b'data: {"a": 1}\n\n'))
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "s")

    def first() -> dict[str, Any]:
        events = Transport(tmp_path / "s").stream("/v1/chat", QUESTION)
        event = next(events)
        events.close()
        return event

    async with server:
        assert await asyncio.to_thread(first) == {"a": 1}
        await asyncio.wait_for(gone.wait(), 10)


async def listen(path: Path, timeout: float = 10) -> tuple[list[Frame], CommandError]:
    """Return the events that come, and how the stream ends."""
    frames: list[Frame] = []

    def read() -> None:
        frames.extend(Transport(path, timeout).listen("/v1/events", {"user": "a", "since": None}))

    return frames, await failure(read)


async def test_events_have_names_and_ids_and_end_with_the_connection(tmp_path: Path) -> None:
    lines = (
        b"retry: 1000\nid: x-0\nevent: session\ndata: {}\n\n",
        b": keep-alive\n\n",
        b'id: x-1\r\n: aside\r\ndata: {"a": 1}\r\n\r\n',
        b"id: x-2\n\n",
        b'data:{"a":"\xc3\xa4"}\n\n',
        b'id: x-3\ndata: {"cut',
    )
    async with answering(tmp_path, stream(*lines)) as path:
        frames, error = await listen(path)
    assert frames == [("session", "x-0", {}), ("", "x-1", {"a": 1}), ("", None, {"a": "ä"})]
    assert error.kind == "unreachable"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (stream(b"data: junk\n\n"), "protocol_mismatch"),
        (stream(b"data: []\n\n"), "protocol_mismatch"),
        (reply(b'{"error": {"kind": "not_found", "message": "cannot"}}', status="404 N"), "not_found"),
        (b"", "unreachable"),
    ],
)
async def test_streams_of_events_that_cannot_be_read(tmp_path: Path, answer: bytes, kind: str) -> None:
    async with answering(tmp_path, answer) as path:
        frames, error = await listen(path)
    assert (frames, error.kind) == ([], kind)


async def test_a_stream_of_events_that_goes_silent_is_broken(tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with answering(tmp_path, stream(b"data: {}\n\n"), hold=hold) as path:
        frames, error = await listen(path, 0.05)
        hold.set()
    assert (frames, error.kind) == ([("", None, {})], "unreachable")
