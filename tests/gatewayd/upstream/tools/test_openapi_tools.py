"""Tests for gatewayd.upstream.tools.openapi_tools, against a real server on the loopback."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.plugins.tool_results import ServerReply, read_result
from gatewayd.upstream.tools import openapi_tools
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.upstream.tools.openapi_tools import OpenApiTools, description_url, with_authorization
from gatewayd.upstream.tools.requests import ServerResponse
from tests.fakes.http.tool_servers import (
    KEY,
    TICKETS,
    FakeApi,
    api,
    description,
    json_body,
    make_scope,
    operation,
    raw_server,
)


def finder(data_timeout: float = 5.0, call_timeout: float | None = 5.0, **more: Any) -> OpenApiTools:
    return OpenApiTools(data_timeout, call_timeout, more.get("identity"))


async def call(fake: FakeApi, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> ServerReply:
    found = {tool.name: tool for tool in await finder(**more).tools(fake.server())}
    return await found[name].run(arguments or {}, make_scope())


async def refusal(work: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def test_arguments_go_to_path_query_and_body() -> None:
    async with api(key=KEY) as fake:
        reply = await call(fake, "get_ticket", {"ticket": "a/b", "full": True})
        assert reply.data == {"path": "/tickets/a%2Fb?full=true", "method": "GET"}
        assert reply.headers["content-type"].startswith("application/json")
        arguments = {"ticket": "7", "title": "New"}
        await call(fake, "change_ticket", arguments)
        await call(fake, "list_tickets", {"state": ["open", "new"]})
    read, changed, listed = fake.seen
    assert (read.body, read.headers["Authorization"]) == (b"", f"Bearer {KEY}")
    assert (changed.method, changed.path) == ("PUT", "/tickets/7")
    assert (orjson.loads(changed.body), changed.headers["Content-Type"]) == (arguments, "application/json")
    assert listed.query == "state=open&state=new"


async def test_a_body_that_is_no_object_is_sent_bare() -> None:
    item = {"post": operation("put_all", **json_body({"type": "array"}))}
    async with api(document=description(all=item)) as fake:
        await call(fake, "put_all", {"body": [1, 2]})
        assert fake.seen[0].body == b"[1,2]"


@pytest.mark.parametrize(
    ("name", "text", "embeds"),
    [
        ("read_text", "plain words", ()),
        ("show_page", None, ("<h1>Hi</h1>",)),
        ("show_link", None, ("https://example.org/x",)),
    ],
)
async def test_results_are_read_as_those_of_servers(
    name: str, text: str | None, embeds: tuple[str, ...]
) -> None:
    async with api() as fake:
        result = read_result(await call(fake, name), name)
    assert result.embeds == embeds
    assert text in (None, result.text)


async def test_a_result_that_holds_too_much_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ToolServer("s", "s", "http://x", spec=description(a={"get": operation("get_a")}))
    (tool,) = await finder().tools(server)
    much = b'{"a":[' + b"[]," * 5_000_000 + b"[]]}"
    for body, data in ((much, much.decode()), (b'{"a": [1]}', {"a": [1]}), (b"words", "words"), (b"", "")):
        answered = AsyncMock(return_value=ServerResponse(200, {}, body))
        monkeypatch.setattr(openapi_tools, "send_request", answered)
        assert (await tool.run({}, make_scope())).data == data


async def test_a_status_of_an_error_is_told_with_its_text_but_no_key() -> None:
    async with api(key=KEY) as fake:
        error = await refusal(call(fake, "break_down"))
    assert error.message == "HTTP error 422: no way, Bearer [redacted]"


async def test_calls_that_cannot_be_followed_to_an_end() -> None:
    async with api() as fake:
        assert "not followed" in (await refusal(call(fake, "follow_away"))).message
        assert (await call(fake, "follow_here")).data == "plain words"
        assert "over 16777216 bytes" in (await refusal(call(fake, "say_much"))).message
        assert (await refusal(call(fake, "take_long", call_timeout=0.05))).kind is ErrorKind.TIMEOUT
        error = await refusal(call(fake, "change_ticket", {"ticket": "1", "title": {1}}))
        assert error.kind is ErrorKind.INVALID_REQUEST


async def test_a_server_may_have_a_timeout_of_its_own() -> None:
    async with api() as fake:
        server = fake.server(timeout=0.05, functions=("take_long",))
        (tool,) = await finder(call_timeout=None).tools(server)
        assert (await refusal(tool.run({}, make_scope()))).kind is ErrorKind.TIMEOUT


async def test_identity_is_told_in_calls_alone_and_only_when_asked_for() -> None:
    headers = {"X-Own": "fixed", "X-Chat": "{{CHAT_ID}}/{{USER_ID}}"}
    async with api() as fake:
        server = fake.server(headers=headers, functions=("read_text",))
        for identity in (None, IdentityHeaders()):
            (tool,) = await finder(identity=identity).tools(server)
            await tool.run({}, make_scope())
    silent, told = (seen.headers for seen in fake.seen)
    assert silent["X-Chat"] == told["X-Chat"] == "c1/u1"
    assert not any(name.startswith(("X-OpenWebUI", "X-Service")) for name in silent)
    assert (told["X-Service-Chat-Id"], told["X-OpenWebUI-Message-Id"]) == ("c1", "m1")
    for asked in fake.asked:
        assert asked["X-Own"] == "fixed"
        assert "X-Chat" not in asked
        assert "X-Service-Chat-Id" not in asked


async def test_descriptions_are_kept_and_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api(etag='"1"') as fake:
        tools = finder()
        first = await tools.tools(fake.server())
        assert await tools.tools(fake.server()) == first
        assert len(fake.asked) == 1
        monkeypatch.setattr(openapi_tools, "FRESH_SECONDS", 0.0)
        assert await tools.tools(fake.server()) == first
        assert fake.asked[1]["If-None-Match"] == '"1"'
        fake.document, fake.etag = description(a={"get": operation("other")}), '"2"'
        assert [tool.name for tool in await tools.tools(fake.server())] == ["other"]


async def test_a_changed_server_is_asked_anew() -> None:
    async with api() as fake:
        tools = finder()
        await tools.tools(fake.server())
        assert len(await tools.tools(fake.server(functions=("read_text", "show_page")))) == 2
        assert len(fake.asked) == 2


async def test_many_requests_ask_for_a_description_once() -> None:
    async with api(document=None) as fake:
        tools = finder()
        asking = [asyncio.ensure_future(tools.tools(fake.server())) for _ in range(20)]
        while not fake.asked:
            await asyncio.sleep(0)
        fake.document = TICKETS
        fake.gate.set()
        assert all(len(found) == 11 for found in await asyncio.gather(*asking, return_exceptions=False))
        assert len(fake.asked) == 1


async def test_many_requests_wait_for_a_server_that_is_down_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api(document=None) as fake:
        tools = finder(data_timeout=0.1)
        failed = await asyncio.gather(
            *(tools.tools(fake.server()) for _ in range(20)), return_exceptions=True
        )
        assert all(isinstance(error, GatewayError) and error.kind is ErrorKind.TIMEOUT for error in failed)
        assert len(fake.asked) == 1
        fake.gate.set()
        fake.document = TICKETS
        monkeypatch.setattr(openapi_tools, "FAILED_SECONDS", 0.0)
        assert len(await tools.tools(fake.server())) == 11


@pytest.mark.parametrize(
    ("document", "status", "sentence"),
    [
        (b"{", 200, "its description is not JSON"),
        (b"", 200, "its description is not JSON"),
        (b"<html>", 200, "its description is not JSON"),
        (b"[1]", 200, "no 'paths'"),
        (b"x" * (9 * 1024 * 1024), 200, "over 8388608 bytes"),
        (b"{}", 500, "status 500"),
        (b"[" * 200_000, 200, "its description is not JSON"),
        (b"[" + b"[]," * 2_000_000 + b"[]]", 200, "its description contains over 1000000 values"),
        (description(a={"get": operation("x", **json_body({"$ref": "#/no"}))}), 200, "refers to '#/no'"),
        (
            description(**{f"p{n}": {"get": operation(f"f{n}")} for n in range(10_000)}),
            200,
            "10000 operations",
        ),
    ],
    ids=["half", "empty", "html", "list", "huge", "error", "deep", "many", "reference", "operations"],
)
async def test_descriptions_that_are_none_are_told_with_the_name(
    document: Any, status: int, sentence: str
) -> None:
    async with api(document=document, status=status) as fake:
        error = await refusal(finder().tools(fake.server()))
    assert error.message.startswith("cannot use tool server 'tickets': ")
    assert sentence in error.message


async def test_servers_that_are_down_or_speak_something_else() -> None:
    down = ToolServer("down", "down", "http://127.0.0.1:1")
    assert (await refusal(finder().tools(down))).kind is ErrorKind.UPSTREAM_UNREACHABLE
    async with raw_server(b"220 mail ready\r\n") as url:
        error = await refusal(finder().tools(ToolServer("mail", "mail", url)))
        assert (error.kind, "'mail'" in error.message) == (ErrorKind.UPSTREAM_FAILED, True)


async def test_a_description_may_be_given_or_elsewhere() -> None:
    given = ToolServer("s", "s", "http://127.0.0.1:1", spec=description(a={"get": operation("x")}))
    assert [tool.name for tool in await finder().tools(given)] == ["x"]
    async with api() as fake:
        elsewhere = ToolServer("s", "s", "http://127.0.0.1:1", path=f"{fake.url}/openapi.json", key=KEY)
        assert len(await finder().tools(elsewhere)) == 11
        # The key is for the server alone.
        assert "Authorization" not in fake.asked[0]


async def test_asking_looks_at_nothing_that_is_kept() -> None:
    async with api() as fake:
        tools = finder()
        for _ in range(2):
            assert (await tools.ask(fake.server())).title == "Tickets"
        assert len(fake.asked) == 2


def test_addresses_of_descriptions() -> None:
    def url(path: str) -> str:
        return description_url(ToolServer("s", "s", "http://x/api/", path=path))

    assert url("openapi.json") == url("/openapi.json") == "http://x/api/openapi.json"
    assert url("https://y/z.json") == "https://y/z.json"


def test_own_credentials_in_headers_win() -> None:
    server = ToolServer("s", "s", "http://x", key="k")
    assert with_authorization(server, {"A": "b"}) == {"Authorization": "Bearer k", "A": "b"}
    assert with_authorization(server, {"authorization": "Basic x"}) == {"authorization": "Basic x"}
