"""Tests for gatewayd.http.body."""

import asyncio
import gzip

import pytest
from aiohttp import web
from pydantic import BaseModel

from gatewayd.http import body
from gatewayd.http.body import MAX_HEADER_CHARACTERS, WARNING_HEADER, warning_headers
from gatewayd.http.connections.minimum_rate import MinimumRate, MinimumRates
from gatewayd.http.responses.json_parts import PartsReply
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.http.public_app import serving


class Form(BaseModel):
    name: str
    size: int = 1


async def echo(request: web.Request) -> web.StreamResponse:
    return body.json_reply((await body.read_model(request, Form, 1000)).model_dump())


JSON = {"Content-Type": "application/json"}
ROWS = [Route("POST", "/x", echo, RouteAccess.PUBLIC, "Echo")]


async def test_a_large_answer_is_made_and_sent_in_parts() -> None:
    messages = [{"content": "x" * 500}] * 5_000
    assert isinstance(await body.large_reply({"messages": messages}), PartsReply)
    assert not isinstance(await body.large_reply({"messages": messages[:5]}), PartsReply)


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b'{"name": "n"}', 200, "n"),
        (b'{"name": "n"', 400, "JSON"),
        (b'{"name": NaN}', 400, "JSON"),
        (b'{"name": "\\ud800"}', 400, "JSON"),
        (b'{"name": "\xff"}', 400, "JSON"),
        (b"[" * 100 + b"]" * 100, 400, "64"),
        (b"[" * 450 + b"]" * 450, 400, "64"),
        (b"{}", 422, "name"),
        (b"", 422, "name"),
        (b"[1]", 422, "body"),
        (b'{"name": "n", "size": "x"}', 422, "size"),
        (b'{"name": "' + b"n" * 1000 + b'"}', 413, "1000"),
    ],
)
async def test_bad_bodies_are_named(data: bytes, status: int, words: str) -> None:
    async with serving(ROWS) as client:
        reply = await client.post("/x", data=data, headers=JSON)
        assert reply.status == status
        assert words in await reply.text()


async def test_validation_failure_has_the_list_form_and_never_the_value() -> None:
    async with serving(ROWS) as client:
        answer = await (await client.post("/x", json={"name": "n", "size": "hunter2"})).json()
        assert answer["detail"][0]["loc"] == ["body", "size"]
        assert answer["error"]["param"] == "size"
        assert "hunter2" not in str(answer)


async def test_compressed_bodies_are_refused_unread() -> None:
    async with serving(ROWS) as client:
        data = gzip.compress(b'{"name": "n"}')
        reply = await client.post("/x", data=data, headers={**JSON, "Content-Encoding": "gzip"})
        assert reply.status == 415


async def test_declared_size_is_refused_before_the_body_comes() -> None:
    async with serving(ROWS) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n{")
        status = await asyncio.wait_for(reader.readline(), 5)
        assert b"413" in status
        writer.close()
        await writer.wait_closed()


async def test_a_body_that_drips_is_given_up() -> None:
    async with serving(ROWS, rates=MinimumRates(body=MinimumRate(1000, 0.05))) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 5)
        assert b" 408 " in answer
        assert b"cannot read the body: it came too slowly, less than 1000 bytes a second for 0.05 s" in answer
        assert b"connection: close" in answer.lower()
        writer.close()
        await writer.wait_closed()


async def test_a_body_of_unknown_size_is_refused_as_soon_as_it_is_over_the_limit() -> None:
    async with serving(ROWS, body_limit=1 << 30) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        half = 501
        for _ in range(2):
            writer.write(f"{half:x}\r\n".encode() + b" " * half + b"\r\n")
        # The body has not ended, and need not for the refusal.
        status = await asyncio.wait_for(reader.readline(), 5)
        assert b"413" in status
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "APPLICATION/JSON"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/octet-stream"}, 415),
        ({"Content-Type": "text/plain, application/json"}, 415),
        ({"Origin": "OWN"}, 415),
        ({"Sec-Fetch-Site": "same-origin"}, 415),
        ({"Origin": "OWN", "Content-Type": "application/json"}, 200),
    ],
)
async def test_a_body_has_the_media_type_of_its_route(headers: dict[str, str], status: int) -> None:
    async with serving(ROWS) as client:
        own = f"http://{client.host}:{client.port}"
        sent = {name: own if value == "OWN" else value for name, value in headers.items()}
        reply = await client.post(
            "/x", data=b'{"name": "n"}', headers=sent, skip_auto_headers=["Content-Type"]
        )
        assert reply.status == status
        if status == 415:
            assert "Content-Type: application/json" in (await reply.json())["detail"]
        # Without a body there is nothing to misread.
        bare = await client.post("/x", headers=sent, skip_auto_headers=["Content-Type"])
        assert bare.status == 422


def test_sentences_are_joined() -> None:
    assert warning_headers([]) == {}
    assert warning_headers(["one", "two"]) == {WARNING_HEADER: "one; two"}


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: b", "a\x00b", "ü€\N{GRINNING FACE}", "x" * 100_000])
def test_a_sentence_stays_one_short_line_of_ascii(text: str) -> None:
    value = warning_headers([text])[WARNING_HEADER]
    assert value.isascii()
    assert value.isprintable()
    assert len(value) <= MAX_HEADER_CHARACTERS


def test_of_very_many_sentences_the_first_are_told() -> None:
    value = warning_headers([f"cannot use option {number}" for number in range(500_000)])[WARNING_HEADER]
    assert value.startswith("cannot use option 0; cannot use option 1; ")
    assert len(value) == MAX_HEADER_CHARACTERS
    assert value.endswith("...")
