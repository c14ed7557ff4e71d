"""Uploads with the header Idempotency-Key, whose content is hashed as it comes.

See gatewayd-dialects(7), IDEMPOTENCY.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Protocol

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.idempotency import IdempotentWrites, repeated
from gatewayd.http.uploads import UploadForm


class ContentHash(Protocol):
    """A running hash of a file."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""
        ...

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""
        ...


UploadAction = Callable[[ContentHash | None], Awaitable[tuple[web.Response, str]]]
"""Stores an upload; returns its reply, and its fingerprint, "" without a hash."""


async def upload_once(
    writes: IdempotentWrites | None,
    request: web.Request,
    accept: UploadAction,
    read: Callable[[], Awaitable[str]],
) -> web.Response:
    """Return the reply of `accept`, or the stored one of the same key.

    `read` reads the upload without storing it, and returns its fingerprint.
    """
    if writes is None:
        return (await accept(None))[0]
    key, known = await writes.begin(request)
    if known is not None:
        return repeated(known, await read())
    if key is None:
        return (await accept(None))[0]
    return await writes.finish(key, partial(accept, hashlib.sha256()))


async def hashed_stream(form: UploadForm, content: ContentHash | None) -> AsyncIterator[bytes]:
    """Yield the bytes of the file of a form, which `content` gets, too."""
    async for piece in form.stream():
        if content is not None:
            content.update(piece)
        yield piece


async def read_content(form: UploadForm, limit: int) -> ContentHash:
    """Return the hash of the file of a form; raises too_large over the limit in bytes, 0 for none."""
    content, size = hashlib.sha256(), 0
    async for piece in hashed_stream(form, content):
        size += len(piece)
        if 0 < limit < size:
            raise GatewayError(ErrorKind.TOO_LARGE, "cannot accept file: it is over the limit", param="file")
    return content
