"""Tests for gatewayd.http.public.completions.tasks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.public.completions.tasks import TaskRoutes
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.chat_runs import ADMIN, OWNER, STRANGER, World, asking, running_world

ACTORS = {"owner": OWNER, "stranger": STRANGER, "admin": ADMIN, "pending": make_actor("p", Role.PENDING)}
MESSAGES = [{"role": "user", "content": "What is it?"}]


@asynccontextmanager
async def site() -> AsyncIterator[tuple[Client, World]]:
    async with running_world() as world:
        routes = TaskRoutes(world.stopping, world.models, world.runs, body_limit=10_000)
        async with serving(routes.routes(), ACTORS) as client:
            yield client, world


async def running(world: World) -> str:
    """Begin an answer that never comes, and return its task."""
    world.pipeline.scripts[""] = ["so far", asyncio.Event()]
    started = await world.runs.start(asking(), OWNER)
    await world.until("chat:completion")
    return started.task_ids[0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/tasks/stop/t"),
        ("GET", "/api/tasks"),
        ("GET", "/api/tasks/chat/c"),
        ("POST", "/api/tasks/chat/c/stop"),
        ("GET", "/api/v1/tasks/config"),
        ("POST", "/api/v1/tasks/title/completions"),
        ("POST", "/api/v1/tasks/tags/completions"),
        ("POST", "/api/v1/tasks/follow_up/completions"),
    ],
)
async def test_rows_are_for_verified_accounts(method: str, path: str) -> None:
    async with site() as (client, _):
        assert (await client.request(method, path)).status == 401
        assert (await client.request(method, path, headers=bearer("pending"))).status == 403


async def test_owner_stops_a_task_once() -> None:
    async with site() as (client, world):
        task_id = await running(world)
        reply = await client.post(f"/api/tasks/stop/{task_id}", headers=bearer("owner"))
        assert reply.status == 200
        assert await reply.json() == {"status": True, "message": f"Task {task_id} successfully stopped."}
        reply = await client.post(f"/api/tasks/stop/{task_id}", headers=bearer("owner"))
        assert reply.status == 200
        assert await reply.json() == {"status": False, "message": f"Task with ID {task_id} not found."}
        assert (world.message().content, world.message().done) == ("so far", True)


async def test_stranger_stops_nothing_and_sees_nothing() -> None:
    async with site() as (client, world):
        task_id = await running(world)
        reply = await client.post(f"/api/tasks/stop/{task_id}", headers=bearer("stranger"))
        assert (await reply.json())["status"] is False
        reply = await client.get("/api/tasks/chat/c", headers=bearer("stranger"))
        assert await reply.json() == {"task_ids": []}
        assert (await client.post("/api/tasks/chat/c/stop", headers=bearer("stranger"))).status == 404
        assert (await client.get("/api/tasks", headers=bearer("stranger"))).status == 403
        assert world.tasks.find(task_id) is not None


async def test_tasks_are_listed() -> None:
    async with site() as (client, world):
        task_id = await running(world)
        assert await (await client.get("/api/tasks", headers=bearer("admin"))).json() == {"tasks": [task_id]}
        for actor in ("owner", "admin"):
            reply = await client.get("/api/tasks/chat/c", headers=bearer(actor))
            assert await reply.json() == {"task_ids": [task_id]}


async def test_chat_is_stopped() -> None:
    async with site() as (client, world):
        await running(world)
        reply = await client.post("/api/tasks/chat/c/stop", headers=bearer("owner"))
        assert await reply.json() == {"status": True, "message": "All tasks of chat c stopped."}
        assert world.message().done
        reply = await client.post("/api/tasks/chat/c/stop", headers=bearer("owner"))
        assert await reply.json() == {"status": True, "message": "No tasks found for chat c."}
        assert (await client.post("/api/tasks/chat/gone/stop", headers=bearer("owner"))).status == 404


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("title", "title", "hello"), ("tags", "tags", []), ("follow_up", "follow_ups", [])],
)
async def test_task_endpoints_answer_with_json_text(name: str, key: str, value: Any) -> None:
    async with site() as (client, world):
        reply = await client.post(
            f"/api/v1/tasks/{name}/completions",
            json={"model": "m", "messages": MESSAGES, "chat_id": "c"},
            headers=bearer("owner"),
        )
        assert reply.status == 200
        completion = await reply.json()
        assert completion["object"] == "chat.completion"
        assert orjson.loads(completion["choices"][0]["message"]["content"]) == {key: value}
        assert "What is it?" in world.source.asked[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"messages": MESSAGES}, 400),
        ({"model": "m"}, 400),
        ({"model": "m", "messages": "x"}, 400),
        ({"model": "gone", "messages": MESSAGES}, 404),
        ([], 400),
    ],
)
async def test_bad_request_is_refused(body: Any, status: int) -> None:
    async with site() as (client, _):
        reply = await client.post("/api/v1/tasks/title/completions", json=body, headers=bearer("owner"))
        assert reply.status == status


async def test_task_at_a_foreign_chat_is_refused() -> None:
    async with site() as (client, world):
        body = {"model": "m", "messages": MESSAGES, "chat_id": "c"}
        reply = await client.post("/api/v1/tasks/title/completions", json=body, headers=bearer("stranger"))
        assert reply.status == 404
        assert world.source.asked == []


async def test_configuration_is_shown() -> None:
    async with site() as (client, _):
        reply = await client.get("/api/v1/tasks/config", headers=bearer("owner"))
        assert (await reply.json())["ENABLE_TITLE_GENERATION"] is True
