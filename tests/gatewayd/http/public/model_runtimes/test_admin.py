"""Tests for gatewayd.http.public.model_runtimes.admin."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.fakes.daemons.runtime_site import paths, serving_runtimes, two_runtimes
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, json_reply, ndjson

ADMIN = bearer("admin")
PULLING = ndjson({"status": "pulling manifest"})
SUCCESS = ndjson({"status": "success"})
EMPTY = Reply(content_type="")

OPERATIONS = [
    ("POST", "/api/pull"),
    ("POST", "/api/push"),
    ("DELETE", "/api/push"),
    ("POST", "/api/create"),
    ("POST", "/api/copy"),
    ("DELETE", "/api/delete"),
    ("POST", "/api/unload"),
    ("POST", "/api/blobs/sha256:0"),
]


def asked(fake: FakeUpstream) -> Any:
    """Return the body of the only request that was not for the list of models."""
    (request,) = [item for item in fake.requests if item.path != "/api/tags"]
    return request.json


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_only_administrators_may(method: str, path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        await scene.let("near:1b")
        body = {"model": "near:1b", "source": "near:1b", "destination": "x"}
        for place in ("", "/0") if "blobs" not in path else ("",):
            url = f"/ollama{path}{place}"
            assert (await client.request(method, url, json=body)).status == 401
            reply = await client.request(method, url, json=body, headers=bearer("user"))
            assert reply.status == 403
            assert (await reply.json())["error"] == "cannot do this: an administrator is needed"
        assert scene.near.requests == scene.far.requests == []


@pytest.mark.parametrize("path", ["/api/pull", "/api/push", "/api/create"])
async def test_progress_passes_as_it_comes(path: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.chats = [Reply(steps=[PULLING, SILENCE, SUCCESS], content_type="application/x-ndjson")]
        reply = await client.post(f"/ollama{path}", json={"model": "new"}, headers=ADMIN)
        assert await reply.content.readany() == PULLING
        assert reply.content_type == "application/x-ndjson"
        scene.near.release.set()
        assert await reply.read() == SUCCESS
        assert asked(scene.near) == {"model": "new"}


@pytest.mark.parametrize(
    ("name", "place", "own_name"),
    [
        ("far.lone", "", "lone"),
        ("far.lone:latest", "", "lone:latest"),
        ("far.new", "", "new"),
        ("far.new", "/1", "new"),
        ("new", "/1", "new"),
    ],
)
async def test_a_pull_goes_to_the_runtime_that_is_meant(name: str, place: str, own_name: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.far.chats = [json_reply({"status": "success"})]
        body = {"name": name, "stream": False}
        reply = await client.post(f"/ollama/api/pull{place}", json=body, headers=ADMIN)
        assert await reply.json() == {"status": "success"}
        assert asked(scene.far) == {"name": own_name, "model": own_name, "stream": False}
        assert scene.near.requests == []


async def test_what_was_pulled_is_listed_when_the_answer_ends() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.chats = [Reply(steps=[PULLING, SUCCESS], content_type="application/x-ndjson")]
        scene.near.models = ["new:latest"]
        await (await client.post("/ollama/api/pull", json={"model": "new"}, headers=ADMIN)).read()
        tags = await (await client.get("/ollama/api/tags/0", headers=ADMIN)).json()
        assert [tag["model"] for tag in tags["models"]] == ["new:latest"]


@pytest.mark.parametrize("field", ["model", "name"])
async def test_what_was_deleted_is_not_listed_any_more(field: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.far.script(EMPTY)
        scene.far.models = ["shared:latest"]
        reply = await client.delete("/ollama/api/delete", json={field: "far.lone:latest"}, headers=ADMIN)
        assert (reply.status, await reply.read()) == (200, b"")
        assert paths(scene.far) == [("DELETE", "/api/delete"), ("GET", "/api/tags")]
        assert asked(scene.far)[field] == "lone:latest"
        tags = await (await client.get("/ollama/api/tags/1", headers=ADMIN)).json()
        assert [tag["model"] for tag in tags["models"]] == ["far.shared:latest"]


async def test_copy_stays_within_a_runtime() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.far.chats = [EMPTY]
        body = {"source": "far.lone", "destination": "far.twin"}
        assert (await client.post("/ollama/api/copy", json=body, headers=ADMIN)).status == 200
        assert asked(scene.far) == {"source": "lone", "destination": "twin"}
        assert paths(scene.far)[-1] == ("GET", "/api/tags")


async def test_create_happens_where_the_base_is() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.far.chats = [json_reply({"status": "success"})]
        body = {"model": "far.mine", "from": "far.lone:latest", "system": "be brief", "stream": False}
        assert (await client.post("/ollama/api/create", json=body, headers=ADMIN)).status == 200
        assert asked(scene.far) == {**body, "model": "mine", "from": "lone:latest"}


async def test_unload_is_a_generation_of_nothing() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.chats = [json_reply({"done": True, "done_reason": "unload"})]
        reply = await client.post("/ollama/api/unload", json={"model": "near:1b"}, headers=ADMIN)
        assert (await reply.json())["done_reason"] == "unload"
        assert paths(scene.near) == [("POST", "/api/generate")]
        assert asked(scene.near) == {"model": "near:1b", "keep_alive": 0, "stream": False}


async def test_the_old_way_to_push() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(Reply(steps=[SUCCESS], content_type="application/x-ndjson"))
        reply = await client.delete("/ollama/api/push", json={"model": "near:1b"}, headers=ADMIN)
        assert await reply.read() == SUCCESS
        assert paths(scene.near)[0] == ("POST", "/api/push")


async def test_a_transfer_that_breaks_off_says_so() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.chats = [Reply(steps=[PULLING, CUT], content_type="application/x-ndjson")]
        reply = await client.post("/ollama/api/pull", json={"model": "new"}, headers=ADMIN)
        first, last = (await reply.read()).splitlines()
        assert first == PULLING.strip()
        assert "broke off" in orjson.loads(last)["error"]


async def test_a_client_that_leaves_ends_the_transfer_and_refreshes_the_list() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.chats = [Reply(steps=[PULLING, SILENCE], content_type="application/x-ndjson")]
        reply = await client.post("/ollama/api/pull", json={"model": "new"}, headers=ADMIN)
        await reply.content.readany()
        scene.near.models = ["half:latest"]
        reply.close()
        await asyncio.wait_for(scene.near.closed.wait(), 1)
        tags: list[str] = []
        while tags != ["half:latest"]:
            listed = await (await client.get("/ollama/api/tags/0", headers=ADMIN)).json()
            tags = [tag["model"] for tag in listed["models"]]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/api/pull", {}, 400, "model is missing"),
        ("POST", "/api/copy", {"source": "near:1b"}, 400, "destination is missing"),
        ("POST", "/api/pull/7", {"model": "m"}, 404, "cannot find runtime '7'"),
        ("POST", "/api/blobs/sha256:0", {}, 404, "forwards no files"),
    ],
)
async def test_refusals(method: str, path: str, body: dict[str, Any], status: int, said: str) -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        reply = await client.request(method, f"/ollama{path}", json=body, headers=ADMIN)
        assert reply.status == status
        assert said in (await reply.json())["error"]
        assert scene.near.requests == []


async def test_a_refusal_of_the_runtime_is_passed_on() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        scene.near.script(json_reply({"error": "model 'gone' not found"}, 404))
        reply = await client.delete("/ollama/api/delete", json={"model": "gone"}, headers=ADMIN)
        assert reply.status == 404
        assert "model 'gone' not found" in (await reply.json())["error"]


async def test_a_blob_is_never_there() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as client:
        assert (await client.head("/ollama/api/blobs/sha256:0", headers=ADMIN)).status == 404
