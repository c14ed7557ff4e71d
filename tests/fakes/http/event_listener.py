"""A client of the event stream on a thread of its own."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SECONDS = 20.0
"""How long what must come may take."""


@dataclass(frozen=True)
class Heard:
    """One frame: its id, the name of its event, and what it says."""

    id: str
    name: str
    data: Any

    @property
    def type(self) -> str:
        """The type of the event, empty for the first frame."""
        kind: str = self.data.get("data", {}).get("type", "")
        return kind

    @property
    def payload(self) -> Any:
        """The payload of the event."""
        return self.data["data"].get("data")


class RefusedError(Exception):
    """The stream was refused; the arguments are status and body."""


class Listener:
    """Listens until it is closed or the daemon ends the stream; `opened` is what the first frame said."""

    def __init__(self, base_url: str, headers: Mapping[str, str], path: str = "/api/v1/events") -> None:
        self._connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
        self._connection.request("GET", path, headers=dict(headers))
        # The answer takes the socket over from its connection.
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        if self._answer.status != 200:
            body = self._answer.read()
            self._connection.close()
            raise RefusedError(self._answer.status, body)
        self._changed = threading.Condition()
        self.heard: list[Heard] = []
        self.opened: dict[str, Any] = {}
        self.last_id = ""
        self.is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.wait(lambda one: bool(one.opened), "the first frame")

    def of(self, chat_id: str) -> list[Heard]:
        """Return what was heard of a chat so far."""
        return [one for one in list(self.heard) if one.data["chat_id"] == chat_id]

    def wait(self, is_there: Callable[["Listener"], bool], what: str, seconds: float = SECONDS) -> None:
        """Wait until a condition holds."""
        with self._changed:
            if not self._changed.wait_for(lambda: is_there(self), seconds):
                raise AssertionError(f"{what} did not come: {self.heard[-5:]}")

    def wait_type(self, kind: str, chat_id: str | None = None) -> Heard:
        """Wait for an event of a type and return the first one."""

        def found() -> Iterator[Heard]:
            heard = self.heard if chat_id is None else self.of(chat_id)
            return (one for one in heard if one.type == kind)

        self.wait(lambda _: any(found()), kind)
        return next(found())

    def wait_idle(self, chat_id: str) -> list[Heard]:
        """Wait until nothing runs for a chat any more and return all that was heard of it."""
        self.wait(lambda one: one._is_idle(chat_id), "the end of the answer")
        return self.of(chat_id)

    def wait_over(self, seconds: float = SECONDS) -> float:
        """Wait until the daemon has ended the stream, and return how long that took."""
        began = time.monotonic()
        self.wait(lambda one: one.is_over, "the end of the stream", seconds)
        return time.monotonic() - began

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(2)
        self._thread.join(10)
        self._answer.close()
        self._connection.close()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_idle(self, chat_id: str) -> bool:
        return any(one.type == "chat:active" and not one.payload["active"] for one in self.of(chat_id))

    def _run(self) -> None:
        fields: dict[str, str] = {}
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            for line in self._answer:
                text = line.decode().rstrip("\n")
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif fields:
                    self._take(fields)
                    fields = {}
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _take(self, fields: Mapping[str, str]) -> None:
        if "data" not in fields:
            return
        frame = Heard(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
        with self._changed:
            self.last_id = frame.id or self.last_id
            if frame.name == "session":
                self.opened = frame.data
            else:
                self.heard.append(frame)
            self._changed.notify_all()
