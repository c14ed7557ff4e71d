"""The minimum rate of a peer: how slowly a body may come, and how slowly an answer may be taken."""

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import StreamReader, web

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import GatewayError, invalid


@dataclass(frozen=True, slots=True)
class MinimumRate:
    """The least bytes a second, and for how many seconds a peer may stay below it.

    Each byte extends the time that is left by its share of a second, up to `seconds` (as `MinRate` of
    mod_reqtimeout, but that no peer saves up more than that). With 0 bytes a second each byte extends it to
    `seconds`: silence alone counts (as client_body_timeout and send_timeout of nginx).
    """

    bytes_per_second: int
    seconds: float

    def __str__(self) -> str:
        if not self.bytes_per_second:
            return f"nothing for {self.seconds:g} s"
        return f"less than {self.bytes_per_second} bytes a second for {self.seconds:g} s"


BODY_RATE: Final = MinimumRate(1024, 30.0)
SEND_RATE: Final = MinimumRate(1024, 30.0)


@dataclass(frozen=True, slots=True)
class MinimumRates:
    """The minimum rates of one application: for the bodies of requests, and for answers."""

    body: MinimumRate = BODY_RATE
    send: MinimumRate = SEND_RATE


RATES: Final = web.AppKey("rates", MinimumRates)


class RateCredit:
    """How long a peer may go on: `left` seconds."""

    __slots__ = ("_rate", "left")

    def __init__(self, rate: MinimumRate) -> None:
        self._rate = rate
        self.left = rate.seconds

    def note(self, waited: float, size: int) -> None:
        """Note that `size` bytes came after a wait of so many seconds."""
        rate = self._rate
        if not size:
            earned = 0.0
        elif rate.bytes_per_second:
            earned = size / rate.bytes_per_second
        else:
            earned = rate.seconds
        self.left = min(max(self.left - waited + earned, 0.0), rate.seconds)


class BodyReader:
    """Reads the body of a request at its minimum rate. Only the time in which bytes are awaited counts."""

    __slots__ = ("_content", "_credit", "_rate")

    def __init__(self, content: StreamReader, rate: MinimumRate) -> None:
        self._content = content
        self._rate = rate
        self._credit = RateCredit(rate)

    async def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all that is there; none at the end.

        Raises invalid_request (408) below the minimum rate.
        """
        content = self._content
        while True:
            began, before = asyncio.get_running_loop().time(), content.total_bytes
            try:
                async with TimeLimit(self._credit.left):
                    data = await (content.readany() if size < 0 else content.read(size))
            except TimeoutError:
                if content.total_bytes == before and not content.is_eof():
                    raise self._too_slow() from None
                # A daemon that was held up finds bytes that came in time.
                self._credit.note(self._credit.left, 0)
                continue
            self._credit.note(asyncio.get_running_loop().time() - began, len(data))
            return data

    def at_eof(self) -> bool:
        """Tell whether nothing is left."""
        return self._content.at_eof()

    def _too_slow(self) -> GatewayError:
        return invalid(f"cannot read the body: it came too slowly, {self._rate}", code="body_timeout")


def body_reader(request: web.Request) -> BodyReader:
    """Return what reads the body of a request at the rate of its application."""
    return BodyReader(request.content, request.app.get(RATES, MinimumRates()).body)
