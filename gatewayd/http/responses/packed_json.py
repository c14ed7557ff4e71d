"""JSON replies that are encoded for the page: the lists that it asks for at its start."""

import asyncio
from typing import Final

from aiohttp import hdrs, web

from gatewayd.http.origins import FETCH_SITE
from gatewayd.http.responses.content_codings import IDENTITY, choose_coding, encode

MIN_BYTES: Final = 1000
"""A smaller reply is one packet either way."""

MAX_INLINE_BYTES: Final = 16 * 1024
"""Replies up to here are encoded in half a millisecond; larger ones in a thread."""


async def packed(request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
    """Return a reply, encoded if it is one piece and goes to the page itself (RFC 9110, 8.4).

    Programs get it as it is: to them a quick answer is worth more than a small one. A reply with a secret
    must not come here, as its size would tell of its content.
    """
    if request.headers.get(FETCH_SITE) != "same-origin" or not isinstance(reply, web.Response):
        return reply
    data = reply.body
    coding = choose_coding(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
    if not isinstance(data, bytes) or len(data) < MIN_BYTES or coding == IDENTITY:
        return reply
    if len(data) <= MAX_INLINE_BYTES:
        reply.body = encode(data, coding, is_quick=True)
    else:
        reply.body = await asyncio.to_thread(encode, data, coding, is_quick=True)
    reply.headers[hdrs.CONTENT_ENCODING] = coding
    reply.headers[hdrs.VARY] = f"{hdrs.ACCEPT_ENCODING}, {FETCH_SITE}"
    return reply
