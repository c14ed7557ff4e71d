"""Several nodes over one PostgreSQL database, one directory of files and one Redis, and a slow extractor."""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fakes.daemons.chat_site import House, Person, living
from tests.fakes.daemons.redis_server import RedisServer, redis_server
from tests.fakes.providers.background_upstream import Provider, background_upstream

LEASE_SECONDS = 3
SETTINGS = {"CLUSTER": "true", "WEBUI_SECRET_KEY": "s" * 32, "NODE_LEASE": str(LEASE_SECONDS)}


@dataclass
class Cluster:
    """Nodes over the same database, files and Redis, each with its own state and plugins."""

    folder: Path
    provider: Provider
    settings: Mapping[str, str]
    stack: ExitStack
    houses: list[House] = field(default_factory=list)

    def add(self, people: Mapping[str, Person] | None = None) -> None:
        """Start one node more; the first makes the people unless there are some."""
        number = len(self.houses)
        (self._place(number) / "s").mkdir(parents=True, mode=0o700)
        self.houses.append(self._run(number, self.houses[0].people if self.houses else people))

    def revive(self) -> None:
        """Start those again that were killed."""
        for number, house in enumerate(self.houses):
            if house.daemon.process.poll() is not None:
                self.houses[number] = self._run(number, house.people)

    def _place(self, number: int) -> Path:
        return self.folder / f"n{number}"

    def _run(self, number: int, people: Mapping[str, Person] | None) -> House:
        given = {**self.settings, "NODE_NAME": f"node-{number}"}
        return self.stack.enter_context(living(self._place(number), self.provider, people, **given))


@contextlib.contextmanager
def running_cluster(
    folder: Path, address: str, server: RedisServer | None = None, **settings: str
) -> Iterator[Cluster]:
    """Prepare for nodes and run those that are added, until the end of the block.

    They have a Redis of their own, unless the test has one that it stops.
    """
    files = folder / "files"
    files.mkdir(mode=0o700, parents=True)
    with ExitStack() as stack:
        redis = server or stack.enter_context(redis_server())
        shared = {"DATABASE_URL": address, "FILE_STORE": str(files), "REDIS_URL": redis.url}
        provider = stack.enter_context(background_upstream())
        yield Cluster(folder, provider, {**SETTINGS, **shared, **settings}, stack)


@contextlib.contextmanager
def running_nodes(
    folder: Path, address: str, count: int = 2, people: Mapping[str, Person] | None = None
) -> Iterator[list[House]]:
    """Run so many nodes until the end of the block."""
    with running_cluster(folder, address) as cluster:
        for _ in range(count):
            cluster.add(people)
        yield cluster.houses


class SlowServices(ThreadingHTTPServer):
    """An extractor whose answer about the first document waits for `released`, and an embedding model."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = threading.Event()
        self.released = threading.Event()
        self.extractions = 0

    def renew(self) -> None:
        """Let the next document be the first."""
        self.released.set()
        self.asked, self.released, self.extractions = threading.Event(), threading.Event(), 0

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a gateway that uses both."""
        url = f"http://127.0.0.1:{self.server_address[1]}"
        return {
            "CONTENT_EXTRACTION_ENGINE": "external",
            "EXTERNAL_DOCUMENT_LOADER_URL": url,
            "RAG_EMBEDDING_ENGINE": "openai",
            "RAG_EMBEDDING_MODEL": "m",
            "RAG_OPENAI_API_BASE_URL": url,
        }


@contextlib.contextmanager
def slow_services() -> Iterator[SlowServices]:
    """Serve until the end of the block."""
    server = SlowServices()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: SlowServices
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Answer with the document as text, the first time only when the test wants it."""
        content = self._read()
        self.server.extractions += 1
        if self.server.extractions == 1:
            self.server.asked.set()
            self.server.released.wait(60)
        self._answer({"page_content": content.decode(), "metadata": {}})

    def do_POST(self) -> None:
        """Answer with a vector for each text."""
        texts = json.loads(self._read())["input"]
        vectors = [[1.0, float(len(text) % 7), 0.5, 0.25] for text in texts]
        self._answer({"data": [{"index": at, "embedding": each} for at, each in enumerate(vectors)]})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
