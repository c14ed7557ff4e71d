"""Tests for gatewayd.http.public.model_runtimes.unknown_paths."""

import pytest
from aiohttp import ClientPayloadError

from gatewayd.catalog.records import ModelRecord
from gatewayd.http.public.model_runtimes.unknown_paths import KNOWN_OPERATIONS, METHODS
from gatewayd.pipeline.pipeline import NoFilters
from tests.fakes.daemons.runtime_site import paths, serving_runtimes, two_runtimes
from tests.fakes.providers.upstream import CUT, Reply, json_reply

ADMIN = {"Authorization": "Bearer admin"}
USER = {"Authorization": "Bearer user"}


class Filters(NoFilters):
    """Filters that are on."""

    async def are_on(self, model_id: str) -> bool:
        return True


@pytest.mark.parametrize("method", METHODS)
async def test_unknown_path_is_passed_on_for_administrators_alone(method: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        answers = Reply(207, {"X-Own": "no"}, [b"own ", b"words"], content_type="text/x-own")
        scene.near.chats, scene.near.listings = [answers], [answers]
        path = "/ollama/api/experimental/thing%20a?limit=3&x=%2F"
        assert (await client.request(method, path)).status == 401
        assert (await client.request(method, path, headers=USER)).status == 403
        assert scene.near.requests == []
        reply = await client.request(method, path, headers=ADMIN)
        assert (reply.status, reply.content_type, await reply.read()) == (207, "text/x-own", b"own words")
        assert "X-Own" not in reply.headers
        assert paths(scene.near) == [(method, "/api/experimental/thing a")]
        assert dict(scene.near.requests[0].query) == {"limit": "3", "x": "/"}


async def test_runtime_is_that_of_the_path_or_of_the_model() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        answer = json_reply({"ok": True})
        scene.near.chats, scene.far.chats = [answer] * 2, [answer] * 2
        for path, body in (
            ("/ollama/api/own", {"model": "far.lone:latest", "Model": "secret", "x": 1}),
            ("/ollama/api/own/1", {"x": 1}),
            ("/ollama/api/own", {"x": 1}),
        ):
            assert await (await client.post(path, json=body, headers=ADMIN)).json() == {"ok": True}
        sent = [request.json for request in scene.far.requests]
        assert sent == [{"model": "lone:latest", "x": 1}, {"x": 1}]
        assert paths(scene.far) == [("POST", "/api/own")] * 2
        assert paths(scene.near) == [("POST", "/api/own")]
        assert (await client.get("/ollama/api/own/7", headers=ADMIN)).status == 404


async def test_failures_are_the_runtimes_own_or_cut() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(json_reply({"error": "unknown"}, 404), Reply(steps=[b"half", CUT]))
        reply = await client.post("/ollama/api/own", headers=ADMIN)
        assert (reply.status, await reply.json()) == (404, {"error": "unknown"})
        reply = await client.post("/ollama/api/own", headers=ADMIN)
        with pytest.raises(ClientPayloadError):
            await reply.read()


async def test_request_that_filters_or_a_record_cannot_read_is_refused() -> None:
    async with two_runtimes() as scene:
        async with serving_runtimes(scene, Filters()) as client:
            reply = await client.post("/ollama/api/own", json={"model": "near:1b"}, headers=ADMIN)
            assert (reply.status, scene.near.requests) == (400, [])
            assert "cannot read" in (await reply.json())["error"]
            assert (await client.get("/ollama/api/own", headers=ADMIN)).status != 400
            scene.near.requests.clear()
        async with serving_runtimes(scene) as client:
            await scene.catalog.put_record(ModelRecord("near:1b", "u1", "N", params={"system": "s"}))
            reply = await client.post("/ollama/api/own", json={"model": "near:1b"}, headers=ADMIN)
            assert (reply.status, scene.near.requests) == (400, [])


@pytest.mark.parametrize("name", [name for name in KNOWN_OPERATIONS if name != "blobs"])
async def test_wrong_method_on_a_known_path_is_not_passed_on(name: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        assert (await client.patch(f"/ollama/api/{name}", headers=ADMIN)).status == 405
        assert scene.near.requests == []
