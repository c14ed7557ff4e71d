"""Requests with the header Idempotency-Key: the key, the fingerprint of a request, and repeated replies.

See gatewayd-dialects(7), IDEMPOTENCY.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from aiohttp import web

from gatewayd import ids
from gatewayd.errors import invalid
from gatewayd.http.context import actor
from gatewayd.resumption.idempotency import IdempotentReplies, check_same
from gatewayd.resumption.records import RequestKey, RequestRecord, StoredReply

KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotent-Replayed"
MAX_KEY_CHARACTERS: Final = 255

_KEY: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\["\\])+)"')

KEPT_HEADERS: Final = frozenset({"content-type", "cache-control", "x-gateway-warning"})
"""Headers of a reply that are stored with it; the others belong to one request."""

FormReply = Callable[[], Awaitable[tuple[web.Response, str]]]
"""Does an upload and returns its reply with the fingerprint of what was sent."""


def find_key(request: web.Request) -> str | None:
    """Return the key of a request; None without one.

    A key is a quoted string, as the Internet draft has it, or the bare text that most programs send. Raises
    invalid_request for a malformed one, and for two.
    """
    values = request.headers.getall(KEY_HEADER, ())
    if not values:
        return None
    quoted = _QUOTED.fullmatch(values[0])
    value = quoted[1] if quoted else values[0]
    is_half = not quoted and value.startswith('"')
    if is_half or len(values) > 1 or len(value) > MAX_KEY_CHARACTERS or not _KEY.fullmatch(value):
        raise invalid(
            f"cannot accept {KEY_HEADER}: expected one text of 1 to {MAX_KEY_CHARACTERS} ASCII characters",
            param=KEY_HEADER,
        )
    return value


def request_key(user_id: str, key: str, what: str, *parts: bytes) -> RequestKey:
    """Return the key of a user with the fingerprint of a request: `what` is asked for, and its parts."""
    return RequestKey(user_id, ids.digest(f"{user_id}\n{key}"), fingerprint(what, *parts))


def fingerprint(what: str, *parts: bytes) -> str:
    """Return the digest of a request; the limits of its parts count."""
    found = hashlib.sha256(what.encode())
    for part in parts:
        found.update(b"\n%d\n" % len(part))
        found.update(part)
    return found.hexdigest()


def replayed_headers(reply: StoredReply) -> Mapping[str, str]:
    """Return the stored headers of a reply, marked when it is a repeated one."""
    return {**reply.headers, REPLAYED_HEADER: "true"} if reply.is_repeated else reply.headers


class IdempotentWrites:
    """Handlers that change data and are repeated without changing it again."""

    def __init__(self, replies: IdempotentReplies) -> None:
        self._replies = replies

    async def run(
        self, request: web.Request, what: str, body: bytes, work: Callable[[], Awaitable[web.Response]]
    ) -> web.Response:
        """Return the reply of `work`, or the stored one of the same key; without a key just do it.

        Raises the errors of `IdempotentReplies.begin`, and invalid_request (422) for a key of another
        request.
        """
        sent = find_key(request)
        if sent is None:
            return await work()
        key = request_key(actor(request).user_id, sent, what, body)
        known = await self._replies.begin(key)
        if known is not None:
            return repeated(known, key.fingerprint)

        async def with_fingerprint() -> tuple[web.Response, str]:
            return await work(), key.fingerprint

        return await self.finish(key, with_fingerprint)

    async def begin(self, request: web.Request) -> tuple[RequestKey | None, RequestRecord | None]:
        """Return the reserved key of a request whose body is read later, and the stored request of this key.

        Both are None without a key. `finish` has to follow a reservation, unless a request is stored.
        """
        sent = find_key(request)
        if sent is None:
            return None, None
        key = request_key(actor(request).user_id, sent, "")
        return key, await self._replies.begin(key)

    async def finish(self, key: RequestKey, work: FormReply) -> web.Response:
        """Do a reserved request and store its reply; a failure releases the key."""
        is_done = False
        try:
            reply, found = await work()
            is_done = True
        finally:
            if not is_done:
                await self._replies.release(key)
        await self._replies.complete(replace(key, fingerprint=found), _stored(reply))
        return reply


def repeated(known: RequestRecord, found: str) -> web.Response:
    """Return the stored reply; raises invalid_request (422) if the fingerprint is another one."""
    reply = check_same(known, found)
    return web.Response(body=reply.text.encode(), status=reply.status, headers=replayed_headers(reply))


def _stored(reply: web.Response) -> StoredReply:
    body = reply.body if isinstance(reply.body, bytes) else b""
    headers = {str(name): value for name, value in reply.headers.items() if name.lower() in KEPT_HEADERS}
    return StoredReply(reply.status, headers, body.decode())
