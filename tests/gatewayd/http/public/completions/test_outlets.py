"""Tests for gatewayd.http.public.completions.outlets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.chats.records import Message
from gatewayd.http.public.completions.outlets import CompletedRoutes
from gatewayd.plugins.records import Plugin
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.function_models import FunctionWorld, function, function_world
from tests.fakes.providers.models import make_actor

FILTER = function(
    "shout",
    """
    class Filter:
        def outlet(self, body):
            body["messages"][-1]["content"] = body["messages"][-1]["content"].upper()
            return body
    """,
)
ACTION = function(
    "look",
    """
    class Action:
        def action(self, body, __request__):
            if body["messages"] == []:
                raise ValueError("nothing to see")
            return {"agent": body.get("agent"), "said": body["messages"][-1]["content"]}
    """,
)
ACTORS = {
    "admin": make_actor("admin"),
    "user": make_actor("user", Role.USER),
    "pending": make_actor("pending", Role.PENDING),
}


@asynccontextmanager
async def site(*plugins: Plugin) -> AsyncIterator[tuple[Client, FunctionWorld]]:
    async with function_world(*plugins) as world:
        rows = CompletedRoutes(world.outlets, world.actions, body_limit=2000).routes()
        async with serving(rows, ACTORS) as client:
            yield client, world


def finished(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "assistant", "content": "yo"}], **changes}


@pytest.mark.parametrize("path", ["/api/chat/completed", "/api/chat/actions/look"])
async def test_who_may_ask(path: str) -> None:
    async with site(FILTER, ACTION) as (client, world):
        for who, status in (("nobody", 401), ("pending", 403), ("user", 404), ("admin", 200)):
            reply = await client.post(path, json=finished(), headers=bearer(who))
            assert reply.status == status
        await world.attach("m")
        await world.catalog.grant("m", [Grant("user", "*", "read")], by="admin")
        assert (await client.post(path, json=finished(), headers=bearer("user"))).status == 200


async def test_a_finished_chat_is_filtered_and_comes_back() -> None:
    async with site(FILTER) as (client, _):
        body = finished(own=[1])
        reply = await client.post("/api/chat/completed/", json=body, headers=bearer("admin"))
        assert reply.status == 200
        assert await reply.json() == {**body, "messages": [{"role": "assistant", "content": "YO"}]}


async def test_an_action_answers_what_it_returns() -> None:
    async with site(ACTION) as (client, _):
        body = finished(agent="x")
        reply = await client.post("/api/chat/actions/look", json=body, headers=bearer("admin"))
        assert await reply.json() == {"agent": "x", "said": "yo"}


async def test_what_an_action_raises_is_the_detail() -> None:
    async with site(ACTION) as (client, _):
        body = finished(messages=[])
        reply = await client.post("/api/chat/actions/look", json=body, headers=bearer("admin"))
        assert (reply.status, (await reply.json())["detail"]) == (400, "nothing to see")


@pytest.mark.parametrize("path", ["/api/chat/completed", "/api/chat/actions/look"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"{}", 400),
        (b'{"model": "m"}', 400),
        (b'{"model": "gone", "messages": []}', 404),
        (b'{"model": "m", "messages": [], "x": "' + b"y" * 3000 + b'"}', 413),
    ],
)
async def test_bad_bodies_are_refused(path: str, body: bytes, status: int) -> None:
    async with site(FILTER, ACTION) as (client, _):
        reply = await client.post(
            path, data=body, headers={**bearer("admin"), "Content-Type": "application/json"}
        )
        assert reply.status == status


@pytest.mark.parametrize("path", ["/api/chat/completed", "/api/chat/actions/look"])
async def test_foreign_chats_are_not_found(path: str) -> None:
    async with site(FILTER, ACTION) as (client, world):
        await world.store_chat("somebody", Message("r", None, "assistant", "yo"))
        reply = await client.post(path, json=finished(chat_id="c1", id="r"), headers=bearer("admin"))
        assert reply.status == 404
        assert world.message("r").content == "yo"


@pytest.mark.parametrize("name", ["gone", "shout", "look.gone", "%00", "%2e%2e", "x" * 5000])
async def test_unknown_actions_are_not_found(name: str) -> None:
    async with site(FILTER, ACTION) as (client, _):
        reply = await client.post(f"/api/chat/actions/{name}", json=finished(), headers=bearer("admin"))
        assert reply.status == 404
