"""Tests for gatewayd.http.responses.json_list."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gatewayd.http.responses.json_list import send_records
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.edge import serving


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": ["x" * 1000] * 1000}, 2]])
async def test_records_are_members_of_one_list(rows: list[Any]) -> None:
    async def each() -> AsyncIterator[Any]:
        for row in rows:
            yield row

    async def show(request: web.Request) -> web.StreamResponse:
        return await send_records(request, each())

    async with serving([Route("GET", "/x", show, RouteAccess.PUBLIC, "Show")]) as client:
        assert await (await client.get("/x")).json() == rows
