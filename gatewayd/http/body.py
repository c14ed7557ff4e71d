"""Request bodies in, JSON replies out: limits, JSON strictness and validation in one place."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson
from aiohttp import hdrs, web
from pydantic import BaseModel, ValidationError

from gatewayd.errors import GatewayError, Kind, invalid, shortened
from gatewayd.http.direct import JsonReply, is_plain

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**64 - 1
# Enough digits for an integer that the decoder would turn into an inexact number, as `_AS_DIGITS` shows them.
LONG_NUMBER: Final = b"0" * 19
SMALL_BODY: Final = 1024 * 1024
BODY_TIMEOUT_SECONDS: Final = 30.0

_CONTAINERS: Final = (dict, list)
_AS_DIGITS: Final = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))

Model = TypeVar("Model", bound=BaseModel)


def check_media_type(request: web.Request, accepted: Sequence[str]) -> None:
    """Refuse a body whose media type is none of `accepted` (415); the first of them is what to send.

    Programs may leave the type out. A browser may not: without one, or with a type that a form can have, it
    sends a page's request without asking the gateway first (ASVS 5.0, 3.5.2).
    """
    declared = request.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if declared in accepted or not request.body_exists:
        return
    if not declared and hdrs.ORIGIN not in request.headers and "Sec-Fetch-Site" not in request.headers:
        return
    found = f"with Content-Type {shortened(declared)!r}" if declared else "without a Content-Type"
    raise invalid(
        f"cannot read a body {found}: send {accepted[0]} (header Content-Type: {accepted[0]})",
        param="Content-Type",
        code="unsupported_media_type",
    )


async def read_bytes(request: web.Request, limit: int = SMALL_BODY) -> bytes:
    """Return the body.

    Raises too_large over `limit` bytes, invalid_request for a compressed body (415) or one that takes longer
    than 30 s plus a second for each 64 KiB of its limit (408).
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() not in {"identity", ""}:
        raise invalid(
            f"cannot read a body with Content-Encoding {shortened(encoding)!r}: send it uncompressed",
            param="Content-Encoding",
            code="unsupported_media_type",
        )
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(limit)
    if request.content.is_eof():
        # Small bodies come with the head: nothing to wait for.
        data = request.content.read_nowait()
        if len(data) > limit:
            raise _too_large(limit)
        return data
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS + limit / 65536):
            return await _read_up_to(request, limit)
    except TimeoutError:
        raise invalid("cannot read the body: it came too slowly", code="body_timeout") from None


def parse_json(data: bytes) -> Any:
    """Return the JSON value of a body; no NaN, no lone surrogates, at most 64 levels deep.

    In bodies up to 1 MiB an integer over 64 bits is refused, as it could not be passed on as it is.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise invalid(f"cannot read the body as JSON: {error}", code="json_invalid") from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise invalid(
            f"cannot read the body as JSON: it nests deeper than {MAX_DEPTH} levels", code="json_invalid"
        )
    if len(data) <= SMALL_BODY and LONG_NUMBER in data.translate(_AS_DIGITS):
        json.loads(data, parse_int=_exact)
    return value


async def read_object(request: web.Request, limit: int = SMALL_BODY) -> dict[str, Any]:
    """Return the body as a JSON object; invalid_request when it is something else."""
    value = parse_json(await read_bytes(request, limit))
    if not isinstance(value, dict):
        raise invalid("cannot read the body: expected a JSON object", param="body")
    return value


async def read_model(request: web.Request, model: type[Model], limit: int = SMALL_BODY) -> Model:
    """Return the body as `model`; an empty body counts as `{}`. A bad field raises (422) and is named."""
    data = await read_bytes(request, limit)
    value = parse_json(data) if data.strip() else {}
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise validation_failure(error) from None


def validation_failure(error: ValidationError) -> GatewayError:
    """Return the failure that names the first bad field; the value itself is never repeated."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "body"
    sentence = first["msg"][:1].lower() + first["msg"][1:]
    return invalid(f"cannot accept {name}: {sentence}", param=name, code="validation")


def json_reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a JSON reply; `data` is anything that orjson writes."""
    return web.Response(
        body=orjson.dumps(data), status=status, content_type="application/json", headers=headers
    )


def raw_reply(request: web.Request, data: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
    """Return a reply of ready JSON, in the cheapest way that the request permits."""
    if is_plain(request):
        return JsonReply(request, data, headers)
    return web.Response(body=data, headers={"Content-Type": "application/json", **headers})


async def _read_up_to(request: web.Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> GatewayError:
    return GatewayError(Kind.TOO_LARGE, f"cannot read the body: it is over the limit of {limit} bytes")


def _exact(digits: str) -> int:
    if len(digits) > len(str(MAX_INTEGER)) + 1 or not -(2**63) <= int(digits) <= MAX_INTEGER:
        raise invalid("cannot read the body as JSON: an integer has more than 64 bits", code="json_invalid")
    return int(digits)


def _is_deeper(value: Any, levels: int) -> bool:
    """Tell whether a value nests deeper; level by level, as that is the fastest for a million values."""
    nested = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        nested = [child for item in nested for child in _children(item) if isinstance(child, _CONTAINERS)]
        if not nested:
            return False
    return True


def _children(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item
