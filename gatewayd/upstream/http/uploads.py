"""Requests whose body is sent in pieces: the body and the wait for the answer run side by side."""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing

from gatewayd.upstream.http.connection import ProviderConnection
from gatewayd.upstream.http.request_head import RequestHead
from gatewayd.upstream.http.response import ProviderResponse


async def exchange_upload(
    connection: ProviderConnection,
    response: ProviderResponse,
    head: RequestHead,
    pieces: AsyncGenerator[bytes, None],
    length: int | None,
) -> None:
    """Send a request in pieces until its answer arrives; raises TransportError and the errors of `pieces`.

    `length` is the number of all bytes; None sends chunks (RFC 9112, 7.1). A refusal before the end of the
    body ends the upload.
    """
    # The request cannot be repeated, so a closed connection is a failure at any time.
    response.retry_until = -math.inf
    connection.begin_upload(response, head.open(length))
    try:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(connection, response, pieces, is_chunked=length is None))
            await response.arrived()
            if response.status >= 300:
                sending.cancel()
    except ExceptionGroup as failures:
        response.close()
        raise failures.exceptions[0] from failures


async def _send(
    connection: ProviderConnection,
    response: ProviderResponse,
    pieces: AsyncGenerator[bytes, None],
    *,
    is_chunked: bool,
) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            part = b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece
            if piece and not await connection.upload(response, part):
                return
    if not is_chunked or await connection.upload(response, b"0\r\n\r\n"):
        connection.end_upload(response)
