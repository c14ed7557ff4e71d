"""What the methods of the client have in common: how a thing is read, and how it is written."""

from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from gatewayctl.failures import unsendable
from gatewayctl.transport import Transport
from gatewayctl.wire.base import Request

ReplyType = TypeVar("ReplyType", bound=BaseModel)


class Asking:
    """Asks the daemon behind a control socket; every failure is a `CommandError`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _read(self, path: str, reply: type[ReplyType], **query: str | int | None) -> ReplyType:
        return self._transport.call("GET", path, reply, query)

    def _write(
        self, method: str, path: str, reply: type[ReplyType], request: Request | None, dry_run: bool
    ) -> ReplyType:
        return self._transport.call(method, path, reply, {"dry_run": "true" if dry_run else None}, request)


def segment(ref: str) -> str:
    """Return an id, name or address as one segment of a path."""
    try:
        return quote(ref, safe="@")
    except UnicodeEncodeError as error:
        raise unsendable() from error
