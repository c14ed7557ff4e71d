"""Tests for gatewayd.http.public.administration.provider_forms."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.providers.options import MASK
from gatewayd.catalog.providers.records import ManagedProvider, StoredProviders
from gatewayd.http.public.administration.provider_forms import ProviderFormRoutes
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.managed import FakeTester, MemoryProviderStore, managed
from tests.fakes.providers.models import make_actor

ACTORS = {
    "admin": make_actor(),
    "user": make_actor("u2", Role.USER),
    "pending": make_actor("u3", Role.PENDING),
}
HELD = ManagedProvider("p1", "acme", "openai", "https://acme.test/v1", key="held-key")
ROWS = [
    (method, f"/{family}{path}")
    for family in ("openai", "ollama")
    for method, path in (("GET", "/config"), ("POST", "/config/update"), ("POST", "/verify"))
]


class States:
    """The state of one source, which has models once they were waited for."""

    def __init__(self) -> None:
        self.models = 0

    async def list_all(self) -> Sequence[object]:
        self.models = 3
        return ()

    def source_states(self) -> Sequence[Mapping[str, object]]:
        return [{"name": "acme", "models": self.models, "problem": None}]


@asynccontextmanager
async def site() -> AsyncIterator[tuple[Client, MemoryProviderStore, FakeTester]]:
    store, tester = MemoryProviderStore(StoredProviders((HELD,), {}, 1)), FakeTester()
    providers = await managed(store, tester)
    async with serving(ProviderFormRoutes(providers, States()).routes(), ACTORS) as client:
        yield client, store, tester


async def ask(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    reply = await client.request(method, path, headers=bearer("admin"), json=body)
    return reply.status, await reply.json()


@pytest.mark.parametrize(("method", "path"), ROWS)
async def test_rows_are_for_administrators(method: str, path: str) -> None:
    async with site() as (client, store, tester):
        assert (await client.request(method, path)).status == 401
        for who in ("user", "pending"):
            assert (await client.request(method, path, headers=bearer(who))).status == 403
        assert (store.saves, tester.tested) == ([], [])


async def test_providers_are_shown_with_masked_keys_and_their_origin() -> None:
    async with site() as (client, _, _):
        status, shown = await ask(client, "GET", "/openai/config")
    assert (status, shown["OPENAI_API_KEYS"]) == (200, [MASK, MASK])
    assert "held-key" not in str(shown)
    assert "file-key" not in str(shown)
    first, second = shown["OPENAI_API_CONFIGS"].values()
    assert (first["locked_by"], first["origin"]) == ("file /etc/gatewayd.toml line 3", "settings")
    assert (second["locked_by"], second["models"]) == (None, 0)


async def test_what_was_shown_can_be_sent_back_with_a_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatewayd.audit")
    async with site() as (client, store, _):
        shown = (await ask(client, "GET", "/openai/config"))[1]
        shown["OPENAI_API_BASE_URLS"].append("http://new.test")
        shown["OPENAI_API_KEYS"].append("new-key")
        status, changed = await ask(client, "POST", "/openai/config/update", shown)
        assert (status, changed["revision"]) == (200, 2)
        assert changed["OPENAI_API_CONFIGS"]["1"]["models"] == 3
        assert [each.key for each in store.stored.providers] == ["held-key", "new-key"]
        status, refused = await ask(client, "POST", "/openai/config/update", shown)
        assert (status, refused["error"]["param"]) == (409, "revision")
    (line,) = [record for record in caplog.records if record.name == "gatewayd.audit"]
    assert "http://new.test" in str(vars(line))
    assert "new-key" not in str(vars(line))


async def test_a_runtime_is_set_and_tested() -> None:
    async with site() as (client, store, tester):
        body = {"OLLAMA_BASE_URLS": ["http://near.test"], "OLLAMA_API_CONFIGS": {"0": {"key": "k"}}}
        status, shown = await ask(client, "POST", "/ollama/config/update", body)
        assert (status, shown["OLLAMA_API_CONFIGS"]["0"]["key"]) == (200, MASK)
        assert len(store.stored.providers) == 2
        status, offer = await ask(
            client, "POST", "/ollama/verify", {"url": "http://near.test", "config": {"key": MASK}}
        )
        assert (status, offer["version"], [each["id"] for each in offer["data"]]) == (
            200,
            "0.9.1",
            ["m-1", "m-2"],
        )
        assert tester.tested[-1].key == "k"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "url"),
        ({"url": 1}, "url"),
        ({"url": "http://a.test", "key": 1}, "key"),
        ({"url": "http://a.test", "config": []}, "config"),
        ({"url": "ftp://a.test"}, "base_url"),
        ({"url": "http://a.test", "key": MASK}, "key"),
    ],
)
async def test_a_wrong_test_names_the_field(body: Any, param: str) -> None:
    async with site() as (client, _, tester):
        status, refused = await ask(client, "POST", "/openai/verify", body)
        assert (status, refused["error"]["param"], tester.tested) == (400, param, [])


async def test_half_a_body_and_the_largest_lists_change_nothing() -> None:
    async with site() as (client, store, _):
        half = await client.post(
            "/openai/config/update", headers=bearer("admin"), data=b'{"OPENAI_API_BASE_URLS": ["http'
        )
        assert half.status == 415
        half = await client.post(
            "/openai/config/update",
            headers={**bearer("admin"), "Content-Type": "application/json"},
            data=b'{"OPENAI_API_BASE_URLS": ["http',
        )
        assert half.status == 400
        many = {"OPENAI_API_BASE_URLS": ["http://a.test"] * 1000}
        assert (await ask(client, "POST", "/openai/config/update", many))[0] == 400
        assert store.saves == []


async def test_changes_at_once_leave_one_whole_list() -> None:
    async with site() as (client, store, _):
        bodies = [{"OPENAI_API_BASE_URLS": [f"http://n{n}.test/{m}" for m in range(1)]} for n in range(8)]
        found = await asyncio.gather(*(ask(client, "POST", "/openai/config/update", each) for each in bodies))
        assert {status for status, _ in found} == {200}
        assert (len(store.stored.providers), store.stored.revision) == (1, 9)
