"""Bodies of replies of the Responses protocol, examined before they pass."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from gatewayd import json_decoder
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.errors import GatewayError
from gatewayd.json_decoder import JsonLimits
from gatewayd.pipeline.filters.streams import MAX_WHOLE_BYTES
from gatewayd.text import MAX_ANSWER_DEPTH

FINAL_EVENTS: Final = (
    b"event: response.completed\n",
    b"event: response.incomplete\n",
    b"event: response.failed\n",
)
"""First lines of the events that end a stream."""

_LIMITS: Final = JsonLimits(
    containers=50_000, values=500_000, depth=MAX_ANSWER_DEPTH, has_exact_integers=False
)
"""Limits of a reply that is examined."""


async def examined(
    answer: ForwardedAnswer, examine: Callable[[bytes], Awaitable[None]]
) -> AsyncGenerator[bytes, None]:
    """Yield an unstreamed body after `examine` had the whole of it; one over 32 MiB passes without that."""
    buffered: list[bytes] = []
    size = 0
    async with aclosing(answer) as reads:
        async for read in reads:
            buffered.append(read)
            size += len(read)
            if size > MAX_WHOLE_BYTES:
                break
        else:
            await examine(b"".join(buffered))
        for each in buffered:
            yield each
        async for read in reads:
            yield read


async def decode_reply(raw: bytes) -> Any:
    """Return the value of a body or of the data of an event; None if it is invalid or over the limits."""
    try:
        return await json_decoder.decode(raw.strip(), _LIMITS)
    except GatewayError:
        return None
