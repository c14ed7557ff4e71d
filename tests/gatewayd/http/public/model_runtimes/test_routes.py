"""Tests for gatewayd.http.public.model_runtimes.routes."""

import asyncio
from typing import Any

import orjson
import pytest

from gatewayd.http.public.model_runtimes.routes import ANSWER_OPERATIONS, PROTOCOL_VERSION
from tests.fakes.daemons.runtime_site import BODY_LIMIT, paths, serving_runtimes, two_runtimes
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.models import FakeSource
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, json_reply, ndjson, ollama_reply

ADMIN = bearer("admin")
USER = bearer("user")
CHAT = {"model": "near:1b", "messages": [{"role": "user", "content": "hi"}]}
FIRST = ndjson(ollama_reply("Hel", done=False))
LAST = ndjson(ollama_reply("lo"))


def lines(data: bytes) -> list[Any]:
    return [orjson.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("path", ["/ollama", "/ollama/"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_probe_needs_no_credential(method: str, path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        reply = await client.request(method, path)
        assert reply.status == 200
        assert reply.content_type == "application/json"
        assert await reply.read() == (b'{"status":true}' if method == "GET" else b"")


@pytest.mark.parametrize("path", ["/api/tags", "/api/ps", "/api/version", "/api/tags/0", "/api/version/1"])
async def test_lists_are_for_accounts_that_are_active(path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.listings = [json_reply({"version": "1", "models": []})] * 2
        scene.far.listings = [json_reply({"version": "1", "models": []})] * 2
        url = f"/ollama{path}"
        reply = await client.get(url)
        assert reply.status == 401
        assert await reply.json() == {"error": "Not authenticated", "detail": "Not authenticated"}
        assert (await client.get(url, headers=bearer("pending"))).status == 403
        assert (await client.get(url, headers=USER)).status == 200
        assert (await client.head(url, headers=USER)).status == 200


async def test_tags() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        await scene.let("near:1b")
        listed = await (await client.get("/ollama/api/tags", headers=ADMIN)).json()
        assert {tag["model"]: tag["urls"] for tag in listed["models"]} == {
            "far.lone:latest": [1],
            "far.shared:latest": [1],
            "near:1b": [0],
            "shared:latest": [0],
        }
        listed = await (await client.get("/ollama/api/tags", headers=USER)).json()
        assert [tag["model"] for tag in listed["models"]] == ["near:1b"]
        reply = await client.get("/ollama/api/tags/2", headers=USER)
        assert reply.status == 404
        assert (await reply.json())["error"] == "cannot find runtime '2'"


async def test_ps_and_version() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.listings = [
            json_reply({"models": [{"name": "near:1b"}]}),
            json_reply({"version": "0.9.1"}),
        ]
        scene.far.listings = [json_reply({"models": []}), json_reply({"version": "0.10.0"})]
        loaded = await (await client.get("/ollama/api/ps", headers=ADMIN)).json()
        assert loaded == {"models": [{"name": "near:1b", "model": "near:1b", "urls": [0]}]}
        version = await (await client.get("/ollama/api/version", headers=ADMIN)).json()
        assert version == {"version": "0.9.1"}


async def test_version_without_a_runtime() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.catalog.use([FakeSource("acme")])
        version = await (await client.get("/ollama/api/version", headers=ADMIN)).json()
        assert version == {"version": PROTOCOL_VERSION}


@pytest.mark.parametrize("stream", [None, True])
@pytest.mark.parametrize("place", ["", "/0"])
async def test_a_stream_passes_as_it_comes(place: str, *, stream: bool | None) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(
            Reply(steps=[FIRST, SILENCE, LAST[:20], LAST[20:]], content_type="application/x-ndjson")
        )
        body = CHAT if stream is None else {**CHAT, "stream": stream}
        reply = await client.post(f"/ollama/api/chat{place}", json=body, headers=ADMIN)
        assert reply.status == 200
        assert reply.content_type == "application/x-ndjson"
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert await reply.content.readany() == FIRST
        await scene.near.silent.wait()
        scene.near.release.set()
        assert await reply.read() == LAST
        assert scene.near.requests[0].json == body


async def test_a_whole_answer_passes_as_it_is() -> None:
    raw = b'{ "response": "hello",  "done": true }'
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        told = {"x-ratelimit-remaining-requests": "3", "x-request-id": "r", "retry-after-ms": "1"}
        scene.far.script(Reply(headers=told, steps=[raw[:9], raw[9:]], content_type="application/json"))
        body = {"model": "far.lone", "prompt": "hi", "stream": False}
        reply = await client.post("/ollama/api/generate", json=body, headers=ADMIN)
        assert (reply.content_type, await reply.read()) == ("application/json", raw)
        assert reply.content_length == len(raw)
        assert reply.headers["x-ratelimit-remaining-requests"] == "3"
        assert reply.headers["x-provider-request-id"] == "r"
        assert "retry-after-ms" not in reply.headers
        assert paths(scene.far) == [("POST", "/api/generate")]
        assert scene.far.requests[0].json == {**body, "model": "lone:latest"}


async def test_nothing_of_the_caller_but_the_body_reaches_the_runtime() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        headers = {**ADMIN, "Cookie": "a=b", "X-Own": "c"}
        await client.post("/ollama/api/chat", json={**CHAT, "stream": False}, headers=headers)
        sent = scene.near.requests[0].headers
        assert not {"Authorization", "Cookie", "X-Own"} & set(sent)


def naming(field: str, name: str) -> dict[str, Any]:
    return {field: name, "messages": [], "prompt": "p", "input": "i", "stream": False}


@pytest.mark.parametrize("field", ["model", "name"])
@pytest.mark.parametrize("place", ["", "/0", "/1"])
@pytest.mark.parametrize("path", [path for path, _ in ANSWER_OPERATIONS])
async def test_a_model_without_a_grant_is_not_there(path: str, place: str, field: str) -> None:
    async with two_runtimes(prefix="") as scene, serving_runtimes(scene) as client:
        await scene.let("near:1b")
        answers = set()
        for name in ("shared", "shared:latest", "absent", "absent:latest"):
            body = naming(field, name)
            reply = await client.post(f"/ollama{path}{place}", json=body, headers=USER)
            answers.add((reply.status, (await reply.text()).replace(name, "NAME")))
        sentence = "model 'NAME' not found"
        assert answers == {(404, orjson.dumps({"error": sentence, "detail": sentence}).decode())}
        assert scene.near.requests == scene.far.requests == []


@pytest.mark.parametrize("field", ["model", "name"])
@pytest.mark.parametrize("place", ["", "/0"])
@pytest.mark.parametrize("name", ["shared", "shared:latest"])
@pytest.mark.parametrize("path", [path for path, _ in ANSWER_OPERATIONS])
async def test_a_model_with_a_grant_is_answered(path: str, name: str, place: str, field: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        await scene.let("shared:latest")
        scene.near.script(json_reply({"good": True}))
        reply = await client.post(f"/ollama{path}{place}", json=naming(field, name), headers=USER)
        assert (reply.status, await reply.json()) == (200, {"good": True})
        assert paths(scene.near) == [("POST", path)]
        assert {scene.near.requests[0].json[key] for key in {field, "model"}} == {"shared:latest"}


@pytest.mark.parametrize("path", [path for path, _ in ANSWER_OPERATIONS])
async def test_a_second_name_does_not_reach_another_model(path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        await scene.let("near:1b")
        scene.near.script(json_reply({}))
        body = {**naming("model", "near:1b"), "Model": "shared:latest", "NAME": "shared:latest"}
        await client.post(f"/ollama{path}", json=body, headers=USER)
        assert b"shared" not in scene.near.requests[0].body


@pytest.mark.parametrize("path", [path for path, _ in ANSWER_OPERATIONS])
async def test_asking_needs_an_active_account(path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        assert (await client.post(f"/ollama{path}", json=CHAT)).status == 401
        assert (await client.post(f"/ollama{path}", json=CHAT, headers=bearer("pending"))).status == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "model is missing"),
        ({"model": ""}, "model is missing"),
        ({"model": 5}, "cannot accept model: it is not a text"),
        ({"model": ["near:1b"]}, "cannot accept model: it is not a text"),
        ([], "expected a JSON object"),
    ],
)
async def test_a_request_without_a_model_is_refused(body: Any, said: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        reply = await client.post("/ollama/api/chat", json=body, headers=ADMIN)
        assert reply.status == 400
        assert said in (await reply.json())["error"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_of_another_type_is_refused(content_type: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        headers = {**ADMIN, "Content-Type": content_type}
        reply = await client.post("/ollama/api/chat", data=orjson.dumps(CHAT), headers=headers)
        assert reply.status == 415
        assert content_type in (await reply.json())["error"]


async def test_a_body_over_the_limit_is_refused() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        body = {**CHAT, "filler": "x" * BODY_LIMIT}
        reply = await client.post("/ollama/api/chat", json=body, headers=ADMIN)
        assert reply.status == 413
        assert scene.near.requests == []


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (json_reply({"error": "who are you"}, 401), 502, "it answered 401"),
        (json_reply({"error": "not you"}, 403), 502, "it answered 403"),
        (json_reply({"error": "x" * 70_000}, 400), 400, "xxx"),
        (Reply(500, steps=[b"<html>hi</html>"], content_type="text/html"), 502, "HTML page"),
        (Reply(status=302, headers={"Location": "http://elsewhere/"}), 502, "redirects are not followed"),
        (Reply(steps=[b"<html>hi</html>"], content_type="text/html"), 502, "HTML page"),
        (Reply(before=CUT), 502, "without an answer"),
        (Reply(steps=[CUT]), 502, "broke off"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_before_the_first_byte_is_a_status(
    reply: Reply, status: int, said: str, *, stream: bool
) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        # A connection that was used before is tried once more when it closes without an answer.
        scene.near.script(reply, reply)
        got = await client.post("/ollama/api/chat", json={**CHAT, "stream": stream}, headers=ADMIN)
        answer = await got.json()
        assert got.status == status
        assert said in answer["error"]
        assert "'near'" in answer["error"]
        assert answer["detail"] == answer["error"]


@pytest.mark.parametrize(
    "refusal",
    [
        json_reply({"error": "no such option", "param": [1]}, 400),
        json_reply({"error": "model 'x' not found"}, 404),
        json_reply({"error": "oom"}, 500),
        json_reply({"error": "busy"}, 503, Retry_After="7"),
        Reply(404, steps=[b"404 page not found"], content_type="text/plain"),
        Reply(500, content_type="text/plain"),
    ],
)
@pytest.mark.parametrize("path", ["/ollama/api/chat", "/ollama/api/delete"])
async def test_refusal_of_the_runtime_passes_as_it_is(path: str, refusal: Reply) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(refusal)
        method = "DELETE" if path.endswith("delete") else "POST"
        got = await client.request(method, path, json=CHAT, headers=ADMIN)
        assert got.status == refusal.status
        assert got.content_type == refusal.content_type
        assert await got.read() == b"".join(step for step in refusal.steps if isinstance(step, bytes))
        assert got.headers.get("Retry-After") == refusal.headers.get("Retry-After")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ([CUT], "broke off"),
        ([LAST[:20], CUT], "broke off"),
        ([], "ended before it was complete"),
        ([LAST[:20]], "ended before it was complete"),
        ([b"[1]\n"], "not a JSON object"),
    ],
)
async def test_an_answer_that_breaks_off_says_so_in_its_last_line(rest: list[Any], said: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(Reply(steps=[FIRST, *rest], content_type="application/x-ndjson"))
        reply = await client.post("/ollama/api/chat", json=CHAT, headers=ADMIN)
        data = await reply.read()
        assert data.startswith(FIRST)
        error = orjson.loads(data.splitlines()[-1])["error"]
        assert said in error
        assert "'near'" in error


@pytest.mark.parametrize("before", [b"", FIRST])
async def test_an_error_of_the_runtime_is_its_last_line_and_is_logged(
    before: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    said = ndjson({"error": "out of memory"})
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        steps = [before + said, LAST] if before else [said]
        scene.near.script(Reply(steps=steps, content_type="application/x-ndjson"))
        reply = await client.post("/ollama/api/chat", json=CHAT, headers=ADMIN)
        assert (reply.status, await reply.read()) == (200, before + said)
        assert "provider 'near' reported: out of memory" in caplog.text


async def test_a_whole_answer_that_breaks_off_is_a_status() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(Reply(steps=[b'{"embeddings": [', CUT], content_type="application/json"))
        reply = await client.post("/ollama/api/embed", json={"model": "near:1b", "input": "x"}, headers=ADMIN)
        assert reply.status == 502
        assert "broke off" in (await reply.json())["error"]


@pytest.mark.parametrize("steps", [[FIRST, SILENCE], [SILENCE]])
async def test_a_client_that_leaves_closes_the_runtimes_connection(steps: list[Any]) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(Reply(steps=steps, content_type="application/x-ndjson"))
        sending = asyncio.create_task(client.post("/ollama/api/chat", json=CHAT, headers=ADMIN))
        await scene.near.silent.wait()
        if len(steps) > 1:
            (await sending).close()
        else:
            sending.cancel()
        await asyncio.wait_for(scene.near.closed.wait(), 1)


@pytest.mark.parametrize("path", ["/ollama/api/chat/x", "/ollama/api/chat/1234", "/ollama/api/nothing"])
async def test_no_such_route(path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        assert (await client.post(path, json=CHAT, headers=ADMIN)).status == 404
