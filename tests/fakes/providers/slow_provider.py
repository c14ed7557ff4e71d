"""A provider on a thread of its own that sends one chunk and then waits to be told to go on."""

import contextlib
import json
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FRAME = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "slow"}


@dataclass
class SlowProvider:
    """`release` lets the streams end; `closed` says that a client left before."""

    url: str = ""
    release: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)


def _frame(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**FRAME, "choices": [choice]}).encode() + b"\n\n"


@contextlib.contextmanager
def slow_provider() -> Iterator[SlowProvider]:
    """Serve `/v1/models` and a streaming `/v1/chat/completions` on loopback."""
    provider = SlowProvider()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            return

        def do_GET(self) -> None:
            self._send(json.dumps({"object": "list", "data": [{"id": "slow", "object": "model"}]}).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(_frame({"content": "one"}, None))
            self.wfile.flush()
            while not provider.release.wait(0.02):
                readable, _, _ = select.select([self.connection], [], [], 0)
                if readable and not self.connection.recv(1):
                    provider.closed.set()
                    return
            self.wfile.write(_frame({"content": "two"}, "stop") + b"data: [DONE]\n\n")

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.release.set()
        server.shutdown()
        thread.join()
        server.server_close()
