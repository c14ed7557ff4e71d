"""Transactions of writes on the control socket, with dry runs and audit lines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from gatewayctl.wire.base import Reply
from gatewayd.errors import invalid
from gatewayd.http.audit import write_change
from gatewayd.http.body import json_reply, large_reply
from gatewayd.http.context import request_id
from gatewayd.http.control.peer import PEER
from gatewayd.transactions import Transactor

MAX_PAGE_SIZE: Final = 1000


class WriteTransactions:
    """Atomic changes; with `?dry_run=true` a change is checked and rolled back."""

    def __init__(self, transactor: Transactor) -> None:
        self._transactor = transactor

    @asynccontextmanager
    async def block(
        self, request: web.Request, action: str, target: str, *, alone: str | None = None
    ) -> AsyncIterator[bool]:
        """Run the body in a transaction and audit it; yield whether it is a dry run, which rolls it back.

        `action` is noun and verb. `alone` is the name of a lock for changes that read before they write.
        """
        dry_run = is_set(request, "dry_run")
        if dry_run:
            async with self._transactor.rehearsal():
                yield True
            return
        async with self._transactor.exclusive(alone) if alone else self._transactor.transaction():
            yield False
        audit(request, action, target)


def audit(request: web.Request, action: str, target: str) -> None:
    """Write the audit line of a change: the peer, the action, the target and the noted values."""
    fields = {"by": request[PEER].name, "target": target, "request_id": request_id(request)}
    write_change(request, action, target, fields)


def author(request: web.Request) -> str:
    """Return the author of a change for the history of stored values: the unix user of the peer."""
    return f"control:{request[PEER].name}"


def is_set(request: web.Request, name: str) -> bool:
    """Return a boolean of the query string; invalid_request unless it is true or false."""
    value = request.query.get(name, "false")
    if value not in {"true", "false"}:
        raise invalid(f"cannot accept {name}: expected true or false", param=name)
    return value == "true"


def find_count(request: web.Request, name: str) -> int | None:
    """Return a positive number of the query string, None for an absent one."""
    value = request.query.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and int(value[:9]) > 0) or len(value) > 9:
        raise invalid(f"cannot accept {name}: expected a positive number", param=name)
    return int(value)


def find_page(request: web.Request) -> tuple[int, int]:
    """Return offset and limit of the query string; the limit is cut to the largest page."""
    limit = find_count(request, "limit") or MAX_PAGE_SIZE
    value = request.query.get("offset", "0")
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise invalid("cannot accept offset: expected a number", param="offset")
    return int(value), min(limit, MAX_PAGE_SIZE)


def control_reply(reply: Reply) -> web.Response:
    """Return a reply of the control protocol."""
    return json_reply(reply.model_dump(mode="json"))


async def large_control_reply(reply: Reply) -> web.StreamResponse:
    """Return a reply of the control protocol of any size."""
    return await large_reply(reply.model_dump(mode="json"))


def timestamp(seconds: int | None) -> str | None:
    """Return epoch seconds as RFC 3339 text in UTC; None for None and for 0 (never)."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
