"""Tests for gatewayd.http.responses.packed_json."""

import asyncio

import brotli
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gatewayd.http.body import json_reply
from gatewayd.http.responses.packed_json import MAX_INLINE_BYTES, packed

PAGE = {"Sec-Fetch-Site": "same-origin", "Accept-Encoding": "gzip, br"}


def names(count: int) -> list[str]:
    return [f"a chat of the list {number}" for number in range(count)]


@pytest.mark.parametrize("count", [100, MAX_INLINE_BYTES // 10], ids=["on the loop", "in a thread"])
async def test_the_page_gets_its_lists_encoded(count: int) -> None:
    plain = json_reply(names(count)).body
    reply = await packed(make_mocked_request("GET", "/", PAGE), json_reply(names(count)))
    assert isinstance(reply, web.Response)
    assert isinstance(reply.body, bytes)
    assert brotli.decompress(reply.body) == plain
    assert reply.headers["Content-Encoding"] == "br"
    assert reply.headers["Vary"] == "Accept-Encoding, Sec-Fetch-Site"


@pytest.mark.parametrize(
    ("headers", "count"),
    [
        ({"Accept-Encoding": "br"}, 100),
        ({**PAGE, "Sec-Fetch-Site": "cross-site"}, 100),
        ({**PAGE, "Accept-Encoding": "identity"}, 100),
        (PAGE, 1),
    ],
    ids=["a program", "another page", "no coding", "one packet"],
)
async def test_others_get_it_as_it_is(headers: dict[str, str], count: int) -> None:
    reply = await packed(make_mocked_request("GET", "/", headers), json_reply(names(count)))
    assert isinstance(reply, web.Response)
    assert reply.body == json_reply(names(count)).body
    assert "Content-Encoding" not in reply.headers


async def test_a_stream_is_left_alone() -> None:
    stream = web.StreamResponse()
    assert await asyncio.wait_for(packed(make_mocked_request("GET", "/", PAGE), stream), 1) is stream
