"""Client of the control API; its requests use the rows of `wire.routes`."""

import re
import socket
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, overload
from urllib.parse import quote

from gatewayctl.failures import CommandError, unsendable
from gatewayctl.transport import Frame, Query, Readable, Transport
from gatewayctl.wire import chat, files
from gatewayctl.wire import routes as table
from gatewayctl.wire.endpoint import Endpoint, ForeignReply, NoBody, ReplyType, RequestType

SYSTEM_SOCKET: Final = Path("/run/gatewayd/control.sock")
QUICKSTART_SOCKET: Final = Path("gatewayd-state/control.sock")

PLACEHOLDER: Final = re.compile(r"\{\w+\}")

Parameter = str | int | bool | None
"""A value of the query string; None and False are omitted."""


def default_socket() -> Path:
    """Return the socket of the system, or that of a quick start in this directory if it has no listener."""
    if QUICKSTART_SOCKET.exists() and _is_deserted(SYSTEM_SOCKET):
        return QUICKSTART_SOCKET
    return SYSTEM_SOCKET


def _is_deserted(path: Path) -> bool:
    """Return whether the socket is absent or has no listener; one without permission counts as in use."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return True
        except OSError:
            return False
    return False


class ControlClient:
    """Client of the daemon on a control socket; every failure is a `CommandError`.

    The arguments after an endpoint are the segments of its path in their order, such as an id or a name; the
    named ones are parameters of its query string.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @overload
    def call(
        self, endpoint: Endpoint[NoBody, ReplyType], /, *segments: str, **query: Parameter
    ) -> ReplyType: ...

    @overload
    def call(
        self,
        endpoint: Endpoint[RequestType, ReplyType],
        /,
        *segments: str,
        body: RequestType,
        **query: Parameter,
    ) -> ReplyType: ...

    def call(
        self,
        endpoint: Endpoint[Any, ReplyType],
        /,
        *segments: str,
        body: Any = None,
        **query: Parameter,
    ) -> ReplyType:
        """Send a request and return its reply."""
        transport = self._transport.patient if endpoint.slow else self._transport
        path, parameters = fill(endpoint, segments), select(endpoint, query)
        return transport.call(endpoint.method, path, endpoint.reply, parameters, body)

    def read(self, endpoint: Endpoint[NoBody, ForeignReply], /) -> str:
        """Return the text of a reply that is no JSON."""
        return self._transport.read(fill(endpoint))

    def download(
        self, endpoint: Endpoint[NoBody, ForeignReply], /, *segments: str
    ) -> Generator[bytes, None, None]:
        """Yield the bytes of a reply of any size; closing the iterator closes the connection."""
        return self._transport.download(fill(endpoint, segments))

    def upload(self, request: files.NewFile, content: Readable, size: int) -> files.FileWritten:
        """Upload a file of `size` bytes."""
        endpoint = table.ADD_FILE
        query = select(endpoint, request.model_dump())
        return self._transport.upload(fill(endpoint), endpoint.reply, query, content, size)

    def ask(self, request: chat.Chat) -> dict[str, Any]:
        """Return the whole answer of a model as an OpenAI chat completion."""
        return self._transport.ask(fill(table.CHAT), request.model_copy(update={"stream": False}))

    def stream(
        self, endpoint: Endpoint[RequestType, ForeignReply], body: RequestType
    ) -> Generator[dict[str, Any], None, None]:
        """Post a request and yield the JSON objects of the reply; closing the iterator stops the daemon."""
        return self._transport.stream(fill(endpoint), body)

    def replay(
        self, endpoint: Endpoint[NoBody, ForeignReply], /, *segments: str, **query: Parameter
    ) -> Generator[dict[str, Any], None, None]:
        """Yield the JSON objects of a stream that is read again, from its begin."""
        return self._transport.replay(fill(endpoint, segments), select(endpoint, query))

    def listen(
        self, endpoint: Endpoint[NoBody, ForeignReply], /, **query: Parameter
    ) -> Generator[Frame, None, None]:
        """Yield server-sent events as they arrive.

        The iterator raises `unreachable` when the connection ends; closing it closes the connection.
        """
        return self._transport.listen(fill(endpoint), select(endpoint, query))


def fill(endpoint: Endpoint[Any, Any], segments: tuple[str, ...] = ()) -> str:
    """Return the path of an endpoint with its placeholders replaced."""
    pieces = PLACEHOLDER.split(endpoint.path)
    if len(segments) != len(pieces) - 1:
        raise TypeError(f"{endpoint} takes {len(pieces) - 1} segments, {len(segments)} were given")
    return pieces[0] + "".join(
        f"{segment(ref)}{rest}" for ref, rest in zip(segments, pieces[1:], strict=True)
    )


def select(endpoint: Endpoint[Any, Any], query: dict[str, Any]) -> Query:
    """Return the parameters of a query string that have a value; raises TypeError for an unknown one."""
    for name in query:
        if name not in endpoint.query:
            raise TypeError(f"{endpoint} takes no parameter {name!r}")
    return {name: "true" if value is True else value for name, value in query.items() if value is not False}


def segment(ref: str) -> str:
    """Return an id, name or address as one segment of a path; CommandError for an empty one."""
    if not ref:
        raise CommandError("invalid_request", "cannot use an empty id or name")
    try:
        return quote(ref, safe="@")
    except UnicodeEncodeError as error:
        raise unsendable() from error


class Page(Protocol):
    """One page of a list."""

    @property
    def total(self) -> int:
        """The number of rows on all pages."""
        ...


PageType = TypeVar("PageType", bound=Page)
Row = TypeVar("Row")


def everything(read: Callable[[int], PageType], rows_of: Callable[[PageType], Sequence[Row]]) -> list[Row]:
    """Return the rows of all pages; `read` takes the offset of a page."""
    rows: list[Row] = []
    while True:
        page = read(len(rows))
        found = rows_of(page)
        rows += found
        if not found or len(rows) >= page.total:
            return rows
