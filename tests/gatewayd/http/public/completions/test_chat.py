"""Tests for gatewayd.http.public.completions.chat."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.completions.chat import PATHS, ChatRoutes
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model
from tests.fakes.storage.chat_runs import OWNER, STRANGER, World, make_plain_runs, running_world

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def chatting(source: FakeSource) -> AsyncIterator[Client]:
    tasks = TaskRegistry()
    admin = make_actor()
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
    catalog.use([source])
    await catalog.list(admin)
    pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
    runs = make_plain_runs(catalog, pipeline, tasks)
    routes = ChatRoutes(runs, body_limit=100_000, clock=lambda: 1)
    actors = {"admin": admin, "user": make_actor("u", Role.USER), "pending": make_actor("p", Role.PENDING)}
    async with serving(routes.routes(), actors) as client:
        yield client
    await tasks.close()


@pytest.mark.parametrize("path", PATHS)
async def test_answers_under_every_alias_to_those_who_may(path: str) -> None:
    path = path.replace("{id:.+}", "m")
    async with chatting(FakeSource(models=[make_model("m")])) as client:
        assert (await client.post(path, json=BODY)).status == 401
        assert (await client.post(path, json=BODY, headers=bearer("pending"))).status == 403
        assert (await client.post(path, json=BODY, headers=bearer("user"))).status == 404
        reply = await client.post(path, json=BODY, headers=bearer("admin"))
        assert reply.status == 200
        assert (await reply.json())["choices"][0]["message"]["content"] == "hello"


async def test_stream_passes_bytes_and_ends_with_done() -> None:
    raw = b'data: { "id": "c" }\n\n'
    source = FakeSource(
        models=[make_model("m")], script=lambda _: [CompletionChunk(raw=raw), CompletionChunk(raw=raw)]
    )
    async with chatting(source) as client:
        reply = await client.post(PATHS[0], json={**BODY, "stream": True}, headers=bearer("admin"))
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert await reply.read() == raw * 2 + b"data: [DONE]\n\n"


async def test_failure_before_the_first_byte_is_a_status() -> None:
    failure = GatewayError(ErrorKind.RATE_LIMITED, "cannot get an answer from 'acme'", retry_after=9)
    source = FakeSource(models=[make_model("m")], script=lambda _: [failure])
    async with chatting(source) as client:
        reply = await client.post(PATHS[0], json={**BODY, "stream": True}, headers=bearer("admin"))
        assert (reply.status, reply.headers["Retry-After"]) == (429, "9")
        assert (await reply.json())["error"]["type"] == "rate_limit_error"


async def test_failure_after_the_first_byte_is_in_band_and_without_done() -> None:
    broken: list[CompletionChunk | Exception] = [
        CompletionChunk(raw=b"data: {}\n\n"),
        GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot"),
    ]
    source = FakeSource(models=[make_model("m")], script=lambda _: broken)
    async with chatting(source) as client:
        reply = await client.post(PATHS[0], json={**BODY, "stream": True}, headers=bearer("admin"))
        frames = (await reply.read()).split(b"\n\n")
        assert orjson.loads(frames[1].removeprefix(b"data: "))["error"]["code"] == "upstream_failed"
        assert b"[DONE]" not in b"".join(frames)


async def test_unused_file_is_warned_about_in_a_header() -> None:
    async with chatting(FakeSource(models=[make_model("m")])) as client:
        body = {**BODY, "files": [{"type": "collection", "id": "k1"}]}
        reply = await client.post(PATHS[0], json=body, headers=bearer("admin"))
        assert reply.status == 200
        assert "k1" in reply.headers["X-Gateway-Warning"]


async def test_client_that_leaves_closes_a_silent_source() -> None:
    closed = asyncio.Event()

    class Silent(FakeSource):
        async def stream(self, *_: object) -> AsyncIterator[CompletionChunk]:
            try:
                yield CompletionChunk(raw=b"data: {}\n\n")
                await asyncio.Event().wait()
            finally:
                closed.set()

    async with chatting(Silent(models=[make_model("m")])) as client:
        reply = await client.post(PATHS[0], json={**BODY, "stream": True}, headers=bearer("admin"))
        await reply.content.readany()
        reply.close()
        await asyncio.wait_for(closed.wait(), 1)


async def test_a_file_reference_cannot_write_headers() -> None:
    async with chatting(FakeSource(models=[make_model("m")])) as client:
        forged = {"type": "a\r\nSet-Cookie: b=c", "id": "k\N{SNOWMAN}"}
        files = [forged, *({"type": "file", "id": "x" * 999} for _ in range(50))]
        reply = await client.post(PATHS[0], json={**BODY, "files": files}, headers=bearer("admin"))
        assert reply.status == 200
        assert "Set-Cookie" not in reply.headers
        assert "Set-Cookie: b=c" in reply.headers["X-Gateway-Warning"]


@asynccontextmanager
async def chatting_with_runs() -> AsyncIterator[tuple[Client, World]]:
    async with running_world() as world:
        routes = ChatRoutes(world.runs, body_limit=100_000, clock=lambda: 1)
        async with serving(routes.routes(), {"owner": OWNER, "stranger": STRANGER}) as client:
            yield client, world


async def test_answer_that_is_not_waited_for_is_a_task() -> None:
    async with chatting_with_runs() as (client, world):
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = [go_on, "hello"]
        body = {**BODY, "stream": True, "chat_id": "c", "id": "a", "session_id": "api-1"}
        reply = await client.post(PATHS[0], json=body, headers=bearer("owner"))
        assert reply.status == 200
        told = await reply.json()
        task_ids = [info.id for info in world.tasks.started(chat_id="c")]
        assert told == {
            "status": True,
            "task_ids": task_ids,
            "task_id": task_ids[0],
            "chat_id": "c",
            "message_ids": ["a"],
        }
        go_on.set()
        await world.ended()
        assert world.message().content == "hello"


async def test_answer_in_a_chat_is_streamed_and_kept() -> None:
    async with chatting_with_runs() as (client, world):
        world.pipeline.scripts[""] = ["Hel", "lo"]
        world.pipeline.sources = [{"source": {"name": "book"}, "document": [], "metadata": []}]
        body = {**BODY, "stream": True, "chat_id": "c", "id": "a"}
        reply = await client.post(PATHS[0], json=body, headers=bearer("owner"))
        frames = [frame.removeprefix(b"data: ") for frame in (await reply.read()).split(b"\n\n") if frame]
        assert orjson.loads(frames[0])["sources"] == world.pipeline.sources
        assert [orjson.loads(frame)["choices"][0]["delta"]["content"] for frame in frames[1:-1]] == [
            "Hel",
            "lo",
        ]
        assert frames[-1] == b"[DONE]"
        assert world.message().content == "Hello"


async def test_whole_answer_in_a_chat_is_kept() -> None:
    async with chatting_with_runs() as (client, world):
        body = {**BODY, "chat_id": "c", "id": "a"}
        reply = await client.post(PATHS[0], json=body, headers=bearer("owner"))
        assert (await reply.json())["choices"][0]["message"]["content"] == "hello"
        assert world.message().content == "hello"


async def test_client_that_leaves_in_the_middle_leaves_a_whole_message() -> None:
    async with chatting_with_runs() as (client, world):
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = ["one", go_on, "two"]
        body = {**BODY, "stream": True, "chat_id": "c", "id": "a"}
        reply = await client.post(PATHS[0], json=body, headers=bearer("owner"))
        await reply.content.readany()
        reply.close()
        await client.close()
        go_on.set()
        await world.ended()
        assert (world.message().content, world.message().done) == ("onetwo", True)


async def test_client_that_leaves_before_the_first_byte_leaves_a_whole_message() -> None:
    async with chatting_with_runs() as (client, world):
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = [go_on, "hello"]
        body = {**BODY, "chat_id": "c", "id": "a"}
        asked = asyncio.ensure_future(client.post(PATHS[0], json=body, headers=bearer("owner")))
        await world.until("chat:active")
        asked.cancel()
        go_on.set()
        await world.ended()
        assert world.message().content == "hello"


async def test_foreign_chat_is_not_found() -> None:
    async with chatting_with_runs() as (client, world):
        for more in ({}, {"id": "a"}, {"id": "a", "session_id": "s"}):
            body = {**BODY, "chat_id": "c", **more}
            reply = await client.post(PATHS[0], json=body, headers=bearer("stranger"))
            assert reply.status == 404
            assert "chat" in (await reply.json())["error"]["message"]
        assert world.pipeline.asked == []


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"session_id": "s", "chat_id": "gone"}, 404),
        ({"session_id": "s", "chat_id": 3}, 400),
        ({"chat_id": "c", "id": []}, 200),
        ({"chat_id": "c", "id": ["a"]}, 400),
        ({"chat_id": "c", "user_message": {"id": "q"}, "messages": 3}, 400),
        ({"messages": []}, 400),
        ({"session_id": "s"}, 200),
        ({"chat_id": "", "session_id": ""}, 200),
        ({"chat_id": "gone", "id": "a"}, 200),
    ],
)
async def test_odd_requests(more: dict[str, Any], status: int) -> None:
    async with chatting_with_runs() as (client, world):
        reply = await client.post(PATHS[0], json={**BODY, **more}, headers=bearer("owner"))
        assert reply.status == status, await reply.text()
        assert list(world.state.messages) == ["c"]


async def test_history_stands_for_the_messages() -> None:
    async with chatting_with_runs() as (client, world):
        question = {"id": "q2", "parentId": "q", "content": "And then?"}
        body = {"model": "m", "chat_id": "c", "id": "a", "user_message": question}
        reply = await client.post(PATHS[0], json=body, headers=bearer("owner"))
        assert reply.status == 200
        asked = world.pipeline.asked[0].body["messages"]
        assert [message["content"] for message in asked] == ["What is it?", "And then?"]
        assert world.message("a").parent_id == "q2"


async def test_the_path_goes_before_the_model_of_the_body() -> None:
    source = FakeSource(models=[make_model("m"), make_model("other")])
    async with chatting(source) as client:
        path = "/openai/deployments/m/chat/completions?api-version=2024-10-21"
        asked = {**BODY, "model": "other"}
        assert (await client.post(path, json=asked, headers={"api-key": "admin"})).status == 200
        assert source.asked[-1]["model"] == "up-m"
        assert (await client.post(path, json=BODY, headers={"api-key": "nobody"})).status == 401
        away = await client.post("/v1/chat/completions", json=asked, headers={"api-key": "admin"})
        assert away.status == 401
