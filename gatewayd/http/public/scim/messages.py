"""Parsers of SCIM queries and bodies, and SCIM replies (RFC 7644, 3.1, 3.4.2, 3.8)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd import json_encoder
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.body import read_object
from gatewayd.http.errors import SCIM_JSON
from gatewayd.http.responses.json_parts import PartsReply
from gatewayd.http.routes import JSON_BODY
from gatewayd.json_decoder import BULK_LIMITS
from gatewayd.scim.filters.list_query import PARAMETERS
from gatewayd.scim.parser import check_schemas
from gatewayd.scim.projection import Projection
from gatewayd.scim.records import Resource, ResourceType, ScimSearchResult, SearchParameters

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MEDIA_TYPES: Final = (SCIM_JSON, *JSON_BODY)
LIST_RESPONSE: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
SEARCH_REQUEST: Final = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
INTEGER_PATTERN: Final = re.compile(r"-?[0-9]+")
# Larger than any list and small enough for every database; longer numbers are cut to it.
MAX_DIGITS: Final = 15
MAX_INTEGER: Final = 10**MAX_DIGITS
SORT_ORDERS: Final = {"ascending": False, "descending": True}

QueryParameters = Mapping[str, Any]
"""The parameters of a list by name, from a query string or from a SearchRequest."""


async def read_body(request: web.Request) -> dict[str, Any]:
    """Return the body of a write: a JSON object of at most 4 MiB."""
    try:
        return await read_object(request, MAX_BODY_BYTES, BULK_LIMITS)
    except GatewayError as error:
        if error.kind is ErrorKind.INVALID_REQUEST and error.code is None:
            raise invalid(error.message, param=error.param, code="invalidSyntax") from error
        raise


def read_query(request: web.Request) -> QueryParameters:
    """Return the parameters of a query string; invalid_request for a repeated one.

    Names are case-insensitive: an ignored startIndex would repeat the first page for ever.
    """
    return _by_name(request.query.items())


async def read_search(request: web.Request) -> QueryParameters:
    """Return the parameters of a SearchRequest (RFC 7644, 3.4.3)."""
    body = await read_body(request)
    check_schemas(body, SEARCH_REQUEST)
    return _by_name((name, value) for name, value in body.items() if value is not None)


def parse_search(asked: QueryParameters) -> SearchParameters:
    """Return the parsed parameters of a list; invalid_request with the name of a bad one."""
    order = _text(asked, "sortOrder") or "ascending"
    if order.lower() not in SORT_ORDERS:
        raise _bad("sortOrder", "expected ascending or descending")
    return SearchParameters(
        filter=_text(asked, "filter"),
        start_index=_whole(asked, "startIndex"),
        count=_whole(asked, "count"),
        sort_by=_text(asked, "sortBy") or None,
        descending=SORT_ORDERS[order.lower()],
    )


def parse_projection(asked: QueryParameters, resource: ResourceType) -> Projection:
    """Return the selected attributes."""
    return Projection.read(resource, _names(asked, "attributes"), _names(asked, "excludedAttributes"))


def scim_reply(
    body: Resource | None, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Return a SCIM reply; 204 without a resource."""
    if body is None:
        return web.Response(status=204, headers=headers)
    return web.Response(status=status, body=orjson.dumps(body), content_type=SCIM_JSON, headers=headers)


async def large_scim_reply(
    body: Resource, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Return a SCIM reply of any size, encoded and sent in parts so that the event loop stays free."""
    parts = await json_encoder.encode(body)
    if len(parts) == 1:
        return web.Response(status=status, body=parts[0], content_type=SCIM_JSON, headers=headers)
    large = PartsReply(parts, status, headers)
    large.content_type = SCIM_JSON
    return large


async def list_reply(resources: Sequence[Resource], total: int, start_index: int = 1) -> web.StreamResponse:
    """Return a ListResponse."""
    return await large_scim_reply(
        {
            "schemas": [LIST_RESPONSE],
            "totalResults": total,
            "startIndex": start_index,
            "itemsPerPage": len(resources),
            "Resources": list(resources),
        }
    )


async def search_reply(found: ScimSearchResult[Any], resources: Sequence[Resource]) -> web.StreamResponse:
    """Return a ListResponse with a page of the result."""
    return await list_reply(resources, found.total, found.start_index)


def _text(asked: QueryParameters, name: str) -> str | None:
    value = asked.get(name)
    if value is not None and not isinstance(value, str):
        raise _bad(name, "expected a text")
    return value


def _whole(asked: QueryParameters, name: str) -> int | None:
    value = asked.get(name)
    if value is None:
        return None
    if isinstance(value, str) and INTEGER_PATTERN.fullmatch(value):
        value = _bounded(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _bad(name, "expected a whole number")
    return max(min(value, MAX_INTEGER), -MAX_INTEGER)


def _bounded(digits: str) -> int:
    """Return a number, cut to the largest one without parsing, as Python refuses very long numbers."""
    magnitude = digits.removeprefix("-").lstrip("0") or "0"
    value = int(magnitude) if len(magnitude) <= MAX_DIGITS else MAX_INTEGER
    return -value if digits.startswith("-") else value


def _by_name(given: Iterable[tuple[str, Any]]) -> QueryParameters:
    asked: dict[str, Any] = {}
    for spelling, value in given:
        name = PARAMETERS.get(spelling.lower())
        if name in asked:
            raise _bad(name, "it is repeated")
        if name is not None:
            asked[name] = value
    return asked


def _names(asked: QueryParameters, name: str) -> Sequence[str] | None:
    value = asked.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _bad(name, "expected a list of texts")
    return value


def _bad(name: str, why: str) -> GatewayError:
    return invalid(f"cannot accept {name}: {why}", param=name, code="invalidValue")
