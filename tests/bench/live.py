"""Events and stored chats at size: `python -m tests.bench.live` from the root of the repository.

Starts a gateway on SQLite and emits events through the endpoint of external tools, holds idle event streams,
sends one event to many of them, and appends answers to small and large chats. Times are those of the client,
which has a process of its own.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.processes import sizes_of
from tests.bench.report import quantile, table
from tests.fakes.daemons.daemon import Daemon, running_daemon

ECHO: Final = '''"""
title: Echo
"""


class Pipe:
    async def pipe(self, body):
        return "the answer"
'''

EVENTS_PER_SECOND: Final = 200
STREAMS_AT_ONCE: Final = 100
MARK: Final = b'"bench"'

Results = dict[str, dict[str, float]]

LIMITS: Final = {
    ("emit status", "p99 ms"): 5.0,
    ("emit message", "p99 ms"): 5.0,
    ("idle streams", "KiB each"): 25.0,
    ("idle streams", "errors"): 0.0,
    ("fan-out", "median ms"): 50.0,
    ("append", "large / small"): 1.2,
}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    seconds: float = 20.0
    streams: int = 5000
    listeners: int = 1000
    messages: int = 2000
    repeats: int = 60


@dataclass
class Site:
    """A running gateway, its administrator, and a connection for requests."""

    daemon: Daemon
    token: str

    @property
    def port(self) -> int:
        """The port of the public application."""
        return int(self.daemon.base_url.rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the JSON of a good answer."""
        status, reply = self.daemon.call(method, path, body, {"Authorization": f"Bearer {self.token}"})
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {reply}")
        return reply

    def make_chat(self, messages: int) -> str:
        """Store a chat of a chain of messages and return its id."""
        chain: list[dict[str, Any]] = [
            {
                "id": f"m{number}",
                "parentId": f"m{number - 1}" if number else None,
                "childrenIds": [],
                "role": "assistant" if number % 2 else "user",
                "content": f"what was said, number {number}",
            }
            for number in range(messages)
        ]
        history = {"currentId": chain[-1]["id"], "messages": {message["id"]: message for message in chain}}
        made = self.call("POST", "/api/v1/chats/new", {"chat": {"title": "bench", "history": history}})
        chat_id: str = made["id"]
        return chat_id


class Connection:
    """One kept connection for short requests."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._site.port)

    async def post(self, path: str, body: Any) -> None:
        """Send a request and read its good answer."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._site.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        answered = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answered[:16]:
            raise RuntimeError(f"POST {path}: {answered[:200]!r}")
        length = int(answered.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        await self._reader.readexactly(length)

    def close(self) -> None:
        """Disconnect."""
        self._writer.close()


class Listener:
    """One event stream."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.is_broken = False

    async def open(self) -> None:
        """Connect and wait for the first frame."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._site.port, limit=2**16)
        self._writer.write(
            b"GET /api/v1/events HTTP/1.1\r\nHost: bench\r\n"
            + f"Authorization: Bearer {self._site.token}\r\n\r\n".encode()
        )
        await self._reader.readuntil(b"event: session")
        await self._reader.readuntil(b"\n\n")

    async def hear(self) -> float:
        """Wait for the marked event and return when it came."""
        try:
            await self._reader.readuntil(MARK)
            at = time.perf_counter()
            await self._reader.readuntil(b"\n\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_broken = True
            return time.perf_counter()
        return at

    def close(self) -> None:
        """Disconnect."""
        self._writer.close()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Site]:
    """Run a gateway whose only model answers at once."""
    plugins = folder / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "echo.py").write_text(ECHO)
    settings = {"GLOBAL_LOG_LEVEL": "WARNING", "ENABLE_FORWARD_USER_INFO_HEADERS": "true"}
    quiet = running_daemon(folder / "state", PLUGINS_DIR=str(plugins), **settings)
    with quiet as daemon:
        form = {"email": "bench@example.org", "name": "Bench", "password": "benchmark-password"}
        site = Site(daemon, daemon.call("POST", "/api/v1/auths/signup", form)[1]["token"])
        while "echo" not in [model["id"] for model in site.call("GET", "/api/models")["data"]]:
            time.sleep(0.05)
        yield site


@contextlib.asynccontextmanager
async def listening(site: Site, count: int) -> AsyncIterator[Sequence[Listener]]:
    """Hold event streams of one user."""
    listeners = [Listener(site) for _ in range(count)]
    try:
        for start in range(0, count, STREAMS_AT_ONCE):
            await asyncio.gather(*(one.open() for one in listeners[start : start + STREAMS_AT_ONCE]))
        yield listeners
    finally:
        for one in listeners:
            one.close()


async def emit(site: Site, event: dict[str, Any], size: Size) -> dict[str, float]:
    """Emit events at a steady rate; a late start counts as waiting."""
    path = f"/api/v1/chats/{site.make_chat(2)}/messages/m1/event"
    connections = [Connection(site) for _ in range(8)]
    for connection in connections:
        await connection.open()
        await connection.post(path, event)
    times: list[float] = []
    free = asyncio.Queue[Connection]()
    for connection in connections:
        free.put_nowait(connection)

    async def one(at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        connection = await free.get()
        await connection.post(path, event)
        times.append((time.perf_counter() - at) * 1000)
        free.put_nowait(connection)

    begin = time.perf_counter() + 0.1
    count = int(size.seconds * EVENTS_PER_SECOND)
    await asyncio.gather(*(one(begin + number / EVENTS_PER_SECOND) for number in range(count)))
    for connection in connections:
        connection.close()
    return {"p50 ms": quantile(times, 0.5), "p99 ms": quantile(times, 0.99)}


def marked() -> dict[str, Any]:
    """Return the event that listeners wait for."""
    return {"type": "notification", "data": {"type": "info", "content": "bench"}}


async def idle(site: Site, size: Size) -> dict[str, float]:
    """Hold idle streams: what each takes of the daemon, and how many broke or did not hear the one event."""
    chat_id, pid = site.make_chat(2), site.daemon.process.pid
    async with listening(site, 10):
        pass
    before = sizes_of(pid).resident
    async with listening(site, size.streams) as listeners:
        await asyncio.sleep(2.0)
        during = sizes_of(pid).resident
        heard = asyncio.gather(*(one.hear() for one in listeners))
        await asyncio.to_thread(site.call, "POST", f"/api/v1/chats/{chat_id}/messages/m1/event", marked())
        async with asyncio.timeout(60):
            await heard
        errors = sum(one.is_broken for one in listeners)
    return {"streams": size.streams, "KiB each": (during - before) / size.streams, "errors": errors}


async def fan_out(site: Site, size: Size) -> dict[str, float]:
    """Send one event to many: from the request to the moment when the last listener has it."""
    path = f"/api/v1/chats/{site.make_chat(2)}/messages/m1/event"
    connection = Connection(site)
    await connection.open()
    times = []
    async with listening(site, size.listeners) as listeners:
        for _ in range(20):
            heard = [asyncio.ensure_future(one.hear()) for one in listeners]
            await asyncio.sleep(0.2)
            begin = time.perf_counter()
            await connection.post(path, marked())
            last = max(await asyncio.gather(*heard))
            times.append((last - begin) * 1000)
    connection.close()
    return {"listeners": size.listeners, "median ms": statistics.median(times), "most ms": max(times)}


async def append(site: Site, size: Size) -> dict[str, float]:
    """Append a question and its answer to a chat of two messages and to a large one, in alternation."""
    connection = Connection(site)
    await connection.open()
    large = site.make_chat(size.messages)
    small = [site.make_chat(2) for _ in range(size.repeats + 5)]
    times: dict[str, list[float]] = {"small": [], "large": []}
    last = f"m{size.messages - 1}"
    for number, chat_id in enumerate(small):
        for name, chat, parent in (("small", chat_id, "m1"), ("large", large, last)):
            body = {
                "model": "echo",
                "chat_id": chat,
                "id": f"a{number}",
                "user_message": {"id": f"q{number}", "parentId": parent, "content": "and then?"},
                "messages": [{"role": "user", "content": "and then?"}],
            }
            begin = time.perf_counter()
            await connection.post("/api/chat/completions", body)
            times[name].append((time.perf_counter() - begin) * 1000)
        last = f"a{number}"
    connection.close()
    medians = {name: statistics.median(found[5:]) for name, found in times.items()}
    return {
        "small ms": medians["small"],
        "large ms": medians["large"],
        "large / small": medians["large"] / medians["small"],
    }


async def measure(site: Site, size: Size) -> Results:
    """Run everything, the quiet things first."""
    return {
        "emit status": await emit(
            site, {"type": "status", "data": {"description": "at work", "done": False}}, size
        ),
        "emit message": await emit(site, {"type": "message", "data": {"content": "a word "}}, size),
        "append": await append(site, size),
        "fan-out": await fan_out(site, size),
        "idle streams": await idle(site, size),
    }


def results_table(results: Results) -> str:
    """Return a Markdown table: a row for each figure, with what it is to reach."""
    rows = []
    for name, figures in results.items():
        for label, value in figures.items():
            limit = LIMITS.get((name, label))
            verdict = "" if limit is None else "reached" if value <= limit else "MISSED"
            rows.append([name, label, "" if limit is None else f"<= {limit:g}", f"{value:.2f}", verdict])
    return table(["measure", "figure", "wanted", "found", ""], rows)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser("python -m tests.bench.live", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each rate (20)")
    options = parser.parse_args()
    least = 6000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < least:
        sys.exit(f"needs {least} open files, and {hard} is the most here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as site:
        sys.stdout.write(results_table(asyncio.run(measure(site, Size(seconds=options.seconds)))) + "\n")


if __name__ == "__main__":
    main()
