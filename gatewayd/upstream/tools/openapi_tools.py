"""Tools of HTTP APIs with an OpenAPI description."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gatewayd import json_decoder
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.json_decoder import JsonLimits
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.plugins.tool_results import ServerReply
from gatewayd.text import MAX_ANSWER_DEPTH
from gatewayd.upstream.tools.failures import ServerFailures, failures_of
from gatewayd.upstream.tools.identity import IdentityHeaders, fill_placeholders, without_placeholders
from gatewayd.upstream.tools.openapi_operations import (
    BODY,
    OpenApiOperation,
    ServerDescription,
    read_description,
    request_target,
)
from gatewayd.upstream.tools.openapi_schemas import SchemaError
from gatewayd.upstream.tools.requests import ServerRequest, ServerResponse, send_request, server_origin

DESCRIPTION_LIMITS: Final = JsonLimits(250_000, 1_000_000, MAX_ANSWER_DEPTH, has_exact_integers=False)
RESULT_LIMITS: Final = JsonLimits(50_000, 500_000, MAX_ANSWER_DEPTH, has_exact_integers=False)
"""Limits of the JSON of a description and of a result."""

MAX_DESCRIPTION_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of a description."""

MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
"""Maximum number of bytes of the result of a function."""

FRESH_SECONDS: Final = 30.0
"""Time for which a description is cached before it is revalidated."""

FAILED_SECONDS: Final = 5.0
"""Time for which a failure is cached, so that requests do not wait one by one for a server that is down."""

MAX_KNOWN_SERVERS: Final = 256
"""Maximum number of servers with a cached description."""

_NOT_MODIFIED: Final = 304


@dataclass(slots=True)
class _CacheEntry:
    """Cache entry of one server; times are loop times."""

    server: ToolServer
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    description: ServerDescription | None = None
    conditions: dict[str, str] = field(default_factory=dict)
    at: float = 0.0
    failure: GatewayError | None = None
    failed_at: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenApiTool:
    """One operation as a `plugins.servers.records.Tool`; `timeout` is in seconds, None for no limit."""

    server: ToolServer
    operation: OpenApiOperation
    timeout: float | None
    identity: IdentityHeaders | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.operation.name

    @property
    def source_id(self) -> str:
        """The id of the server in `tool_ids`."""
        return self.server.tool_id

    @property
    def spec(self) -> dict[str, Any]:
        """The specification of the function."""
        return self.operation.spec

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> ServerReply:
        """Return the answer of the server: its JSON or else its text, and its headers.

        Raises upstream_failed with `HTTP error <status>: <body>` for a status of 400 or more.
        """
        operation = self.operation
        headers = with_authorization(self.server, fill_placeholders(self.server.headers, scope))
        if self.identity is not None:
            headers |= self.identity.for_tool(scope)
        body = None
        if operation.has_body:
            headers["Content-Type"] = "application/json"
            body = _encoded(arguments.get(BODY) if operation.is_bare else arguments, self.name)
        url = self.server.url.rstrip("/") + request_target(operation, arguments)
        failures = failures_of(self.server)
        timeout = self.server.timeout or self.timeout
        reply = await send_request(
            ServerRequest(operation.method, url, headers, body, timeout, MAX_RESULT_BYTES), failures
        )
        return await _read(reply, failures)


class OpenApiTools:
    """Lists the functions of OpenAPI servers; descriptions are cached until they change.

    `data_timeout` is for a description, `call_timeout` for a call of a server without a time-out of its own
    (None: no limit), in seconds.
    """

    def __init__(
        self, data_timeout: float, call_timeout: float | None, identity: IdentityHeaders | None
    ) -> None:
        self._data_timeout = data_timeout
        self._call_timeout = call_timeout
        self._identity = identity
        self._known: dict[str, _CacheEntry] = {}

    async def tools(self, server: ToolServer) -> Sequence[OpenApiTool]:
        """Return the functions of a server; raises GatewayError that names the server."""
        known = self._known.get(server.id)
        if known is None or known.server != server:
            if len(self._known) >= MAX_KNOWN_SERVERS:
                self._known.clear()
            known = self._known[server.id] = _CacheEntry(server)
        async with known.lock:
            description = await self._cached(known)
        return [
            OpenApiTool(server, operation, self._call_timeout, self._identity)
            for operation in description.operations
        ]

    async def ask(self, server: ToolServer) -> ServerDescription:
        """Fetch the present description of a server, without the cache."""
        return await self._fetch(_CacheEntry(server))

    async def _cached(self, known: _CacheEntry) -> ServerDescription:
        now = asyncio.get_running_loop().time
        failure = known.failure
        if failure is not None and now() - known.failed_at < FAILED_SECONDS:
            raise GatewayError(failure.kind, failure.message) from failure
        if known.description is not None and now() - known.at < FRESH_SECONDS:
            return known.description
        try:
            known.description = await self._fetch(known)
        except GatewayError as error:
            known.failure, known.failed_at = error, now()
            raise
        known.failure, known.at = None, now()
        return known.description

    async def _fetch(self, known: _CacheEntry) -> ServerDescription:
        server, failures = known.server, failures_of(known.server)
        if server.spec is not None:
            return await _described(server.spec, server, failures)
        url = description_url(server)
        headers = {"Accept": "application/json"}
        if server_origin(url) == server_origin(server.url):
            headers |= with_authorization(server, without_placeholders(server.headers))
        if known.description is not None:
            headers |= known.conditions
        asked = ServerRequest("GET", url, headers, timeout=self._data_timeout, limit=MAX_DESCRIPTION_BYTES)
        reply = await send_request(asked, failures)
        if reply.status == _NOT_MODIFIED and known.description is not None:
            return known.description
        if reply.status != 200:
            raise failures.error(f"its description {url} was answered with status {reply.status}")
        known.conditions = _conditions(reply)
        return await _described(reply.body, server, failures)


def description_url(server: ToolServer) -> str:
    """Return the URL of the description of a server; `path` may be a whole URL."""
    if "://" in server.path:
        return server.path
    return f"{server.url.rstrip('/')}/{server.path.lstrip('/')}"


def with_authorization(server: ToolServer, headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with the key of a server, unless they contain credentials already."""
    if not server.key or any(name.lower() == "authorization" for name in headers):
        return dict(headers)
    return {"Authorization": f"Bearer {server.key}", **headers}


async def _described(raw: Any, server: ToolServer, failures: ServerFailures) -> ServerDescription:
    """Decode a description in slices and parse it in a thread, because both may take long."""
    try:
        if isinstance(raw, bytes):
            raw = await json_decoder.decode(raw, DESCRIPTION_LIMITS)
    except GatewayError as error:
        reason = (
            f"contains over {DESCRIPTION_LIMITS.values} values"
            if error.kind is ErrorKind.TOO_LARGE
            else "is not JSON"
        )
        raise failures.error(f"its description {reason}") from error
    try:
        return await asyncio.to_thread(read_description, raw, server.functions)
    except SchemaError as error:
        raise failures.error(f"its description {error}") from error


def _conditions(reply: ServerResponse) -> dict[str, str]:
    found = {
        "If-None-Match": reply.headers.get("etag"),
        "If-Modified-Since": reply.headers.get("last-modified"),
    }
    return {name: value for name, value in found.items() if value}


def _encoded(value: Any, name: str) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise invalid(f"cannot call {name}: its arguments cannot be sent as JSON") from error


async def _read(reply: ServerResponse, failures: ServerFailures) -> ServerReply:
    raw = failures.redacted(reply.body)
    if reply.status >= 400:
        text = failures.clean(raw.decode("utf-8", "replace"))
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, f"HTTP error {reply.status}: {text}")
    if reply.status >= 300:
        raise failures.error(f"it answered {reply.status}, and redirects to other hosts are not followed")
    return ServerReply(await _data(raw), reply.headers)


async def _data(raw: bytes) -> Any:
    """Return the JSON value of an answer, or its text if it is no JSON or over the limits."""
    try:
        return await json_decoder.decode(raw, RESULT_LIMITS)
    except GatewayError:
        return raw.decode("utf-8", "replace")
