"""One provider's requests and answers: JSON out, checked JSON or chunks in, failures as `GatewayError`."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import orjson

from gatewayd.catalog.replies import Chunk
from gatewayd.errors import GatewayError, Kind, invalid
from gatewayd.upstream.client import TransportError, UpstreamClient, UpstreamResponse, open_client
from gatewayd.upstream.config import ProviderConfig
from gatewayd.upstream.failures import Failures
from gatewayd.upstream.forwarded import ForwardedReply
from gatewayd.upstream.sse import FramingError, check_depth, error_of

MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer that is read as a whole."""

MAX_REFUSAL = 64 * 1024
"""Bytes of an error's body that are looked at."""


class StreamReader(Protocol):
    """Turns a provider's stream into chunks; pure."""

    @property
    def error(self) -> object:
        """The error object that the provider sent in its stream, a FramingError for what is none, or None."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether nothing of interest can follow."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer came to its end."""
        ...

    def feed(self, read: bytes) -> Chunk | None:
        """Take one read; raises FramingError."""
        ...

    def finish(self) -> Chunk | None:
        """Take the end of the stream; raises FramingError."""
        ...


Whole = Callable[[dict[str, Any]], Chunk]
"""Takes an answer that came whole although a stream was asked for; raises FramingError."""


class Exchange:
    """Sends requests to one provider; `headers` are all that it learns of us beside the body."""

    def __init__(
        self, config: ProviderConfig, headers: Mapping[str, str], client: UpstreamClient | None = None
    ) -> None:
        self.failures = Failures(config.name, config.key)
        self._base = config.base_url.rstrip("/")
        self._headers = dict(headers)
        self._client = client or open_client(
            config.timeouts, connections=config.connections, socket_path=config.socket_path
        )

    async def get(self, path: str) -> dict[str, Any] | list[Any]:
        """Return the JSON object or list at `path`."""
        async with self._open("GET", path, None) as response:
            return self._parse(response, await response.read(MAX_ANSWER))[1]

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """Send a JSON body and return the JSON object that comes back, as bytes and decoded."""
        async with self._open("POST", path, body) as response:
            return await self._object(response)

    async def chunks(
        self, path: str, body: Mapping[str, Any], reader: StreamReader, whole: Whole | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Send a JSON body and yield the chunks of the stream that comes back.

        Closing the generator, or cancelling the task that waits for it, closes the connection at once.
        """
        async with self._open("POST", path, body) as response:
            media_type = _media_type(response)
            if media_type == "text/html":
                raise self.failures.from_answer(response.status, response.headers, b"<")
            if media_type == "application/json" and whole is not None:
                _, answer = await self._object(response)
                yield whole(answer)
                return
            while read := await response.read_some():
                chunk = reader.feed(read)
                if chunk is not None:
                    yield chunk
                self._check(reader)
                if reader.is_done:
                    await response.finish()
                    return
            chunk = reader.finish()
            if chunk is not None:
                yield chunk
            self._check(reader)
            if not reader.is_complete:
                raise self.failures.broken("its answer ended before it was complete")

    async def forward(self, method: str, path: str, body: Mapping[str, Any] | None) -> ForwardedReply:
        """Send a JSON body, or none, and return the answer with its body unread; over 299 raises."""
        try:
            response = await self._send(method, path, body)
            await self._check_status(response)
        except TransportError as error:
            raise self.failures.from_transport(error) from error
        return ForwardedReply(response, self.failures)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> UpstreamResponse:
        data = None if body is None else _encode(body)
        headers = self._headers if data is None else {**self._headers, "Content-Type": "application/json"}
        return await self._client.request(method, self._base + path, headers, data)

    async def _check_status(self, response: UpstreamResponse) -> None:
        if 200 <= response.status < 300:
            return
        try:
            refusal = await _read_start(response, MAX_REFUSAL)
        finally:
            response.close()
        raise self.failures.from_answer(response.status, response.headers, refusal)

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[UpstreamResponse]:
        try:
            response = await self._send(method, path, body)
            try:
                await self._check_status(response)
                yield response
            finally:
                response.close()
        except TransportError as error:
            raise self.failures.from_transport(error) from error
        except FramingError as error:
            raise self.failures.broken(str(error)) from error

    async def _object(self, response: UpstreamResponse) -> tuple[bytes, dict[str, Any]]:
        raw, answer = self._parse(response, await response.read(MAX_ANSWER))
        if not isinstance(answer, dict):
            raise self.failures.broken("its answer is not a JSON object")
        error = error_of(answer)
        if error is not None:
            raise self.failures.from_event(error)
        return raw, answer

    def _check(self, reader: StreamReader) -> None:
        if isinstance(reader.error, FramingError):
            raise reader.error
        if reader.error is not None:
            raise self.failures.from_event(reader.error)

    def _parse(self, response: UpstreamResponse, raw: bytes) -> tuple[bytes, dict[str, Any] | list[Any]]:
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            if not raw.strip() or _media_type(response) == "text/html":
                raise self.failures.from_answer(response.status, response.headers, raw) from error
            raise self.failures.broken("its answer is not JSON") from error
        if not isinstance(answer, dict | list):
            raise self.failures.broken("its answer is not a JSON object")
        check_depth(raw, answer)
        return raw, answer


def objects(answer: object, name: str, failures: Failures) -> list[dict[str, Any]]:
    """Return the objects of a listing, `{name: [...]}` or a bare list; other shapes are a failure."""
    found = answer.get(name) if isinstance(answer, dict) else answer
    if not isinstance(found, list):
        raise failures.broken(f"its list of models has no {name!r}")
    return [item for item in found if isinstance(item, dict)]


def lacks_listing(error: GatewayError) -> bool:
    """Whether a provider that refused its list of models has no such list."""
    return error.kind is Kind.NOT_FOUND


async def _read_start(response: UpstreamResponse, limit: int) -> bytes:
    """Return at most about `limit` bytes of a refusal; what broke off is as good as what came."""
    body = b""
    try:
        while len(body) < limit and (part := await response.read_some()):
            body += part
    except TransportError:
        return body
    return body


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise invalid(f"cannot send the request as JSON: {error}") from error


def _media_type(response: UpstreamResponse) -> str:
    return response.headers.get("Content-Type", "").split(";", 1)[0].strip().lower()
