"""Tests for gatewayd.http.middleware."""

import asyncio
import logging
from ipaddress import ip_network

import pytest
from aiohttp import web
from multidict import CIMultiDict

from gatewayd.accounts.records import Actor, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.body import json_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, client_address, find_actor
from gatewayd.http.middleware import NO_PAGE_POLICY, EdgeOptions
from gatewayd.http.responses.sse import open_stream
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from tests.fakes.http.public_app import bearer, raw_get, serving
from tests.fakes.providers.models import make_actor

ACTORS = {
    "admin": make_actor("a", Role.ADMIN),
    "user": make_actor("u", Role.USER),
    "pending": make_actor("p", Role.PENDING),
}


async def whoami(request: web.Request) -> web.StreamResponse:
    known = find_actor(request)
    return json_reply({"user": known.user_id if known else None})


def row(access: RouteAccess, path: str = "/x", method: str = "GET") -> Route:
    return Route(method, path, whoami, access, "Tell who asks")


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (RouteAccess.PUBLIC, {None: 200, "bad": 200, "pending": 200, "user": 200, "admin": 200}),
        (RouteAccess.OPTIONAL, {None: 200, "bad": 200, "pending": 200, "user": 200, "admin": 200}),
        (RouteAccess.ACCOUNT, {None: 401, "bad": 401, "pending": 200, "user": 200, "admin": 200}),
        (RouteAccess.VERIFIED, {None: 401, "bad": 401, "pending": 403, "user": 200, "admin": 200}),
        (RouteAccess.ADMIN, {None: 401, "bad": 401, "pending": 403, "user": 403, "admin": 200}),
    ],
)
async def test_each_policy_lets_in_whom_it_should(
    access: RouteAccess, expected: dict[str | None, int]
) -> None:
    async with serving([row(access)], ACTORS) as client:
        for credential, status in expected.items():
            headers = bearer(credential) if credential else {}
            reply = await client.get("/x", headers=headers)
            assert reply.status == status, credential
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            if status == 401:
                assert reply.headers["WWW-Authenticate"] == "Bearer"
                assert isinstance((await reply.json())["detail"], str)


@pytest.mark.parametrize(
    ("headers", "cookies", "user"),
    [
        ({"Authorization": "bearer user"}, {}, "u"),
        ({"x-api-key": "user"}, {}, "u"),
        ({}, {"token": "user"}, "u"),
        ({"Authorization": "Basic abc", "x-api-key": "user"}, {}, "u"),
        ({"Authorization": "Bearer admin", "x-api-key": "user"}, {}, "a"),
        ({"x-api-key": "user"}, {"token": "admin"}, "u"),
    ],
)
async def test_a_credential_may_stand_in_any_of_its_places(
    headers: dict[str, str], cookies: dict[str, str], user: str
) -> None:
    async with serving([row(RouteAccess.VERIFIED)], ACTORS) as client:
        sent = dict(headers)
        if cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        reply = await client.get("/x", headers=sent)
        assert (await reply.json())["user"] == user


async def test_a_bad_bearer_is_not_rescued_by_a_good_key() -> None:
    async with serving([row(RouteAccess.VERIFIED)], ACTORS) as client:
        reply = await client.get("/x", headers={**bearer("bad"), "x-api-key": "user"})
        assert reply.status == 401


async def test_key_header_can_be_renamed() -> None:
    options = EdgeOptions(key_header="x-our-key")
    async with serving([row(RouteAccess.VERIFIED)], ACTORS, options=options) as client:
        assert (await client.get("/x", headers={"x-our-key": "user"})).status == 200
        assert (await client.get("/x", headers={"x-api-key": "user"})).status == 401


async def test_cookie_of_a_foreign_page_changes_nothing() -> None:
    async with serving([row(RouteAccess.VERIFIED, method="POST")], ACTORS) as client:
        cookie = {"Cookie": "token=user"}
        foreign = await client.post("/x", headers={**cookie, "Origin": "https://evil.example"})
        assert foreign.status == 403
        own = await client.post("/x", headers={**cookie, "Origin": f"http://{client.host}:{client.port}"})
        assert own.status == 200


@pytest.mark.parametrize("path", ["/x", "/x/"])
async def test_both_spellings_and_head_are_served(path: str) -> None:
    async with serving([row(RouteAccess.PUBLIC)]) as client:
        assert (await client.get(path)).status == 200
        assert (await client.head(path)).status == 200


@pytest.mark.parametrize("path", ["/a%2fx", "//x", "/./x", "/a/../x", "/%2e%2e/x", "/x%00", "/x%5c"])
async def test_paths_that_could_mean_two_things_are_not_served(path: str) -> None:
    async with serving([row(RouteAccess.PUBLIC), row(RouteAccess.PUBLIC, "/{any:.+}")]) as client:
        answer = await raw_get(client, path)
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b'"detail":"Not Found"' in answer


async def test_unknown_path_and_wrong_method_answer_json() -> None:
    async with serving([row(RouteAccess.PUBLIC)]) as client:
        missing = await client.get("/nope")
        assert (missing.status, (await missing.json())["detail"]) == (404, "Not Found")
        wrong = await client.delete("/x")
        assert (wrong.status, (await wrong.json())["detail"]) == (405, "Method Not Allowed")
        assert "X-Request-Id" in wrong.headers


async def test_request_id_is_taken_only_when_sane() -> None:
    async with serving([row(RouteAccess.PUBLIC)]) as client:
        kept = await client.get("/x", headers={"X-Request-Id": "abc-1"})
        assert kept.headers["X-Request-Id"] == "abc-1"
        made = await client.get("/x", headers={"X-Request-Id": "a b\t" + "c" * 100})
        assert made.headers["X-Request-Id"] != "a b"
        assert len(made.headers["X-Request-Id"]) == 36


async def test_unknown_failure_is_one_line_with_the_request_id(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        raise RuntimeError("secret detail")

    async with serving([Route("GET", "/x", broken, RouteAccess.PUBLIC, "Fail")]) as client:
        with caplog.at_level(logging.INFO, logger="gatewayd"):
            reply = await client.get("/x", headers={"X-Request-Id": "r1"})
        assert reply.status == 500
        assert "secret detail" not in await reply.text()
        records = [record for record in caplog.records if record.name.startswith("gatewayd")]
        assert [getattr(record, "request_id", None) for record in records] == ["r1"]


async def test_refusal_is_one_line_without_the_credential(caplog: pytest.LogCaptureFixture) -> None:
    async with serving([row(RouteAccess.VERIFIED)], ACTORS) as client:
        with caplog.at_level(logging.DEBUG, logger="gatewayd"):
            await client.get("/x", headers=bearer("sk-very-secret"))
        records = [record for record in caplog.records if record.name.startswith("gatewayd")]
        assert len(records) == 1
        assert "sk-very-secret" not in caplog.text


async def test_a_write_runs_to_its_end_though_the_client_leaves() -> None:
    entered, release, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        entered.set()
        await release.wait()
        finished.set()
        return json_reply({})

    async with serving([Route("POST", "/x", slow, RouteAccess.PUBLIC, "Write")]) as client:
        call = asyncio.ensure_future(client.post("/x"))
        await entered.wait()
        call.cancel()
        await asyncio.wait([call])
        release.set()
        await asyncio.wait_for(finished.wait(), 1)


async def test_only_listed_origins_may_read_replies() -> None:
    options = EdgeOptions(allowed_origins=("https://app.example",))
    async with serving([row(RouteAccess.PUBLIC)], options=options) as client:
        good = await client.get("/x", headers={"Origin": "https://app.example"})
        assert good.headers["Access-Control-Allow-Origin"] == "https://app.example"
        bad = await client.get("/x", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in bad.headers
        preflight = await client.options("/x", headers={"Origin": "https://app.example"})
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Credentials"] == "true"


async def test_handlers_that_need_an_actor_say_so_without_one() -> None:
    async def needy(request: web.Request) -> web.StreamResponse:
        return json_reply(actor(request).user_id)

    async with serving([Route("GET", "/x", needy, RouteAccess.PUBLIC, "Need")]) as client:
        assert (await client.get("/x")).status == 401


async def test_retry_after_is_sent() -> None:
    async def busy(request: web.Request) -> web.StreamResponse:
        raise GatewayError(ErrorKind.RATE_LIMITED, "cannot answer now", retry_after=7)

    async with serving([Route("GET", "/x", busy, RouteAccess.PUBLIC, "Be busy")]) as client:
        reply = await client.get("/x")
        assert (reply.status, reply.headers["Retry-After"]) == (429, "7")


@pytest.mark.parametrize(
    ("trusted", "header", "client"),
    [
        ((), "203.0.113.9", "127.0.0.1"),
        (("127.0.0.0/8",), "", "127.0.0.1"),
        (("127.0.0.0/8",), "203.0.113.9", "203.0.113.9"),
        (("127.0.0.0/8",), "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (("127.0.0.0/8", "203.0.113.0/24"), "198.51.100.1, 203.0.113.9", "198.51.100.1"),
        (("127.0.0.0/8",), "nonsense", "nonsense"),
        (("127.0.0.0/8",), "203.0.113.9:53211", "203.0.113.9"),
        (("127.0.0.0/8",), "[2001:db8::1]:53211", "2001:db8::1"),
        (("127.0.0.0/8",), "2001:db8::1", "2001:db8::1"),
        (("127.0.0.0/8", "10.0.0.0/8"), "198.51.100.1:7, 10.0.0.1:8", "198.51.100.1"),
        (("10.0.0.0/8",), "203.0.113.9", "127.0.0.1"),
    ],
)
async def test_forwarded_addresses_are_believed_of_trusted_proxies_only(
    trusted: tuple[str, ...], header: str, client: str
) -> None:
    async def where(request: web.Request) -> web.StreamResponse:
        return json_reply({"client": client_address(request)})

    options = EdgeOptions(trusted_proxies=tuple(ip_network(network) for network in trusted))
    async with serving([Route("GET", "/x", where, RouteAccess.PUBLIC, "Tell")], options=options) as http:
        reply = await http.get("/x", headers={"X-Forwarded-For": header} if header else {})
        assert (await reply.json())["client"] == client


async def test_streams_tell_listed_origins_that_they_may_read() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        reply = await open_stream(request, {})
        await reply.write_eof()
        return reply

    options = EdgeOptions(allowed_origins=("https://app.example",))
    async with serving([Route("GET", "/x", stream, RouteAccess.PUBLIC, "Stream")], options=options) as client:
        reply = await client.get("/x", headers={"Origin": "https://app.example"})
        assert reply.headers["Access-Control-Allow-Origin"] == "https://app.example"


async def test_a_refused_path_has_its_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with serving([row(RouteAccess.PUBLIC)]) as client:
        await raw_get(client, "/a/../x")
    assert [record.message for record in caplog.records if record.name == "gatewayd.http.errors"] == [
        "request refused: Not Found"
    ]


async def test_an_optional_credential_is_not_passed_over_when_nobody_can_check_it() -> None:
    class Broken:
        async def authenticate(self, credential: str, method: str, path: str) -> Actor:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database", retry_after=1)

    async with serving([row(RouteAccess.OPTIONAL)], authenticator=Broken()) as client:
        assert (await client.get("/x", headers=bearer("any"))).status == 503


async def test_a_write_that_fails_after_its_client_left_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def write(request: web.Request) -> web.StreamResponse:
        started.set()
        await release.wait()
        raise RuntimeError("boom")

    async with serving([Route("POST", "/x", write, RouteAccess.PUBLIC, "Write")]) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(b"POST /x HTTP/1.1\r\nHost: gateway\r\nContent-Length: 0\r\n\r\n")
        await asyncio.wait_for(started.wait(), 5)
        writer.close()
        await writer.wait_closed()
        del reader
        release.set()
        async with asyncio.timeout(5):
            while not [record for record in caplog.records if record.message == "request failed"]:
                await asyncio.sleep(0)


async def test_a_forged_line_above_the_proxys_own_is_not_believed() -> None:
    async def where(request: web.Request) -> web.StreamResponse:
        return json_reply({"client": client_address(request)})

    options = EdgeOptions(trusted_proxies=(ip_network("127.0.0.0/8"),))
    async with serving([Route("GET", "/x", where, RouteAccess.PUBLIC, "Tell")], options=options) as http:
        headers = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-For", "203.0.113.9, ::ffff:127.0.0.1")]
        reply = await http.get("/x", headers=CIMultiDict(headers))
        assert (await reply.json())["client"] == "203.0.113.9"


async def test_changes_by_administrators_are_audited_once_they_are_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        raise GatewayError(ErrorKind.CONFLICT, "cannot do it twice")

    rows = [
        row(RouteAccess.ADMIN, "/x/{id}", "POST"),
        row(RouteAccess.ADMIN, "/x"),
        row(RouteAccess.VERIFIED, "/y", "POST"),
        Route("POST", "/z", refuse, RouteAccess.ADMIN, "Refuse"),
        Route("POST", "/ask", whoami, RouteAccess.VERIFIED, "Ask a model", use=RequestUse.ANSWER),
        Route("POST", "/tell", whoami, RouteAccess.VERIFIED, "Ask a model", interruptible=True),
        Route("POST", "/diff", whoami, RouteAccess.VERIFIED, "Compare", asks=True),
        Route("POST", "/pull", whoami, RouteAccess.ADMIN, "Fetch", interruptible=True),
    ]
    async with serving(rows, ACTORS) as client:
        with caplog.at_level(logging.INFO, logger="gatewayd.audit"):
            await client.post("/x/7", headers={**bearer("admin"), "X-Request-Id": "r1"})
            await client.get("/x", headers=bearer("admin"))
            for path in ("/y", "/ask", "/tell", "/diff"):
                await client.post(path, headers=bearer("admin"))
                await client.post(path, headers=bearer("user"))
            await client.post("/z", headers=bearer("admin"))
            await client.post("/x/7", headers=bearer("user"))
            await client.post("/pull", headers=bearer("admin"))
        lines = [record for record in caplog.records if record.name == "gatewayd.audit"]
        assert [record.getMessage() for record in lines] == ["POST /x/{id}", "POST /y", "POST /pull"]
        assert vars(lines[0]).items() >= {"by": "a@example.org", "target": "/x/7", "request_id": "r1"}.items()


async def test_clients_of_the_messages_dialect_get_their_errors_on_the_rows_they_share() -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        raise GatewayError(ErrorKind.NOT_FOUND, "cannot find it")

    row = Route("GET", "/v1/models", refuse, RouteAccess.PUBLIC, "Shared", RouteDialect.OPENAI)
    locked = Route("GET", "/v1/locked", refuse, RouteAccess.VERIFIED, "Locked", RouteDialect.OPENAI)
    async with serving([row, locked]) as client:
        theirs = await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})
        assert (await theirs.json())["error"] == {"type": "not_found_error", "message": "cannot find it"}
        assert theirs.headers["request-id"] == theirs.headers["X-Request-Id"]
        unknown = await client.get("/v1/locked", headers={"anthropic-version": "2023-06-01"})
        assert (await unknown.json())["error"]["type"] == "authentication_error"
        plain = await client.get("/v1/models")
        assert (await plain.json())["error"]["code"] == "not_found"
        assert "request-id" not in plain.headers


async def test_what_no_row_takes_is_refused_in_the_dialect_of_who_asks() -> None:
    async with serving([Route("GET", "/ollama/api/tags", whoami, RouteAccess.PUBLIC, "Tags")]) as client:
        wrong = await client.post("/ollama/api/tags")
        assert (wrong.status, (await wrong.json())["error"]) == (405, "Method Not Allowed")
        unknown = await client.get("/ollama/api/nothing")
        assert (unknown.status, (await unknown.json())["error"]) == (404, "Not Found")
        theirs = await client.get("/v1/nothing", headers={"anthropic-version": "2023-06-01"})
        assert (await theirs.json())["error"] == {"type": "not_found_error", "message": "Not Found"}
        for path in ("/v1/videos", "/api/v1/videos", "/openai/x", "/ollama/v1/x"):
            missing = await (await client.post(path)).json()
            assert missing["error"]["code"] == "endpoint_not_found"
            assert missing["detail"] == "Not Found"
        for path in ("/v1/messages/batches", "/api/message/x", "/ollama/v1/messages/x"):
            reply = await client.post(path)
            missing = await reply.json()
            assert (missing["type"], missing["error"]["type"]) == ("error", "not_found_error")
            assert reply.headers["request-id"] == reply.headers["X-Request-Id"]
        assert (await (await client.get("/v2/messages")).json())["error"]["code"] == "route_not_found"


async def test_a_page_may_send_and_read_the_headers_of_its_dialect() -> None:
    options = EdgeOptions(allowed_origins=("https://page.example",))
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    async with serving([Route("POST", "/x", whoami, RouteAccess.PUBLIC, "X")], options=options) as client:
        names = "anthropic-version,x-api-key,x-stainless-lang"
        reply = await client.options("/x", headers={**asked, "Access-Control-Request-Headers": names})
        assert reply.headers["Access-Control-Allow-Headers"] == names
        assert "request-id" in reply.headers["Access-Control-Expose-Headers"]
        odd = await client.options("/x", headers={**asked, "Access-Control-Request-Headers": "a<b>"})
        assert odd.headers["Access-Control-Allow-Headers"].startswith("Authorization, ")


async def test_an_answer_that_is_no_page_is_shown_in_no_frame() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<p>", headers={"Content-Security-Policy": "sandbox"})

    async def stream(request: web.Request) -> web.StreamResponse:
        reply = await open_stream(request, {})
        await reply.write_eof()
        return reply

    rows = [
        row(RouteAccess.VERIFIED),
        Route("GET", "/page", page, RouteAccess.PUBLIC, "Show"),
        Route("GET", "/stream", stream, RouteAccess.PUBLIC, "Stream"),
    ]
    async with serving(rows, ACTORS) as client:
        for path, credential in (("/x", "user"), ("/x", "bad"), ("/none", ""), ("/stream", "")):
            reply = await client.get(path, headers=bearer(credential))
            assert reply.headers["Content-Security-Policy"] == NO_PAGE_POLICY
            assert NO_PAGE_POLICY.endswith("; sandbox")
        assert (await client.get("/page")).headers["Content-Security-Policy"] == "sandbox"
