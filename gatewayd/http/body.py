"""Readers of request bodies, with limits and validation, and writers of JSON replies."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson
from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, ValidationError

from gatewayd import json_decoder, json_encoder
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.http.connections.minimum_rate import body_reader
from gatewayd.http.responses.fast_response import JsonReply, supports_direct_reply
from gatewayd.http.responses.json_parts import PartsReply
from gatewayd.json_decoder import JsonLimits, JsonMembers, UndecodedMember

MAX_SMALL_BODY_BYTES: Final = 1024 * 1024

WARNING_HEADER: Final = "X-Gateway-Warning"
MAX_HEADER_CHARACTERS: Final = 2048
REPLACEMENTS: Final = {**dict.fromkeys(range(0x20), "?"), 0x7F: "?"}

Model = TypeVar("Model", bound=BaseModel)


class RequestBody(BaseModel):
    """Base of the models of JSON bodies: unknown members are ignored, and it is built at its first use."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


def check_media_type(request: web.Request, accepted: Sequence[str]) -> None:
    """Refuse a body whose media type is none of `accepted` (415). The message recommends the first of them.

    Programs may omit the type. Browsers may not: they send a page's request without a type, or with a type
    that a form can have, before they ask the gateway (ASVS 5.0, 3.5.2).
    """
    given = request.headers.get(hdrs.CONTENT_TYPE, "")
    if given in accepted:
        return
    declared = given.partition(";")[0].strip().lower()
    if declared in accepted or not request.body_exists:
        return
    if not declared and hdrs.ORIGIN not in request.headers and "Sec-Fetch-Site" not in request.headers:
        return
    found = f"with Content-Type {shorten(declared)!r}" if declared else "without a Content-Type"
    raise invalid(
        f"cannot read a body {found}: send {accepted[0]} (header Content-Type: {accepted[0]})",
        param="Content-Type",
        code="unsupported_media_type",
    )


async def read_bytes(request: web.Request, limit: int = MAX_SMALL_BODY_BYTES) -> bytes | bytearray:
    """Return the body.

    Raises too_large over `limit` bytes, invalid_request for a compressed body (415) or a body that arrives
    below the minimum rate (408).
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() not in {"identity", ""}:
        raise invalid(
            f"cannot read a body with Content-Encoding {shorten(encoding)!r}: send it uncompressed",
            param="Content-Encoding",
            code="unsupported_media_type",
        )
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(limit)
    if request.content.is_eof():
        # A small body arrives with the head, so that no wait is needed.
        data = request.content.read_nowait()
        if len(data) > limit:
            raise _too_large(limit)
        return data
    return await _read_up_to(request, limit)


async def read_object(
    request: web.Request, limit: int = MAX_SMALL_BODY_BYTES, limits: JsonLimits = json_decoder.SMALL_LIMITS
) -> dict[str, Any]:
    """Return the body as a JSON object; invalid_request for any other value."""
    data = await read_bytes(request, limit)
    if len(data) <= json_decoder.MAX_SHORT_BYTES:
        return _object(json_decoder.decode_light(data, limits))
    return await decode_object(data, limits)


def read_at_once(data: bytes, limits: JsonLimits = json_decoder.SMALL_LIMITS) -> dict[str, Any] | None:
    """Return what `read_object` returns for a light body, None for another one; raises as it does."""
    if not json_decoder.is_light(data):
        return None
    return _object(json_decoder.decode_light(data, limits))


async def decode_object(
    data: bytes | bytearray, limits: JsonLimits = json_decoder.SMALL_LIMITS
) -> dict[str, Any]:
    """Return a body as a JSON object; invalid_request for any other value."""
    is_short = len(data) <= json_decoder.MAX_SHORT_BYTES
    value = json_decoder.decode_light(data, limits) if is_short else await json_decoder.decode(data, limits)
    return _object(value)


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid("cannot read the body: expected a JSON object", param="body")
    return value


async def read_model(
    request: web.Request,
    model: type[Model],
    limit: int = MAX_SMALL_BODY_BYTES,
    limits: JsonLimits = json_decoder.SMALL_LIMITS,
) -> Model:
    """Return the body as `model`; an empty body counts as `{}`. Raises 422 with the name of the first bad
    field."""
    data = await read_bytes(request, limit)
    return validate_model(model, await _decoded(data, limits))


async def read_members(
    request: web.Request,
    model: type[Model],
    limit: int,
    undecoded: UndecodedMember,
    limits: JsonLimits = json_decoder.BULK_LIMITS,
) -> tuple[Model, JsonMembers | None]:
    """Return the body as `model`, with one list left empty, and the members of that list.

    The members are None when the body has no such list; the model then has the value of the field.
    """
    data = await read_bytes(request, limit)
    value = await _decoded(data, limits, undecoded)
    members = value.get(undecoded.name) if isinstance(value, dict) else None
    if not isinstance(members, JsonMembers):
        return validate_model(model, value), None
    return validate_model(model, {**value, undecoded.name: []}), members


async def read_each(members: JsonMembers, model: type[Model], where: str) -> AsyncIterator[Model]:
    """Yield the members of a list as `model`; raises 422 with the name of a bad field, which begins with
    `where`."""
    place = 0
    async for value in members.each():
        yield validate_model(model, value, where, str(place))
        place += 1


def validate_model(model: type[Model], value: Any, *where: str) -> Model:
    """Return the value at the path `where` of the body as `model`; raises as `read_model` does."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise validation_failure(error, *where) from None


def validation_failure(error: ValidationError, *where: str) -> GatewayError:
    """Return the failure that names the first bad field, without its value."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = ".".join([*where, *(str(part) for part in first["loc"])]) or "body"
    sentence = first["msg"][:1].lower() + first["msg"][1:]
    return invalid(f"cannot accept {name}: {sentence}", param=name, code="validation")


def json_reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a JSON reply; `data` is any value that orjson can write."""
    return web.Response(
        body=orjson.dumps(data), status=status, content_type="application/json", headers=headers
    )


async def large_reply(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Return a JSON reply of any size, encoded and sent in parts so that the event loop stays free."""
    return encoded_reply(await json_encoder.encode(data), status, headers)


def encoded_reply(
    parts: Sequence[bytes], status: int = 200, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Return a reply of JSON that was encoded in one or more parts."""
    if len(parts) > 1:
        return PartsReply(parts, status, headers)
    return web.Response(body=parts[0], status=status, content_type="application/json", headers=headers)


async def pages_reply(
    pages: AsyncIterable[Sequence[Any]], name: str = "", fields: Mapping[str, Any] | None = None
) -> web.StreamResponse:
    """Return a JSON reply from pages of a list: the list itself, or an object with the list as a field."""
    parts = await json_encoder.encode_pages(pages)
    if name:
        rest = orjson.dumps(fields or {})[1:]
        behind = rest if rest == b"}" else b"," + rest
        parts = [b"{" + orjson.dumps(name) + b":", *parts, behind]
    return PartsReply(parts)


def raw_reply(request: web.Request, data: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
    """Return a reply of encoded JSON, written directly to the connection where the request permits it."""
    if supports_direct_reply(request):
        return JsonReply(request, data, headers)
    return web.Response(body=data, headers={"Content-Type": "application/json", **headers})


def warning_headers(sentences: Sequence[str]) -> dict[str, str]:
    """Return the header that lists the ignored parts of a valid request; no header without sentences.

    The sentences quote the request: all but printable ASCII is replaced, and the text ends after 2048
    characters.
    """
    if not sentences:
        return {}
    # Each sentence has one character at least, so that more sentences cannot fit.
    joined = "; ".join(sentences[:MAX_HEADER_CHARACTERS])[: MAX_HEADER_CHARACTERS + 1]
    text = joined.translate(REPLACEMENTS).encode("ascii", "replace").decode("ascii")
    return {
        WARNING_HEADER: text
        if len(text) <= MAX_HEADER_CHARACTERS
        else f"{text[: MAX_HEADER_CHARACTERS - 3]}..."
    }


async def _decoded(
    data: bytes | bytearray, limits: JsonLimits, undecoded: UndecodedMember | None = None
) -> Any:
    """Return the value of a body; an empty one counts as `{}`."""
    # strip() would copy a large body.
    if len(data) <= MAX_SMALL_BODY_BYTES and not data.strip():
        return {}
    return await json_decoder.decode(data, limits, undecoded)


async def _read_up_to(request: web.Request, limit: int) -> bytes | bytearray:
    # One growing array: joining the parts of a large body takes as long as receiving them.
    data = bytearray()
    reader = body_reader(request)
    while part := await reader.read():
        data += part
        if len(data) > limit:
            raise _too_large(limit)
    return data if len(data) > MAX_SMALL_BODY_BYTES else bytes(data)


def _too_large(limit: int) -> GatewayError:
    return GatewayError(ErrorKind.TOO_LARGE, f"cannot read the body: it is over the limit of {limit} bytes")
