"""Minimum rates at which a peer must send a body and read an answer."""

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import StreamReader, web

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import GatewayError, invalid


@dataclass(frozen=True, slots=True)
class MinimumRate:
    """Minimum bytes a second, and the seconds that a peer may stay below them.

    Each byte extends the remaining time by its share of a second, up to `seconds` (as `MinRate` of
    mod_reqtimeout, with this upper bound). With 0 bytes a second each byte resets the time to `seconds`, so
    that only silence counts (as client_body_timeout and send_timeout of nginx).
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
    """The minimum rates of one application, for request bodies and for answers."""

    body: MinimumRate = BODY_RATE
    send: MinimumRate = SEND_RATE


RATES: Final = web.AppKey("rates", MinimumRates)


class RateCredit:
    """The time that a peer has left: `left` seconds."""

    __slots__ = ("_rate", "left")

    def __init__(self, rate: MinimumRate) -> None:
        self._rate = rate
        self.left = rate.seconds

    def note(self, waited: float, size: int) -> None:
        """Count `size` bytes that arrived after a wait of `waited` seconds."""
        rate = self._rate
        if not size:
            earned = 0.0
        elif rate.bytes_per_second:
            earned = size / rate.bytes_per_second
        else:
            earned = rate.seconds
        self.left = min(max(self.left - waited + earned, 0.0), rate.seconds)


class BodyReader:
    """Reader of a request body with a minimum rate. Only the time spent waiting for bytes counts."""

    __slots__ = ("_content", "_credit", "_rate")

    def __init__(self, content: StreamReader, rate: MinimumRate) -> None:
        self._content = content
        self._rate = rate
        self._credit = RateCredit(rate)

    async def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all available ones; none at the end.

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
                # After a delay of the event loop the bytes may have arrived in time.
                self._credit.note(self._credit.left, 0)
                continue
            self._credit.note(asyncio.get_running_loop().time() - began, len(data))
            return data

    def at_eof(self) -> bool:
        """Return whether the body has ended."""
        return self._content.at_eof()

    def _too_slow(self) -> GatewayError:
        return invalid(f"cannot read the body: it came too slowly, {self._rate}", code="body_timeout")


def body_reader(request: web.Request) -> BodyReader:
    """Return the reader of a request body, with the rate of its application."""
    return BodyReader(request.content, request.app.get(RATES, MinimumRates()).body)
