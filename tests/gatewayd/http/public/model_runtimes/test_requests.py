"""Tests for gatewayd.http.public.model_runtimes.requests."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gatewayd.errors import GatewayError
from gatewayd.http.public.model_runtimes.requests import (
    name_of,
    read_runtime_body,
    runtime_index,
    runtime_rows,
)
from gatewayd.http.routes import RouteAccess, RouteDialect
from tests.fakes.http.public_app import serving


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response({"index": runtime_index(request), "form": await read_runtime_body(request, 100)})


def test_an_operation_has_two_rows() -> None:
    pair = runtime_rows("POST", "/api/x", echo, RouteAccess.ADMIN, "Do", interruptible=True)
    assert [row.path for row in pair] == ["/ollama/api/x", "/ollama/api/x/{index:[0-9][0-9]?[0-9]?}"]
    assert {(row.dialect, row.access, row.interruptible) for row in pair} == {
        (RouteDialect.OLLAMA, RouteAccess.ADMIN, True)
    }


def test_no_place_is_none() -> None:
    assert runtime_index(make_mocked_request("GET", "/", match_info={})) is None
    assert runtime_index(make_mocked_request("GET", "/", match_info={"index": "012"})) == 12


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (None, 200),
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/x-ndjson", 200),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
async def test_media_types(content_type: str | None, status: int) -> None:
    pair = runtime_rows("POST", "/api/x", echo, RouteAccess.PUBLIC, "Echo")
    headers = {} if content_type is None else {"Content-Type": content_type}
    async with serving(pair) as client:
        skip = ["Content-Type"] if content_type is None else []
        reply = await client.post(
            "/ollama/api/x/7", data=b'{"a": 1}', headers=headers, skip_auto_headers=skip
        )
        assert reply.status == status
        if status == 200:
            assert await reply.json() == {"index": 7, "form": {"a": 1}}


def test_the_first_text_is_the_name() -> None:
    assert name_of({"model": "", "name": "n"}, "model", "name") == "n"
    assert name_of({"model": "m", "name": "n"}, "model", "name") == "m"


@pytest.mark.parametrize("form", [{}, {"model": None, "name": ""}, {"model": 1, "name": "n"}, {"name": [2]}])
def test_a_name_that_is_no_text_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(GatewayError) as caught:
        name_of(form, "model", "name")
    assert caught.value.param in {"model", "name"}
