"""The official client of the runtimes against the gateway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from ollama import AsyncClient, ResponseError
from ollama import Client as PlainClient

from tests.fakes.daemons.runtime_site import Scene, serving_runtimes, two_runtimes
from tests.fakes.providers.upstream import CUT, Reply, json_reply, ndjson, ollama_reply

HI = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def talking(scene: Scene, who: str = "admin") -> AsyncIterator[AsyncClient]:
    async with serving_runtimes(scene) as server:
        host = str(server.make_url("/ollama"))
        async with AsyncClient(host, headers={"Authorization": f"Bearer {who}"}) as client:
            yield client


async def test_chat() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        answer = await client.chat("far.lone", HI)
        assert answer.message.content == "Hello from lone:latest"
        parts = [part async for part in await client.chat("far.lone", HI, stream=True)]
        assert "".join(part.message.content or "" for part in parts) == "Hello from lone:latest"
        assert parts[-1].done
        assert parts[-1].eval_count == 2


async def test_generate() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        scene.near.script(json_reply({"response": "hello", "done": True}))
        assert (await client.generate("shared", "hi")).response == "hello"
        steps = [ndjson({"response": "hel", "done": False}), ndjson({"response": "lo", "done": True})]
        scene.near.script(Reply(steps=steps, content_type="application/x-ndjson"))
        parts = [part.response async for part in await client.generate("shared", "hi", stream=True)]
        assert parts == ["hel", "lo"]
        assert scene.near.requests[0].path == "/api/generate"


async def test_embed_and_show() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        assert len((await client.embed("near:1b", ["a", "b"])).embeddings) == 2
        scene.near.script(json_reply({"embedding": [0.5]}))
        assert (await client.embeddings("near:1b", "a")).embedding == [0.5]
        scene.near.script(json_reply({"capabilities": ["completion"], "model_info": {"a": 1}}))
        shown = await client.show("near:1b")
        assert (shown.capabilities, shown.modelinfo) == (["completion"], {"a": 1})


async def test_lists() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        models = (await client.list()).models
        assert {model.model for model in models} >= {"near:1b", "far.lone:latest"}
        assert {model.size for model in models} == {1}
        scene.near.listings = [json_reply({"models": [{"model": "near:1b", "context_length": 7}]})]
        scene.far.listings = [json_reply({"models": []})]
        (running,) = (await client.ps()).models
        assert (running.model, running.name, running.context_length) == ("near:1b", "near:1b", 7)


async def test_administration() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        steps = [ndjson({"status": "pulling", "total": 2, "completed": 1}), ndjson({"status": "success"})]
        scene.near.chats = [Reply(steps=steps, content_type="application/x-ndjson")]
        parts = [part async for part in await client.pull("new", stream=True)]
        assert [(part.status, part.total) for part in parts] == [("pulling", 2), ("success", None)]
        scene.near.chats = [json_reply({"status": "success"})] * 3
        assert (await client.pull("new")).status == "success"
        assert (await client.push("near:1b")).status == "success"
        assert (await client.create("mine", from_="near:1b")).status == "success"
        scene.near.chats = [Reply(content_type="")]
        assert (await client.copy("near:1b", "twin")).status == "success"
        scene.near.script(Reply(content_type=""))
        assert (await client.delete("near:1b")).status == "success"


@pytest.mark.parametrize("operation", ["pull", "push", "delete", "create"])
async def test_a_user_may_not_administer(operation: str) -> None:
    async with two_runtimes() as scene, talking(scene, "user") as client:
        with pytest.raises(ResponseError, match="an administrator is needed") as caught:
            await getattr(client, operation)("near:1b")
        assert caught.value.status_code == 403


@pytest.mark.parametrize("operation", ["chat", "generate", "embed", "embeddings", "show"])
async def test_a_user_without_a_grant_finds_no_model(operation: str) -> None:
    async with two_runtimes() as scene, talking(scene, "user") as client:
        with pytest.raises(ResponseError, match="model 'near:1b' not found") as caught:
            await getattr(client, operation)("near:1b")
        assert caught.value.status_code == 404
        assert (await client.list()).models == []


async def test_a_bad_credential_is_told() -> None:
    async with two_runtimes() as scene, talking(scene, "nobody") as client:
        with pytest.raises(ResponseError, match="cannot accept the credential") as caught:
            await client.list()
        assert caught.value.status_code == 401


async def test_a_stream_that_breaks_raises_after_what_came() -> None:
    async with two_runtimes() as scene, talking(scene) as client:
        scene.near.script(
            Reply(
                steps=[ndjson(ollama_reply("a", done=False)), b'{"mess', CUT],
                content_type="application/x-ndjson",
            )
        )
        came = []
        with pytest.raises(ResponseError, match="broke off"):
            async for part in await client.chat("near:1b", HI, stream=True):
                came.append(part.message.content)
        assert came == ["a"]


async def test_a_blob_is_refused_in_words(tmp_path: Any) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x")
    async with two_runtimes() as scene, talking(scene) as client:
        with pytest.raises(ResponseError, match="forwards no files"):
            await client.create_blob(path)


async def test_the_blocking_client() -> None:
    async with two_runtimes() as scene, serving_runtimes(scene) as server:
        host = str(server.make_url("/ollama"))
        with PlainClient(host, headers={"Authorization": "Bearer admin"}) as client:
            models = await asyncio.to_thread(client.list)
            answer = await asyncio.to_thread(partial(client.chat, "near:1b", HI))
            parts = await asyncio.to_thread(lambda: list(client.chat("near:1b", HI, stream=True)))
        assert "near:1b" in {model.model for model in models.models}
        assert answer.message.content == "Hello from near:1b"
        assert "".join(part.message.content or "" for part in parts) == "Hello from near:1b"
