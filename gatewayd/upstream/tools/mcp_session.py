"""Sessions with MCP servers: the only module that needs the MCP library, imported on first use."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED
from pydantic import BaseModel, ValidationError

from gatewayd import __version__
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.mcp_tools import SessionOptions

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Maximum number of bytes of one answer and of one event."""

IDLE_SECONDS: Final = 60.0
"""Time after the last call for which a session stays open."""

CONNECT_SECONDS: Final = 5.0
ENDING_SECONDS: Final = 5.0
"""Maximum time to end a session."""

MAX_PAGES: Final = 20
"""Maximum number of pages of a list of tools."""

FAILURES: Final = (
    mcp.MCPError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    ValidationError,
    OSError,
    RuntimeError,
    ValueError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)
"""The exceptions of the library if a server fails or does not speak MCP."""


class McpSession:
    """A `mcp_tools.ToolServerSession` in a task of its own: one task must open and close the library."""

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._client: mcp.Client | None = None
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._problem: GatewayError | None = None
        self._busy = 0
        self._is_retired = False

    @property
    def is_open(self) -> bool:
        """Whether the session can be used; False after any failure."""
        return not self._is_retired and not self._closing.is_set() and not self._ended.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        return self._busy == 0

    async def begin(self, tasks: TaskRegistry) -> None:
        """Connect and negotiate the protocol; raises GatewayError."""
        task_id = tasks.spawn(f"session with tool server {self._options.failures.server}", self._hold())
        try:
            async with TimeLimit(self._options.timeout):
                await self._opened.wait()
        except TimeoutError as error:
            raise self._overdue("it did not open a session", self._options.timeout) from error
        finally:
            if self._client is None:
                await tasks.stop(task_id)
        if self._client is None:
            raise self._problem or self._error("the session ended before it was open")

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools in the format of the protocol; raises GatewayError."""
        found: list[Mapping[str, Any]] = []
        cursor: str | None = None
        async with self._using(self._options.timeout) as client:
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += [_plain(tool) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    return found
        raise self._error(f"its list of tools has over {MAX_PAGES} pages")

    async def call(self, name: str, arguments: dict[str, Any], seconds: float | None) -> Any:
        """Return the result of a tool: its content items, or its structured object if there are none.

        Raises upstream_failed, with the text of the tool, if it reports an error.
        """
        async with self._using(seconds) as client:
            result = await client.call_tool(name, arguments)
        items = [_plain(item) for item in result.content]
        if result.is_error:
            text = "\n".join(str(item.get("text", "")) for item in items).strip()
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, self._options.failures.clean(text) or "the tool failed"
            )
        return items if items or result.structured_content is None else result.structured_content

    def close(self) -> None:
        """End the session; may be called again."""
        self._closing.set()

    async def _hold(self) -> None:
        """Hold the session open until it is closed, fails or is idle for too long."""
        try:
            async with asyncio.timeout(None) as limit, _connected(self._options) as client:
                self._client = client
                self._opened.set()
                await self._wait_until_idle()
                limit.reschedule(asyncio.get_running_loop().time() + ENDING_SECONDS)
        except* FAILURES as group:
            self._problem = self._failure(group)
        finally:
            self._ended.set()
            self._opened.set()

    async def _wait_until_idle(self) -> None:
        while not self._closing.is_set():
            busy = self._busy
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._closing.wait()
            except TimeoutError:
                if not busy and not self._busy:
                    return

    @asynccontextmanager
    async def _using(self, seconds: float | None) -> AsyncIterator[mcp.Client]:
        """Lend the client for at most `seconds`, and convert its errors."""
        if self._client is None or not self.is_open:
            raise self._problem or self._error("its session has ended")
        self._busy += 1
        try:
            async with TimeLimit(seconds):
                yield self._client
        except TimeoutError as error:
            self._is_retired = True
            raise self._overdue("it did not answer", seconds or 0) from error
        except FAILURES as error:
            self._is_retired = True
            raise await self._cause(error) from error
        finally:
            self._busy -= 1
            if self._is_retired and not self._busy:
                self.close()

    async def _cause(self, error: Exception) -> GatewayError:
        """Return the error of a call, or that of the session if the session broke."""
        if isinstance(error, mcp.MCPError) and error.code == CONNECTION_CLOSED:
            with suppress(TimeoutError):
                async with asyncio.timeout(ENDING_SECONDS):
                    await self._ended.wait()
            if self._problem is not None:
                return self._problem
        return self._failure(error)

    def _failure(self, error: BaseException) -> GatewayError:
        """Return the first failure of a group as a GatewayError."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return self._options.failures.error("no connection", ErrorKind.UPSTREAM_UNREACHABLE)
        return self._error(_sentence(error))

    def _error(self, sentence: str) -> GatewayError:
        return self._options.failures.error(sentence)

    def _overdue(self, sentence: str, seconds: float) -> GatewayError:
        return self._options.failures.error(f"{sentence} within {seconds:g} s", ErrorKind.TIMEOUT)


def open_session(options: SessionOptions) -> McpSession:
    """Return a session that is not connected yet."""
    # At INFO these libraries log every request and the ids of sessions.
    for name in ("httpx2", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return McpSession(options)


@asynccontextmanager
async def _connected(options: SessionOptions) -> AsyncIterator[mcp.Client]:
    headers = {
        "User-Agent": f"gatewayd/{__version__}",
        "Accept-Encoding": "identity",
        **options.headers,
    }
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    transport = _Bounded(httpx2.AsyncHTTPTransport(trust_env=False))
    async with httpx2.AsyncClient(
        headers=headers, timeout=timeout, transport=transport, trust_env=False
    ) as http:
        streams = streamable_http_client(options.url, http_client=http, max_sse_event_size=MAX_ANSWER_BYTES)
        information = mcp.Implementation(name="gatewayd", version=__version__)
        async with mcp.Client(streams, client_info=information, cache=None) as client:
            yield client


class _Bounded(httpx2.AsyncBaseTransport):
    """Refuses answers that are too large, and compressed ones, which could become too large."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response = await self._inner.handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("its answer is compressed", request=request)
        is_stream = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.StreamError(f"its answer is over {MAX_ANSWER_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def _plain(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _sentence(error: BaseException) -> str:
    """Return the sentence for a failure; messages of the library about malformed answers are replaced."""
    if isinstance(error, mcp.MCPError):
        return f"it answered with error {error.code} ({error.message})"
    if isinstance(error, ValidationError):
        return "its answer is not MCP"
    return str(error) or type(error).__name__
