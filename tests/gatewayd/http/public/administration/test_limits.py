"""Tests for gatewayd.http.public.administration.limits, over services in memory."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.limit_fields import LimitTargets
from gatewayd.http.public.administration.limits import LimitRoutes
from tests.fakes.accounts.services import Accounts
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.limits.bench import LimitBench
from tests.fakes.providers.models import make_actor

ACTORS = {"admin": make_actor(), "user": make_actor("u2", Role.USER)}
PATH = "/api/v1/limits"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    accounts = Accounts()
    targets = LimitTargets(accounts.users, accounts.groups, accounts.keys)
    async with serving(LimitRoutes(LimitBench().limits, targets).routes(), ACTORS) as client:
        yield client


async def put(client: Client, body: object) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**bearer("admin"), "Content-Type": "application/json"}
    async with client.put(PATH, data=data, headers=headers) as reply:
        return reply.status, await reply.json()


async def get(client: Client, path: str, credential: str = "admin") -> tuple[int, Any]:
    async with client.get(path, headers=bearer(credential)) as reply:
        return reply.status, await reply.json()


async def test_a_limit_lives_from_put_to_delete(client: Client) -> None:
    status, made = await put(client, {"default": True, "parallel": 3, "budgets": ["10usd/month"]})
    assert (status, made["subject"], made["parallel"], made["budgets"]) == (
        200,
        "default",
        3,
        ["10usd/month"],
    )
    _, changed = await put(client, {"default": True, "parallel": None, "unknown": 1})
    assert (changed["id"], changed["parallel"], changed["budgets"]) == (made["id"], None, ["10usd/month"])
    assert (await get(client, PATH))[1] == {"limits": [changed]}
    assert (await get(client, f"{PATH}/{made['id']}"))[1]["uses"] == []
    [own] = (await get(client, f"{PATH}/own", "user"))[1]["limits"]
    [use] = own["uses"]
    assert (own["id"], use["left"], use["reserved"]) == (made["id"], "10usd", "")
    assert use["resets_at"] > own["created_at"]
    async with client.delete(f"{PATH}/{made['id']}", headers=bearer("admin")) as reply:
        assert (reply.status, (await reply.json())["id"]) == (200, made["id"])
    assert (await get(client, f"{PATH}/{made['id']}"))[0] == 404


@pytest.mark.parametrize("path", [PATH, f"{PATH}/x"])
async def test_only_administrators_see_and_set_limits(client: Client, path: str) -> None:
    assert (await get(client, path, "user"))[0] in {401, 403}
    assert (await get(client, path, "nobody"))[0] == 401


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"default": True, "user": "u", "parallel": 1}, "default"),
        ({"user": "u", "group": "g", "parallel": 1}, "group"),
        ({"each_member": True, "parallel": 1}, "each_member"),
        ({"default": True, "parallel": -1}, "parallel"),
        ({"default": True, "parallel": 1.5}, "parallel"),
        ({"default": True, "parallel": [1]}, "parallel"),
        ({"default": True, "parallel": 10**30}, None),
        ({"default": True, "budgets": "1usd/day"}, "budgets"),
        ({"default": True, "budgets": [{}]}, "budgets.0"),
        ({"default": True, "budgets": ["1usd/day"] * 15_000}, "budgets"),
        ({"default": True, "budgets": ["9" * 500_000]}, "budgets"),
        ({"default": "maybe"}, "default"),
        ({"model": "m" * 256, "parallel": 1}, "model"),
        ({"model": ["m"], "parallel": 1}, "model"),
        ({"warn_percent": 100, "parallel": 1}, "warn_percent"),
        ({}, None),
        (b"[]", None),
        (b"{", None),
    ],
)
async def test_bad_limits_name_their_field(client: Client, body: object, param: str | None) -> None:
    status, reply = await put(client, body)
    assert status in {400, 422}, reply
    assert len(json.dumps(reply)) < 2000
    if param is not None:
        assert reply["error"]["param"] == param, reply
    assert (await get(client, PATH))[1] == {"limits": []}


async def test_unknown_subjects_are_not_found(client: Client) -> None:
    for subject in ({"user": "x" * 10_000}, {"group": "\0"}, {"key": "none"}, {"user": "\u0301"}):
        assert (await put(client, {**subject, "parallel": 1}))[0] == 404
