"""Tests for gatewayd.http.responses.json_parts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gatewayd.http.body import large_reply
from gatewayd.http.responses.json_parts import send_records
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.http.public_app import serving

VALUE = {"rows": [{"id": place, "text": "é" * 50} for place in range(20_000)]}


async def large(request: web.Request) -> web.StreamResponse:
    return await large_reply(VALUE)


async def small(request: web.Request) -> web.StreamResponse:
    return await large_reply({"a": 1})


ROWS = [
    Route("GET", "/x", large, RouteAccess.PUBLIC, "Large"),
    Route("GET", "/y", small, RouteAccess.PUBLIC, "Small"),
]


async def test_a_large_answer_has_a_length_and_comes_whole() -> None:
    async with serving(ROWS) as client:
        reply = await client.get("/x")
        data = await reply.read()
        assert reply.headers["Content-Type"] == "application/json"
        assert int(reply.headers["Content-Length"]) == len(data)
        assert await reply.json() == VALUE
        assert await (await client.get("/y")).json() == {"a": 1}


async def test_its_head_has_the_length_alone() -> None:
    async with serving(ROWS) as client:
        reply = await client.head("/x")
        assert int(reply.headers["Content-Length"]) > 1_000_000
        assert await reply.read() == b""
        # The connection goes on.
        assert (await client.get("/y")).status == 200


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": ["x" * 1000] * 1000}, 2]])
async def test_records_are_members_of_one_list(rows: list[Any]) -> None:
    async def each() -> AsyncIterator[Any]:
        for row in rows:
            yield row

    async def show(request: web.Request) -> web.StreamResponse:
        return await send_records(request, each())

    async with serving([Route("GET", "/x", show, RouteAccess.PUBLIC, "Show")]) as client:
        assert await (await client.get("/x")).json() == rows
