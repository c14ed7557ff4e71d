"""Reply with bytes that are stored elsewhere, whole or in one range (RFC 9110, 13 and 14)."""

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Final

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from gatewayd.errors import GatewayError
from gatewayd.ingest.records import BlobContent

log = logging.getLogger(__name__)

NOT_MODIFIED: Final = 304
PARTIAL: Final = 206
PRECONDITION_FAILED: Final = 412
UNSATISFIABLE: Final = 416
UNAVAILABLE: Final = 503


class StoredBytesReply(web.StreamResponse):
    """Sends the content of a blob store, as `web.FileResponse` sends a file.

    The first bytes are read before the head is sent: a store that cannot be reached is answered with 503. If
    it fails later, the connection is closed, so that no client takes a part for the whole.
    """

    def __init__(self, content: BlobContent, headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self._content = content
        self._tag = f'"{content.tag}"'
        self._modified = datetime.fromtimestamp(int(content.modified_at), UTC)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the head and the bytes that the request asks for."""
        if self.prepared:
            return await super().prepare(request)
        self.headers[hdrs.ETAG] = self._tag
        self.last_modified = self._modified
        self.headers[hdrs.ACCEPT_RANGES] = "bytes"
        failed = self._failed_condition(request)
        if failed is not None:
            return await self._send(request, failed, 0, 0)
        start, end = 0, self._content.size
        try:
            wanted = request.http_range if self._is_range_valid(request) else slice(None)
        except ValueError:
            return await self._refuse_range(request)
        if wanted.start is not None or wanted.stop is not None:
            start, end, _ = wanted.indices(end)
            if start >= end:
                return await self._refuse_range(request)
            self.headers[hdrs.CONTENT_RANGE] = f"bytes {start}-{end - 1}/{self._content.size}"
            return await self._send(request, PARTIAL, start, end)
        return await self._send(request, self.status, start, end)

    def _failed_condition(self, request: web.BaseRequest) -> int | None:
        """Return the status of a condition that does not hold, None if all do."""
        if request.if_match is not None:
            if not any(tag.value in ("*", self._content.tag) and not tag.is_weak for tag in request.if_match):
                return PRECONDITION_FAILED
        elif request.if_unmodified_since is not None and self._modified > request.if_unmodified_since:
            return PRECONDITION_FAILED
        if request.if_none_match is not None:
            if any(tag.value in ("*", self._content.tag) for tag in request.if_none_match):
                return NOT_MODIFIED
        elif request.if_modified_since is not None and self._modified <= request.if_modified_since:
            return NOT_MODIFIED
        return None

    def _is_range_valid(self, request: web.BaseRequest) -> bool:
        """Return whether If-Range lets the range count."""
        given = request.headers.get(hdrs.IF_RANGE)
        return given is None or given == self._tag or request.if_range == self._modified

    async def _refuse_range(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self.headers[hdrs.CONTENT_RANGE] = f"bytes */{self._content.size}"
        return await self._send(request, UNSATISFIABLE, 0, 0)

    async def _send(
        self, request: web.BaseRequest, status: int, start: int, end: int
    ) -> AbstractStreamWriter | None:
        is_head = request.method == hdrs.METH_HEAD
        async with contextlib.aclosing(self._content.read(start, start if is_head else end)) as pieces:
            try:
                first = await anext(pieces, b"")
            except GatewayError as error:
                log.warning("cannot send a stored file: %s", error.full_message)
                self.headers.popall(hdrs.CONTENT_RANGE, None)
                self.set_status(UNAVAILABLE)
                self.content_length = 0
                return await super().prepare(request)
            self.set_status(status)
            if status == NOT_MODIFIED:
                self.headers.popall(hdrs.CONTENT_TYPE, None)
            else:
                self.content_length = end - start
            writer = await super().prepare(request)
            if first:
                await self._write_all(request, first, pieces)
        await super().write_eof()
        return writer

    async def _write_all(self, request: web.BaseRequest, first: bytes, pieces: AsyncIterator[bytes]) -> None:
        try:
            await self.write(first)
            async for piece in pieces:
                await self.write(piece)
        except GatewayError as error:
            log.warning("cannot send the rest of a stored file: %s", error.full_message)
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the object store failed") from error
