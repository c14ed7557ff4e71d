"""Several keys of one provider, used in turn; one that the provider refuses rests for a bounded time."""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final, Self

import orjson

from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.refusal_reasons import RefusalReason, classify, names_key
from gatewayd.upstream.http.client import (
    FollowedResponse,
    TransportError,
    UpstreamClient,
    UpstreamResponse,
)
from gatewayd.upstream.sources.failures import told_wait

log = logging.getLogger(__name__)

MAX_EXAMINED_BYTES: Final = 16 * 1024
"""Maximum number of bytes of a refusal that tell whether it is about the key, or how long it rests."""

EXAMINED_STATUSES: Final = frozenset({403, 429})

REST_SECONDS: Final = {401: 600.0, 402: 600.0, 403: 60.0, 429: 60.0}
"""Rests of a key by the status of its refusal; one of 429 is shorter if the provider says so, and that of a
402 if its credit or the quota of its day is used up."""

KeyHeaders = Callable[[str], Mapping[str, str]]
"""Returns the headers that carry a key."""


class KeyRing:
    """The keys of one provider in the order of the settings; `clock` counts seconds."""

    def __init__(self, keys: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = tuple(keys)
        self._clock = clock
        self._next = 0
        self._resting: dict[str, float] = {}

    def take(self) -> str:
        """Return the next key that does not rest, or the one whose rest ends first."""
        now = self._clock()
        for place in range(len(self._keys)):
            key = self._keys[(self._next + place) % len(self._keys)]
            if self._resting.get(key, 0.0) <= now:
                self._next = (self._next + place + 1) % len(self._keys)
                return key
        return min(self._keys, key=lambda key: self._resting[key])

    def rest(self, key: str, seconds: float) -> bool:
        """Let a key rest; return whether another one does not."""
        now = self._clock()
        self._resting[key] = now + seconds
        return any(self._resting.get(each, 0.0) <= now for each in self._keys)

    def number(self, key: str) -> int:
        """Return the place of a key, from 1: logs name it by that."""
        return self._keys.index(key) + 1


class ExaminedResponse:
    """A response whose start has been read; its reader gets it all the same."""

    def __init__(self, response: UpstreamResponse, start: bytes) -> None:
        self._response = response
        self._start = start
        self.status = response.status
        self.headers = response.headers
        self.raw_headers = response.raw_headers

    @classmethod
    async def read_start(cls, response: UpstreamResponse) -> Self:
        """Read the start of a refusal, or less if it breaks off."""
        start = b""
        try:
            while len(start) < MAX_EXAMINED_BYTES and (part := await response.read_some()):
                start += part
        except TransportError:
            response.close()
        return cls(response, start)

    @property
    def is_about_key(self) -> bool:
        """Whether the provider says that it refuses the key, not the request."""
        answer = self._answer()
        return answer is not None and names_key(answer, error_message_in(answer) or "")

    @property
    def rest_seconds(self) -> float:
        """How long the key of a refusal rests."""
        seconds = REST_SECONDS[self.status]
        if self.status != 429:
            return seconds
        answer = self._answer()
        if classify(answer, error_message_in(answer) or "", self.status) is RefusalReason.NO_CREDIT:
            return REST_SECONDS[402]
        told = told_wait(self.headers, answer)
        return seconds if told is None else min(seconds, float(told))

    def _answer(self) -> object:
        try:
            return orjson.loads(self._start)
        except orjson.JSONDecodeError:
            return None

    def peek(self) -> bytes | None:
        """Return None: the body is read already, in part."""
        return None

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises TransportError."""
        start, self._start = self._start, b""
        return start + await self._response.read(limit - len(start))

    async def read_some(self) -> bytes:
        """Return the start, then what follows; raises TransportError."""
        start, self._start = self._start, b""
        return start or await self._response.read_some()

    async def finish(self) -> None:
        """Reuse the connection if the body ends at once, else close it."""
        await self._response.finish()

    def close(self) -> None:
        """Close the connection at once unless the body is complete."""
        self._response.close()


class KeyedClient:
    """An `UpstreamClient` that sends each request with the next key.

    A request that a key is refused for is sent again with another one, because the provider did nothing. A
    refusal with 403 that does not name the key is about the request.
    """

    def __init__(
        self, provider: str, client: UpstreamClient, keys: Sequence[str], headers: KeyHeaders
    ) -> None:
        self._provider = provider
        self._client = client
        self._ring = KeyRing(keys)
        self._headers = {key: headers(key) for key in keys}

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> UpstreamResponse:
        """Send a request with these headers and those of a key; raises TransportError."""
        for _ in self._headers:
            key = self._ring.take()
            response = await self._client.request(method, url, {**headers, **self._headers[key]}, body)
            if response.status in EXAMINED_STATUSES:
                response = await ExaminedResponse.read_start(response)
                if response.status == 403 and not response.is_about_key:
                    # Every key would be refused, and some providers charge for each attempt.
                    return response
            if response.status not in REST_SECONDS or not self._rest(key, response):
                return response
            response.close()
        return await self._client.request(method, url, {**headers, **self._headers[self._ring.take()]}, body)

    def post_at_once(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None], limit: int
    ) -> UpstreamResponse | None:
        """Return None: a refusal of a key has another request follow."""
        return None

    def post_followed(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None]
    ) -> FollowedResponse | None:
        """Return None: a refusal of a key has another request follow."""
        return None

    async def upload(
        self,
        url: str,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes, None],
        length: int | None = None,
    ) -> UpstreamResponse:
        """POST a body in pieces with the next key; as it cannot be sent again, a refusal is the answer."""
        key = self._ring.take()
        response = await self._client.upload(url, {**headers, **self._headers[key]}, pieces, length)
        if response.status in EXAMINED_STATUSES:
            response = await ExaminedResponse.read_start(response)
            if response.status == 403 and not response.is_about_key:
                return response
        if response.status in REST_SECONDS:
            self._rest(key, response)
        return response

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _rest(self, key: str, response: UpstreamResponse) -> bool:
        seconds = REST_SECONDS[response.status]
        if isinstance(response, ExaminedResponse):
            seconds = response.rest_seconds
        others = self._ring.rest(key, seconds)
        log.warning(
            "key of a provider refused",
            extra={
                "provider": self._provider,
                "key_number": self._ring.number(key),
                "status": response.status,
                "rests_seconds": seconds,
            },
        )
        return others
