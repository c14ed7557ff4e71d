"""Client of one provider: sends JSON, returns checked JSON or chunks, raises failures as `GatewayError`."""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import orjson

from gatewayd import json_decoder, json_encoder
from gatewayd.catalog.interfaces import (
    CallContext,
    NativeProtocol,
    NativeRefusalError,
    RefusedAnswer,
    RequestContent,
    Taken,
)
from gatewayd.completions.rate_limits import passed_headers
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason
from gatewayd.dialects.anthropic.betas import BETA_HEADER
from gatewayd.errors import NO_HEADERS, ErrorKind, GatewayError, invalid
from gatewayd.json_decoder import MAX_SHORT_BYTES, JsonLimits, decode_light, is_light
from gatewayd.measurement.request_notes import with_trace
from gatewayd.text import MAX_ANSWER_DEPTH
from gatewayd.upstream.http.client import TransportError, UpstreamClient, UpstreamResponse, open_client
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.sources.key_ring import KeyedClient, KeyHeaders
from gatewayd.upstream.sources.refusals import CONVERTED_FIELDS, MAX_RETRIES, ChangedRequest, RefusalMemory
from gatewayd.upstream.streams.begun_chunks import BegunChunks
from gatewayd.upstream.streams.checks import CheckedEvents, CheckedWhole, StreamChecker, UncheckedStream
from gatewayd.upstream.streams.chunks import AnswerChunks, ChunkFromCompletion, StreamReader, media_type
from gatewayd.upstream.streams.forwarded import ForwardedReply
from gatewayd.upstream.streams.sse import FramingError, find_error

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes of an answer that is read whole."""

ANSWER_LIMITS = JsonLimits(
    containers=500_000, values=5_000_000, depth=MAX_ANSWER_DEPTH, has_exact_integers=False
)
"""Limits of the JSON of such an answer: thousands of vectors, or a long list of models."""

MAX_INLINE_ANSWER_BYTES = 64 * 1024
"""Maximum number of bytes of a whole answer that is decoded where it arrives."""

MIN_SECRET_CHARACTERS = 8
"""Minimum length of the value of a custom header that is removed from errors; shorter ones are words."""

MAX_LIST_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes of a list of models."""

MAX_MEDIA_EVENT_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes of an event that holds an image or audio."""

KEY_STATUSES = frozenset({401, 407})
"""Statuses about the credentials of the gateway, whatever the body says; no caller gets them."""

MAX_REFUSAL_BYTES = 64 * 1024
"""Maximum number of bytes that are read of the body of an error."""

SentRequest = tuple[str, Mapping[str, str], bytes]
"""URL, headers and body of a request."""


class ProviderClient:
    """Sends requests to one provider.

    `headers` go with every request; headers that name the user follow if the configuration has `identity`.
    With `native` a refusal is raised with the provider's body, for callers of that protocol. `key_headers`
    replaces the header that carries a key in the protocol.
    """

    def __init__(
        self,
        config: ProviderConfig,
        headers: Mapping[str, str],
        client: UpstreamClient | None = None,
        native: NativeProtocol | None = None,
        key_headers: KeyHeaders | None = None,
    ) -> None:
        secrets = (
            *config.keys,
            *(value for _, value in config.headers if len(value) >= MIN_SECRET_CHARACTERS),
        )
        is_messages = native is NativeProtocol.ANTHROPIC
        self.failures = ProviderFailures(config.name, config.key, is_messages, secrets)
        self._base = config.base_url.rstrip("/")
        self._set_names = {name.lower(): name for name, _ in config.headers}
        plain = {name: value for name, value in headers.items() if name.lower() not in self._set_names}
        headers = {**plain, **dict(config.headers)}
        self._headers = dict(headers)
        self._json_headers = {**headers, "Content-Type": "application/json"}
        self._identity = config.identity
        self._native = native
        self._refusals = RefusalMemory(config.name)
        self._client = client or open_client(
            config.timeouts, connections=config.connections, socket_path=config.socket_path
        )
        if len(config.all_keys) > 1:
            named = key_headers or config.key_headers
            self._client = KeyedClient(config.name, self._client, config.all_keys, named)

    async def get(self, path: str) -> dict[str, Any] | list[Any]:
        """Return the JSON object or list at `path`, of at most MAX_LIST_BYTES."""
        return (await self._read_whole(self._ask("GET", path, None), MAX_LIST_BYTES))[1]

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        context: CallContext | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        is_native: bool = False,
    ) -> tuple[bytes, dict[str, Any]]:
        """Send a JSON body and return the JSON object of the answer, as bytes and decoded.

        `headers` are those of this request alone. One that `is_native` is never changed after a refusal: its
        caller reads it.
        """
        sending = self._ask("POST", path, body, context, headers, learns=not is_native)
        raw, answer = await self._read_whole(sending, context=context)
        return raw, self._object(answer)

    async def post_any(
        self, path: str, body: Mapping[str, Any], context: CallContext | None = None
    ) -> dict[str, Any] | list[Any]:
        """Send a JSON body and return the JSON object or list of the answer."""
        answer = (await self._read_whole(self._ask("POST", path, body, context), context=context))[1]
        return answer if isinstance(answer, list) else self._object(answer)

    async def put(self, path: str, content: bytes, headers: Mapping[str, str]) -> object:
        """Send bytes with these headers and return the JSON object or list of the answer."""
        url = self._base + path
        sending = self._client.request("PUT", url, {**self._headers, **headers}, content)
        return (await self._read_whole(sending))[1]

    async def delete(self, path: str) -> object:
        """Delete what is at `path`, and return the JSON object or list of the answer."""
        return (await self._read_whole(self._ask("DELETE", path, None)))[1]

    def post_at_once(
        self,
        path: str,
        body: Mapping[str, Any],
        context: CallContext,
        arrived: Callable[[], None],
        convert: Callable[[bytes, Body], Taken],
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        is_native: bool = False,
    ) -> "BegunPost[Taken] | None":
        """Send what `post` sends and return at once; None if that needs a wait, and nothing was sent.

        The body is light. `arrived` is called when the answer can be taken; `convert` checks it. Raises
        invalid_request for a body that is no JSON.
        """
        sent = self._encoded(path, body, context, headers, learns=not is_native)
        if sent is None:
            return None
        response = self._client.post_at_once(*sent, arrived, MAX_INLINE_ANSWER_BYTES)
        return None if response is None else BegunPost(sent, response, context, convert)

    def chunks_at_once(
        self,
        path: str,
        body: Mapping[str, Any],
        reader: StreamReader,
        context: CallContext,
        arrived: Callable[[], None],
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        is_native: bool = False,
    ) -> BegunChunks | None:
        """Send what `chunks` sends and return at once; None if that needs a wait, and nothing was sent.

        The body is light.
        """
        sent = self._encoded(path, body, context, headers, learns=not is_native)
        if sent is None:
            return None
        response = self._client.post_followed(*sent, arrived)
        if response is None:
            return None
        reading = (reader, self.failures, context.watch)
        return BegunChunks(sent, response, arrived, reading, partial(_pass_headers, response, context))

    def chunks(
        self,
        path: str,
        body: Mapping[str, Any],
        reader: StreamReader,
        whole: ChunkFromCompletion | None = None,
        context: CallContext | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        is_native: bool = False,
    ) -> AnswerChunks:
        """Return the chunks of the answer to a JSON body; awaiting the first one sends the request.

        `headers` and `is_native` are as in `post`.
        """
        fallback = None if whole is None else (whole, self.read_object)
        return AnswerChunks(
            lambda: self.begin(path, body, context, headers, learns=not is_native),
            reader,
            self.failures,
            fallback,
            None if context is None else context.watch,
        )

    async def forward(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        check: StreamChecker | None = None,
        context: CallContext | None = None,
        *,
        native: NativeProtocol | None = None,
    ) -> ForwardedReply:
        """Send a JSON body, or none, and return the answer with its body unread; a status over 299 raises.

        `check` validates the forwarded bytes; by default as events or one JSON object, by the media type.
        With `native` a refusal is raised with the provider's body as `NativeRefusalError`.
        """
        try:
            response = await self._ask(method, path, body, context, native=native, kept=())
            _pass_headers(response, context)
        except TransportError as error:
            raise self.failures.from_transport(error) from error
        if check is None:
            check = CheckedEvents() if media_type(response) == "text/event-stream" else CheckedWhole()
        return ForwardedReply(response, self.failures, check)

    async def exchange(
        self, path: str, body: Mapping[str, Any] | RequestContent, context: CallContext
    ) -> ForwardedReply:
        """Send JSON or other content and return the answer with its body unread; a status over 299 raises.

        JSON and events of the answer are checked, other media types are not.
        """
        try:
            if isinstance(body, Mapping):
                response = await self._ask("POST", path, body, context)
            else:
                response = await self._upload(path, body, context)
            _pass_headers(response, context)
        except TransportError as error:
            raise self.failures.from_transport(error) from error
        return ForwardedReply(response, self.failures, _media_check(media_type(response)))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _upload(self, path: str, content: RequestContent, context: CallContext) -> UpstreamResponse:
        named = {} if self._identity is None else self._identity.for_model(context)
        headers = with_trace({**named, **self._headers, "Content-Type": content.media_type})
        response = await self._client.upload(self._base + path, headers, content.pieces(), content.length)
        if not 200 <= response.status < 300:
            raise self._refused(response, await self._read_refusal(response))
        return response

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        context: CallContext | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        native: NativeProtocol | None = None,
        learns: bool = True,
        kept: Container[str] = CONVERTED_FIELDS,
    ) -> UpstreamResponse:
        """Send a request and return the answer; a refusal raises.

        With `learns` a request goes without the harmless fields that its model refused lately, but those in
        `kept`. If the provider refuses another one, the request is sent again without it.
        """
        learns = learns and body is not None
        if learns and body is not None and self._refusals.has_learnt:
            body = self._told(self._refusals.apply(path, body, kept), context)
        response = await self._send(method, path, body, context, headers)
        if 200 <= response.status < 300:
            return response
        refusal = await self._read_refusal(response)
        changes: list[ChangedRequest] = []
        while learns and body is not None and len(changes) < MAX_RETRIES:
            again = self._refusals.answer(path, body, response.status, refusal, kept)
            if again is None:
                break
            changes.append(again)
            body = again.body
            if context is not None and context.call is not None:
                context.call.retries += 1
            response = await self._send(method, path, body, context, headers)
            if 200 <= response.status < 300:
                self._remember(path, changes, context)
                return response
            refusal = await self._read_refusal(response)
        raise self._refused(response, refusal, native)

    def _remember(self, path: str, changes: Sequence[ChangedRequest], context: CallContext | None) -> None:
        for changed in changes:
            self._refusals.remember(path, changed)
            self._told(changed, context)

    def _told(self, changed: ChangedRequest, context: CallContext | None) -> Mapping[str, Any]:
        """Return a changed request, and add its sentences to the warnings."""
        if context is not None:
            context.warnings.extend(changed.sentences)
        return changed.body

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        context: CallContext | None = None,
        own: Mapping[str, str] = NO_HEADERS,
    ) -> Awaitable[UpstreamResponse]:
        headers = self._headers if body is None else self._json_headers
        if own:
            headers = self._with_own(headers, own)
        headers = self._named(headers, context)
        content = None if body is None else _encode_light(body)
        if body is not None and content is None:
            return self._send_encoded(method, path, headers, body)
        return self._client.request(method, self._base + path, headers, content)

    def _encoded(
        self,
        path: str,
        body: Mapping[str, Any],
        context: CallContext,
        own: Mapping[str, str],
        *,
        learns: bool,
    ) -> SentRequest | None:
        """Return the request that `_ask` sends; None if that takes a wait."""
        if learns and self._refusals.has_learnt:
            return None
        headers = self._with_own(self._json_headers, own) if own else self._json_headers
        return self._base + path, self._named(headers, context), _encode_at_once(body)

    def _named(self, headers: dict[str, str], context: CallContext | None) -> dict[str, str]:
        """Return the headers of a request with those that name its user, and its trace."""
        if self._identity is not None and context is not None:
            headers = {**self._identity.for_model(context), **headers}
        return with_trace(headers)

    async def _send_encoded(
        self, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> UpstreamResponse:
        content = await _encode(body)
        return await self._client.request(method, self._base + path, headers, content)

    def _with_own(self, headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request; those of the configuration win, and betas are one list."""
        merged = dict(headers)
        for name, value in own.items():
            known = self._set_names.get(name.lower())
            if known is None:
                merged[name] = value
            elif known.lower() == BETA_HEADER:
                merged[known] = f"{merged[known]},{value}"
        return merged

    async def _read_whole(
        self,
        sending: Awaitable[UpstreamResponse],
        limit: int = MAX_ANSWER_BYTES,
        context: CallContext | None = None,
    ) -> tuple[bytes, dict[str, Any] | list[Any]]:
        try:
            response = await sending
            try:
                if not 200 <= response.status < 300:
                    raise self._refused(response, await self._read_refusal(response))
                _pass_headers(response, context)
                raw = await response.read(limit)
            finally:
                response.close()
            return await self._parse(response, raw)
        except TransportError as error:
            raise self.failures.from_transport(error) from error
        except FramingError as error:
            raise self.failures.broken(str(error)) from error

    async def _read_refusal(self, response: UpstreamResponse) -> bytes:
        try:
            return await _read_start(response, MAX_REFUSAL_BYTES)
        finally:
            response.close()

    def _refused(
        self, response: UpstreamResponse, refusal: bytes, native: NativeProtocol | None = None
    ) -> GatewayError:
        passed = passed_headers(response.raw_headers)
        error = self.failures.from_answer(response.status, response.headers, refusal, passed)
        native = native or self._native
        # The key is the gateway's own, so that callers get no refusal of it.
        is_own = response.status >= 400 and response.status not in KEY_STATUSES
        is_own = is_own and error.provider_code != RefusalReason.KEY
        is_page = media_type(response) == "text/html" or refusal.lstrip()[:1] == b"<"
        if native is None or not is_own or is_page or len(refusal) >= MAX_REFUSAL_BYTES:
            return error
        if native is NativeProtocol.ANTHROPIC and not refusal.lstrip().startswith(b"{"):
            # Programs of that protocol expect JSON.
            return error
        content_type = response.headers.get("Content-Type", "")
        body = self.failures.redacted_text(refusal)
        return NativeRefusalError(error, RefusedAnswer(native, response.status, content_type, body))

    def _object(self, answer: object) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise self.failures.broken("its answer is not a JSON object")
        error = find_error(answer)
        if error is not None:
            raise self.failures.from_event(error)
        return answer

    async def begin(
        self,
        path: str,
        body: Mapping[str, Any],
        context: CallContext | None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        learns: bool = True,
    ) -> UpstreamResponse:
        """Send a JSON body and return the answer with its body unread; a refusal raises."""
        response = await self._ask("POST", path, body, context, headers, learns=learns)
        if media_type(response) == "text/html":
            response.close()
            raise self.failures.from_answer(response.status, response.headers, b"<")
        _pass_headers(response, context)
        return response

    async def read_object(self, response: UpstreamResponse) -> dict[str, Any]:
        """Return the JSON object of an answer, read whole; raises its error."""
        return self._object((await self._parse(response, await response.read(MAX_ANSWER_BYTES)))[1])

    async def _parse(
        self, response: UpstreamResponse, raw: bytes
    ) -> tuple[bytes, dict[str, Any] | list[Any]]:
        try:
            answer = (
                decode_light(raw, ANSWER_LIMITS)
                if len(raw) <= MAX_SHORT_BYTES
                else await json_decoder.decode(raw, ANSWER_LIMITS)
            )
        except json_decoder.DepthError as error:
            raise self.failures.broken("its JSON nests too deep") from error
        except GatewayError as error:
            if error.kind is ErrorKind.TOO_LARGE:
                raise self.failures.broken(
                    f"its answer has more than {ANSWER_LIMITS.values} values"
                ) from error
            if not raw.strip() or media_type(response) == "text/html":
                raise self.failures.from_answer(response.status, response.headers, raw) from error
            raise self.failures.broken("its answer is not JSON") from error
        if not isinstance(answer, dict | list):
            raise self.failures.broken("its answer is not a JSON object")
        return raw, answer


@dataclass(slots=True, eq=False, repr=False)
class BegunPost(Generic[Taken]):
    """The `catalog.interfaces.BegunRequest` of a provider; a function checks its answer."""

    sent: SentRequest
    response: UpstreamResponse
    _context: CallContext
    _convert: Callable[[bytes, Body], Taken]

    def take(self) -> Taken | None:
        """Return the answer; None for one that `post` has to read: a failure, or a long or odd answer."""
        response = self.response
        raw = response.peek() if 200 <= response.status < 300 else None
        if raw is None or len(raw) > MAX_INLINE_ANSWER_BYTES or not is_light(raw):
            return None
        try:
            answer = decode_light(raw, ANSWER_LIMITS)
        except GatewayError:
            return None
        if not isinstance(answer, dict) or find_error(answer) is not None:
            return None
        _pass_headers(response, self._context)
        return self._convert(raw, answer)


def listed_objects(answer: object, name: str, failures: ProviderFailures) -> list[dict[str, Any]]:
    """Return the objects of a listing, `{name: [...]}` or a bare list; raises upstream_failed for others."""
    found = answer.get(name) if isinstance(answer, dict) else answer
    if not isinstance(found, list):
        raise failures.broken(f"its list of models has no {name!r}")
    return [item for item in found if isinstance(item, dict)]


def lacks_listing(error: GatewayError) -> bool:
    """Return whether the error means that a provider has no list of models."""
    return error.kind is ErrorKind.NOT_FOUND


def _pass_headers(response: UpstreamResponse, context: CallContext | None) -> None:
    """Keep the headers of an answer that its caller gets; a former attempt's are dropped."""
    if context is None:
        return
    found = passed_headers(response.raw_headers)
    if found or context.reply_headers:
        context.reply_headers.clear()
        context.reply_headers.update(found)


async def _read_start(response: UpstreamResponse, limit: int) -> bytes:
    """Return about `limit` bytes of a refusal at most, or fewer if it breaks off."""
    body = b""
    try:
        while len(body) < limit and (part := await response.read_some()):
            body += part
    except TransportError:
        return body
    return body


def _encode_light(body: Mapping[str, Any]) -> bytes | None:
    """Return a request as JSON; None for one that takes several steps."""
    return _encode_at_once(body) if json_encoder.is_light(body) else None


def _encode_at_once(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise _unwritable(error) from error


async def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return b"".join(await json_encoder.encode(body))
    except orjson.JSONEncodeError as error:
        raise _unwritable(error) from error


def _unwritable(error: orjson.JSONEncodeError) -> GatewayError:
    return invalid(f"cannot send the request as JSON: {error}")


def _media_check(kind: str) -> StreamChecker:
    if kind == "text/event-stream":
        return CheckedEvents(MAX_MEDIA_EVENT_BYTES)
    return CheckedWhole() if kind == "application/json" else UncheckedStream()
