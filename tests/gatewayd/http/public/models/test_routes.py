"""Tests for gatewayd.http.public.models.routes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.http.public.models.routes import LISTS, PublicModelRoutes
from gatewayd.pipeline.functions.model_actions import ModelActionSet
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.public_app import Client, bearer, raw_get, serving
from tests.fakes.plugins.memory import plugin_of
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model

PUBLIC = {"principal_type": "user", "principal_id": "*", "permission": "read"}


FEW = (make_model("acme/m:1", detail={"openai": {"id": "m"}}), make_model("b"))


@asynccontextmanager
async def listing(models: Sequence[Model] = FEW, buttons: Any = None) -> AsyncIterator[Client]:
    tasks = TaskRegistry()
    admin = make_actor()
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions(), clock=lambda: 7)
    catalog.use([FakeSource(models=list(models))])
    await catalog.list(admin)
    actors = {
        "admin": admin,
        "user": make_actor("u", Role.USER),
        "other": make_actor("o", Role.USER),
        "pending": make_actor("p", Role.PENDING),
    }
    async with serving(PublicModelRoutes(catalog, buttons).routes(), actors) as client:
        yield client
    await tasks.close()


@pytest.mark.parametrize("path", ["/api/models", "/api/v1/models", "/v1/models"])
async def test_lists_and_single_models(path: str) -> None:
    async with listing() as client:
        assert (await client.get(path)).status == 401
        assert (await client.get(path, headers=bearer("pending"))).status == 403
        assert (await (await client.get(path, headers=bearer("user"))).json())["data"] == []
        answer = await (await client.get(path, headers=bearer("admin"))).json()
        assert answer["object"] == "list"
        first = answer["data"][0]
        assert (first["id"], first["owned_by"], first["openai"]) == ("acme/m:1", "openai", {"id": "m"})
        one = await client.get(f"{path}/acme/m:1", headers=bearer("admin"))
        assert (await one.json())["id"] == "acme/m:1"
        assert (await client.get(f"{path}/nope", headers=bearer("admin"))).status == 404
        assert (await client.get(f"{path}/b", headers=bearer("user"))).status == 404


async def test_a_long_list_is_kept_for_its_caller_until_a_right_changes() -> None:
    names = [f"m{number:04}" for number in range(1500)]
    async with listing([make_model(name) for name in names]) as client:

        async def ids(caller: str) -> list[str]:
            answer = await client.get("/api/models", headers=bearer(caller))
            return [model["id"] for model in (await answer.json())["data"]]

        assert [await ids("admin") for _ in range(2)] == [names] * 2
        assert [await ids("user") for _ in range(2)] == [[]] * 2
        grant = {"id": "m0007", "access_grants": [PUBLIC]}
        await client.post("/api/v1/models/model/access/update", json=grant, headers=bearer("admin"))
        assert [await ids("user") for _ in range(2)] == [["m0007"]] * 2
        await client.post("/api/v1/models/model/toggle?id=m0007", headers=bearer("admin"))
        assert await ids("user") == []
        assert await ids("admin") == names


class SwitchedOffButtons:
    """The button of a function that is switched off while it is read, once."""

    def __init__(self) -> None:
        action = plugin_of("press", "class Action:\n    pass", is_global=True)
        button = {"id": "press", "name": "Press", "description": "", "icon": None}
        self.sets = [ModelActionSet(actions=[(action, button)])]

    def may_have_any(self) -> bool:
        return False

    async def read(self) -> ModelActionSet:
        return self.sets.pop() if self.sets else ModelActionSet()


async def test_a_list_with_the_button_of_a_function_that_is_off_is_not_kept() -> None:
    async with listing(buttons=SwitchedOffButtons()) as client:
        shown = [await (await client.get("/api/models", headers=bearer("admin"))).text() for _ in range(3)]
    assert ["press" in text for text in shown] == [True, False, False]


async def test_encoded_slash_in_an_id_is_the_slash() -> None:
    async with listing() as client:
        answer = await raw_get(client, "/v1/models/acme%2Fm:1")
        assert answer.startswith(b"HTTP/1.1 401 ")


async def test_admin_grants_toggles_and_deletes() -> None:
    async with listing() as client:
        admin, user = bearer("admin"), bearer("user")
        form = {"id": "b", "access_grants": [PUBLIC]}
        path = "/api/v1/models/model/access/update"
        assert (await client.post(path, json=form)).status == 401
        assert (await client.post(path, json=form, headers=user)).status == 403
        record = await (await client.post(path, json=form, headers=admin)).json()
        assert (record["id"], record["access_grants"], record["created_at"]) == ("b", [PUBLIC], 7)
        seen = await (await client.get("/api/models", headers=user)).json()
        assert [model["id"] for model in seen["data"]] == ["b"]
        assert seen["data"][0]["info"]["is_active"] is True
        await client.post("/api/v1/models/model/toggle?id=b", headers=admin)
        assert (await (await client.get("/api/models", headers=user)).json())["data"] == []
        assert (
            await client.post("/api/v1/models/model/delete", json={"id": "b"}, headers=admin)
        ).status == 200
        assert (await client.get("/api/v1/models/model?id=b", headers=admin)).status == 404


async def test_create_update_and_show_a_record() -> None:
    async with listing() as client:
        admin = bearer("admin")
        made = await client.post("/api/v1/models/create", json={"id": "b", "name": "Bee"}, headers=admin)
        assert (await made.json())["name"] == "Bee"
        await client.post(
            "/api/v1/models/model/access/update", json={"id": "b", "access_grants": [PUBLIC]}, headers=admin
        )
        kept = await client.post(
            "/api/v1/models/model/update", json={"id": "b", "name": "Bea"}, headers=admin
        )
        assert (await kept.json())["access_grants"] == [PUBLIC]
        shown = await (await client.get("/api/v1/models/model?id=b", headers=admin)).json()
        assert (shown["name"], shown["write_access"]) == ("Bea", True)
        listed = await (await client.get("/api/v1/models/list", headers=admin)).json()
        assert listed["total"] == 1
        base = await (await client.get("/api/models/base", headers=admin)).json()
        assert len(base["data"]) == 2


@pytest.mark.parametrize(
    ("form", "status"),
    [({}, 422), ({"id": ""}, 400), ({"id": "x" * 300}, 400), ({"id": "x", "base_model_id": "x"}, 400)],
)
async def test_bad_records_are_refused(form: dict[str, str], status: int) -> None:
    async with listing() as client:
        reply = await client.post("/api/v1/models/create", json=form, headers=bearer("admin"))
        assert reply.status == status


USERS = {"id", "name", "is_active", "meta", "updated_at", "created_at"}
EDITORS = {"user_id", "base_model_id", "params", "access_grants"}


@pytest.mark.parametrize(
    ("method", "path", "users", "admins"),
    [
        *(("GET", path, USERS, USERS | EDITORS) for path in LISTS),
        *(("GET", f"{path}/c", USERS, USERS | EDITORS) for path in LISTS),
        ("GET", "/api/models/base", 403, USERS | EDITORS),
        ("GET", "/api/v1/models/base", 403, USERS | EDITORS),
        ("GET", "/api/v1/models/list", 403, USERS | EDITORS),
        ("GET", "/api/v1/models/model?id=c", 403, USERS | EDITORS | {"write_access"}),
        ("POST", "/api/v1/models/create", 403, USERS | EDITORS),
        ("POST", "/api/v1/models/model/update", 403, USERS | EDITORS),
        ("POST", "/api/v1/models/model/access/update", 403, USERS | EDITORS),
        ("POST", "/api/v1/models/model/toggle?id=c", 403, USERS | EDITORS),
    ],
)
@pytest.mark.parametrize("right", ["read", "write"])
async def test_who_reads_what_of_a_record(
    method: str, path: str, users: Any, admins: set[str], right: str
) -> None:
    async with listing() as client:
        grants = [{**PUBLIC, "principal_id": "u", "permission": right}]
        form = {"id": "c", "base_model_id": "b", "params": {"system": "secret"}, "access_grants": grants}
        form["meta"] = {"description": "Helps", "knowledge": [{"id": "k"}]}
        reply = await client.post("/api/v1/models/create", json=form, headers=bearer("admin"))
        assert reply.status == 200, await reply.text()
        for credential, expected in (
            ("user", users),
            ("other", 403 if users == 403 else None),
            ("admin", admins),
        ):
            reply = await client.request(method, path, json=form, headers=bearer(credential))
            if expected == 403:
                assert reply.status == 403
                continue
            info = _info_of(await reply.json())
            assert (None if info is None else set(info)) == expected
            if info is not None:
                assert ("knowledge" in info["meta"]) is (credential == "admin")
                assert info["meta"]["description"] == "Helps"


def _info_of(answer: Any) -> Any:
    """Return what an answer tells of the record of model `c`: an element, one of a list, or the record."""
    listed = answer.get("data") or answer.get("items")
    found = answer if listed is None else next((one for one in listed if one["id"] == "c"), {})
    return found.get("info", found if "updated_at" in found else None)


async def test_the_official_client_of_the_messages_dialect_lists_models() -> None:
    async with listing() as client:
        base = str(client.make_url("/api"))
        async with anthropic.AsyncAnthropic(api_key="admin", base_url=base, max_retries=0) as sdk:
            assert [model.id async for model in sdk.models.list()] == ["acme/m:1", "b"]
            assert [model.id async for model in sdk.models.list(limit=1)] == ["acme/m:1", "b"]
            assert [model.id async for model in sdk.models.list(limit=1, before_id="b")] == ["acme/m:1"]
            one = await sdk.models.retrieve("b")
            assert (one.id, one.type, one.display_name, one.created_at.year) == ("b", "model", "b", 1970)
            with pytest.raises(anthropic.NotFoundError) as missing:
                await sdk.models.retrieve("nope")
            assert missing.value.body["error"]["type"] == "not_found_error"
            assert missing.value.request_id
            with pytest.raises(anthropic.BadRequestError, match="after_id"):
                await sdk.models.list(after_id="nope")
        async with anthropic.AsyncAnthropic(api_key="wrong", base_url=base, max_retries=0) as sdk:
            with pytest.raises(anthropic.AuthenticationError):
                await sdk.models.list()


async def test_only_clients_of_the_messages_dialect_get_its_shape() -> None:
    async with listing() as client:
        plain = await (await client.get("/v1/models?limit=1", headers=bearer("admin"))).json()
        assert len(plain["data"]) == 2
        assert "has_more" not in plain
        assert "display_name" not in plain["data"][0]
        missing = await client.get("/v1/models/nope", headers=bearer("admin"))
        assert (await missing.json())["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("meta", "param"),
    [
        ({"family": "gpt-5.2", "provider_rules": {"drop": ["seed"], "efforts": ["low"]}}, None),
        ({"provider_rules": None}, None),
        ({"family": 7}, "meta.family"),
        ({"family": "x" * 257}, "meta.family"),
        ({"provider_rules": []}, "meta.provider_rules"),
        ({"provider_rules": {"odd": 1}}, "meta.provider_rules"),
        ({"provider_rules": {"drop": "seed"}}, "meta.provider_rules.drop"),
        ({"provider_rules": {"ranges": {"temperature": [[0], 1]}}}, "meta.provider_rules.ranges"),
    ],
)
async def test_family_and_rules_of_a_record(meta: dict[str, Any], param: str | None) -> None:
    async with listing() as client:
        reply = await client.post(
            "/api/v1/models/create", json={"id": "b", "meta": meta}, headers=bearer("admin")
        )
        answer = await reply.json()
        if param is None:
            assert (reply.status, answer["meta"]) == (200, meta)
        else:
            assert (reply.status, answer["error"]["param"]) == (400, param)
