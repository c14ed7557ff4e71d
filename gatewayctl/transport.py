"""HTTP over a unix socket: requests and replies, with every failure as a `CommandError`.

It uses the standard library, which loads four times as fast as an HTTP client library.
"""

import http.client
import json
import os
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from gatewayctl.failures import CommandError, unsendable
from gatewayctl.wire import base

TIMEOUT_SECONDS: Final = 60.0
ROOT_REFUSED: Final = (
    "root itself is kept out, by the file system, a security module or a container: run as the daemon's user"
)
BROKEN: Final = "cannot read the daemon's answer: the connection broke"

ReplyType = TypeVar("ReplyType", bound=BaseModel)
Query = Mapping[str, str | int | None]

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
# Bytes of a file that are read and sent at a time.
PIECE: Final = 1 << 16


class Readable(Protocol):
    """A source that is read while it is sent; its errors, except OSError, propagate to the caller."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, none at the end."""


class Body(NamedTuple):
    """Body of a request: bytes, or a file of `size` bytes that is read while it is sent."""

    content: bytes | Readable
    size: int
    content_type: str = JSON


class Frame(NamedTuple):
    """One server-sent event: its name ("" for most), its id if it has one, and its data."""

    name: str
    id: str | None
    data: dict[str, Any]


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket; `timeout` in seconds, None waits for ever."""

    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("gatewayd", timeout=timeout, blocksize=PIECE)
        self._path = path

    def connect(self) -> None:
        """Open the socket; `close` releases it, also if this raises."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class StreamCutError(CommandError):
    """A streamed answer ended without its end."""


class Transport:
    """Sends requests to one socket, each on a connection of its own."""

    def __init__(self, path: Path, timeout: float | None = TIMEOUT_SECONDS) -> None:
        self._path = path
        self._timeout = timeout

    @property
    def patient(self) -> "Transport":
        """The same transport without a time limit."""
        return Transport(self._path, None)

    def call(
        self,
        method: str,
        path: str,
        reply: type[ReplyType],
        query: Query,
        request: base.Request | None = None,
    ) -> ReplyType:
        """Send a request and return its reply."""
        with self._sent(method, _target(path, query), _body(request), self._timeout) as answer:
            return _parse(reply, _read_all(answer))

    def read(self, path: str) -> str:
        """Get a text."""
        with self._sent("GET", path, None, self._timeout) as answer:
            return _read_all(answer).decode("utf-8", "replace")

    def download(self, path: str) -> Generator[bytes, None, None]:
        """Get bytes in pieces; a reply that is cut short is `unreachable`."""
        with self._sent("GET", path, None, self._timeout) as answer:
            while piece := _read_piece(answer):
                yield piece

    def upload(
        self, path: str, reply: type[ReplyType], query: Query, content: Readable, size: int
    ) -> ReplyType:
        """Post `size` bytes of a file and return the reply, without a time limit."""
        body = Body(content, size, BYTES)
        with self._sent("POST", _target(path, query), body, None) as answer:
            return _parse(reply, _read_all(answer))

    def ask(self, path: str, request: base.Request) -> dict[str, Any]:
        """Post a request and return the JSON object of the reply, without a time limit."""
        with self._sent("POST", path, _body(request), None) as answer:
            return _object(_read_all(answer))

    def stream(self, path: str, request: base.Request) -> Generator[dict[str, Any], None, None]:
        """Post a request and yield the events of the reply; closing the iterator closes the connection."""
        with self._sent("POST", path, _body(request), None) as answer:
            yield from _events(answer)

    def replay(self, path: str, query: Query) -> Generator[dict[str, Any], None, None]:
        """Get a stream as `stream` yields it, without a time limit."""
        with self._sent("GET", _target(path, query), None, None) as answer:
            yield from _events(answer)

    def listen(self, path: str, query: Query) -> Generator[Frame, None, None]:
        """Get an event stream and yield its events until the connection ends, which is `unreachable`.

        A daemon that sends nothing within the timeout counts as unreachable, too. Closing the iterator closes
        the connection.
        """
        with self._sent("GET", _target(path, query), None, self._timeout) as answer:
            yield from _frames(answer)

    @contextmanager
    def _sent(
        self, method: str, target: str, body: Body | None, timeout: float | None
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {base.HEADER: base.VERSION, "Content-Type": JSON, "Connection": "close"}
        if body is not None:
            headers |= {"Content-Type": body.content_type, "Content-Length": str(body.size)}
        with closing(UnixConnection(self._path, timeout)) as connection:
            try:
                # A daemon that refuses a body answers before it has read the body.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.request(method, target, body.content if body else None, headers)
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise self._unreachable(error) from error
            with answer:
                _check(answer)
                yield answer

    def _unreachable(self, error: OSError | http.client.HTTPException) -> CommandError:
        if isinstance(error, TimeoutError):
            return _timeout()
        if isinstance(error, PermissionError):
            return CommandError(
                "forbidden",
                f"cannot open the control socket {self._path}: permission denied",
                hint=ROOT_REFUSED if is_root() else None,
            )
        if isinstance(error, FileNotFoundError):
            reason = "there is no such socket"
        elif isinstance(error, http.client.HTTPException | ConnectionResetError | BrokenPipeError):
            reason = "the daemon closed the connection"
        else:
            reason = (error.strerror or str(error)).lower()
        return CommandError("unreachable", f"cannot reach the daemon at {self._path}: {reason}")


def _target(path: str, query: Query) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    try:
        return f"{path}?{urlencode(given)}" if given else path
    except UnicodeEncodeError as error:
        raise unsendable() from error


def _body(request: base.Request | None) -> Body | None:
    if request is None:
        return None
    try:
        content = request.model_dump_json(exclude_unset=True).encode()
    except PydanticSerializationError as error:
        raise unsendable("it is not UTF-8 text, or is nested too deeply") from error
    return Body(content, len(content))


def _check(reply: http.client.HTTPResponse) -> None:
    spoken = reply.getheader(base.HEADER)
    if spoken != base.VERSION:
        theirs = f"protocol {spoken}" if spoken else "no control protocol"
        raise CommandError(
            "protocol_mismatch",
            f"cannot talk to the daemon: it speaks {theirs}, this gatewayctl speaks protocol {base.VERSION}",
        )
    if reply.status >= 400:
        problem = _parse(base.ProblemReply, _read_all(reply)).error
        raise _refused(problem, reply.getheader("X-Request-Id"))


def _refused(problem: base.Problem, request_id: str | None) -> CommandError:
    hint = f"try again in {problem.retry_after} seconds" if problem.retry_after else None
    if problem.kind == "forbidden" and is_root():
        # The usual hint suggests to be root.
        hint = ""
    return CommandError(problem.kind, problem.message, param=problem.param, request_id=request_id, hint=hint)


def is_root() -> bool:
    """Return whether the command runs as root."""
    return os.geteuid() == 0


def _timeout() -> CommandError:
    return CommandError("timeout", "cannot get an answer from the daemon: it did not come in time")


def _read_all(reply: http.client.HTTPResponse) -> bytes:
    try:
        return reply.read()
    except TimeoutError as error:
        raise _timeout() from error
    except (OSError, http.client.HTTPException) as error:
        raise CommandError("unreachable", BROKEN) from error


def _read_piece(reply: http.client.HTTPResponse) -> bytes:
    try:
        return reply.read(PIECE)
    except TimeoutError as error:
        raise _timeout() from error
    except (OSError, http.client.HTTPException) as error:
        raise CommandError("unreachable", BROKEN) from error


def _parse(reply: type[ReplyType], data: bytes) -> ReplyType:
    try:
        return reply.model_validate_json(data)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"]) or "the body"
        raise CommandError(
            "protocol_mismatch", f"cannot read the daemon's answer: {field} is not as expected"
        ) from error


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise CommandError("protocol_mismatch", "cannot read the daemon's answer: it is not JSON") from error
    if not isinstance(value, dict):
        raise CommandError("protocol_mismatch", "cannot read the daemon's answer: it is not an object")
    return value


def _events(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    while True:
        line = _read_line(reply)
        if not line:
            raise StreamCutError("upstream_failed", "cannot finish the answer: the stream broke off")
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        event = _object(data)
        if isinstance(event.get("error"), dict):
            raise _in_band(event["error"], reply.getheader("X-Request-Id"))
        yield event


def _frames(reply: http.client.HTTPResponse) -> Iterator[Frame]:
    fields: dict[str, bytes] = {}
    while line := _read_line(reply):
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if line.strip():
            # The line of a comment begins with the colon: its field name is empty.
            fields[name.decode("ascii", "replace")] = value.removeprefix(b" ")
            continue
        if "data" in fields:
            yield _frame(fields)
        fields = {}
    raise CommandError("unreachable", BROKEN)


def _frame(fields: Mapping[str, bytes]) -> Frame:
    number = fields.get("id")
    return Frame(
        fields.get("event", b"").decode("utf-8", "replace"),
        None if number is None else number.decode("utf-8", "replace"),
        _object(fields["data"]),
    )


def _read_line(reply: http.client.HTTPResponse) -> bytes:
    try:
        return reply.readline()
    except (OSError, http.client.HTTPException) as error:
        raise CommandError("unreachable", BROKEN) from error


def _in_band(error: Mapping[str, Any], request_id: str | None) -> CommandError:
    kind = error.get("kind") or error.get("code")
    return CommandError(
        kind if isinstance(kind, str) else "upstream_failed",
        str(error.get("message") or "cannot finish the answer: the model failed"),
        request_id=request_id,
    )
