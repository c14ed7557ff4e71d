"""Tests for gatewayd.catalog.service."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.model_list import MAX_MODELS
from gatewayd.catalog.records import Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model

ADMIN = make_actor()
USER = make_actor("u2", Role.USER, ("g1",))


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    tasks = TaskRegistry()
    yield tasks
    await tasks.close()


def make_catalog(tasks: TaskRegistry, *sources: FakeSource, **options: bool) -> Catalog:
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions(**options), clock=lambda: 100)  # type: ignore[arg-type]
    catalog.use(sources)
    return catalog


async def test_list_merges_all_sources_by_name(tasks: TaskRegistry) -> None:
    one, two = FakeSource("one", [make_model("b")]), FakeSource("two", [make_model("a")])
    catalog = make_catalog(tasks, one, two)
    assert [model.id for model in await catalog.list(ADMIN)] == ["a", "b"]


async def test_later_source_wins_a_shared_id(tasks: TaskRegistry) -> None:
    one, two = FakeSource("one", [make_model("m")]), FakeSource("two", [make_model("m")])
    catalog = make_catalog(tasks, one, two)
    await catalog.list(ADMIN)
    assert (await catalog.get("m", ADMIN))[1] is two


async def test_dead_source_neither_empties_nor_fails_the_list(tasks: TaskRegistry) -> None:
    dead = FakeSource("dead", failure=GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach dead"))
    catalog = make_catalog(tasks, dead, FakeSource("good", [make_model("m")]))
    assert [model.id for model in await catalog.list(ADMIN)] == ["m"]
    states = {state["name"]: state["problem"] for state in catalog.source_states()}
    assert states == {"dead": "cannot reach dead", "good": None}


async def test_hanging_source_is_waited_for_once_only(
    tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.catalog.service.FIRST_LIST_SECONDS", 0.01)
    hanging = FakeSource("hanging", hold=asyncio.Event())
    catalog = make_catalog(tasks, hanging, FakeSource("good", [make_model("m")]))
    assert [model.id for model in await catalog.list(ADMIN)] == ["m"]
    # Were it waited for again, this would take as long as the test may.
    monkeypatch.setattr("gatewayd.catalog.service.FIRST_LIST_SECONDS", 3600)
    assert [model.id for model in await catalog.list(ADMIN)] == ["m"]


class PausedFake(FakeSource):
    """Answers at once, but the whole process stands still meanwhile."""

    async def list_models(self) -> Sequence[Model]:
        time.sleep(0.2)
        for _ in range(10):
            await asyncio.sleep(0)
        return self.models


async def test_a_pause_of_the_gateway_is_not_charged_to_a_source(
    tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.catalog.service.FIRST_LIST_SECONDS", 0.1)
    monkeypatch.setattr("gatewayd.deadlines.PAUSE_THRESHOLD_SECONDS", 0.02)
    catalog = make_catalog(tasks, PausedFake("paused", [make_model("m")]))
    assert [model.id for model in await catalog.list(ADMIN)] == ["m"]


async def test_failing_source_keeps_its_last_good_list(tasks: TaskRegistry) -> None:
    source = FakeSource("s", [make_model("m")])
    catalog = make_catalog(tasks, source)
    await catalog.list(ADMIN)
    source.failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list")
    assert [model.id for model in await catalog.list(ADMIN, refresh=True)] == ["m"]
    assert catalog.source_states()[0]["problem"] == "cannot list"


async def test_refresh_asks_again(tasks: TaskRegistry) -> None:
    source = FakeSource("s", [make_model("m")])
    catalog = make_catalog(tasks, source)
    await catalog.list(ADMIN)
    await catalog.list(ADMIN)
    assert source.listed == 1
    source.models = [make_model("m"), make_model("n")]
    assert len(await catalog.list(ADMIN, refresh=True)) == 2


class LoadingFake(FakeSource):
    """Lists a model once it has been asked to load it."""

    async def load_model(self, model_id: str) -> bool:
        if model_id != "late":
            return False
        self.models = (make_model("late"),)
        return True


async def test_a_model_that_is_being_loaded_is_waited_for(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, LoadingFake("functions"))
    assert (await catalog.get("late", ADMIN))[0].id == "late"
    with pytest.raises(GatewayError, match="Model not found: 'never'"):
        await catalog.get("never", ADMIN)
    catalog = make_catalog(tasks, LoadingFake("functions"))
    await catalog.put_record(ModelRecord(id="preset", user_id="u1", name="P", base_model_id="late"))
    assert (await catalog.get("preset", ADMIN))[0].id == "preset"


async def test_user_sees_only_granted_models(tasks: TaskRegistry) -> None:
    catalog = make_catalog(
        tasks, FakeSource("s", [make_model("open"), make_model("group"), make_model("shut")])
    )
    await catalog.list(ADMIN)
    assert await catalog.list(USER) == []
    await catalog.grant("open", [Grant("user", "*", "read")], by="u1")
    await catalog.grant("group", [Grant("group", "g1", "read")], by="u1")
    await catalog.grant("shut", [Grant("group", "other", "read")], by="u1")
    assert [model.id for model in await catalog.list(USER)] == ["group", "open"]
    with pytest.raises(GatewayError) as caught:
        await catalog.get("shut", USER)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert caught.value.param == "model"


async def test_switched_off_model_is_hidden(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, FakeSource("s", [make_model("m")]))
    await catalog.list(ADMIN)
    await catalog.grant("m", [Grant("user", "*", "read")], by="u1")
    await catalog.switch("m", active=False)
    assert await catalog.list(USER) == []
    assert len(await catalog.list(ADMIN)) == 1


async def test_bypass_all_shows_everything(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, FakeSource("s", [make_model("m")]), bypass_all=True)
    assert len(await catalog.list(USER)) == 1


async def test_admins_are_bound_when_the_bypass_is_off(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, FakeSource("s", [make_model("m")]), bypass_admins=False)
    assert await catalog.list(ADMIN) == []


@pytest.mark.parametrize(
    ("grant", "param"),
    [
        (Grant("robot", "*", "read"), "access_grants.principal_type"),
        (Grant("user", "", "read"), "access_grants.principal_id"),
        (Grant("user", "*", "own"), "access_grants.permission"),
    ],
)
async def test_bad_grant_is_named(tasks: TaskRegistry, grant: Grant, param: str) -> None:
    catalog = make_catalog(tasks, FakeSource("s", [make_model("m")]))
    await catalog.list(ADMIN)
    with pytest.raises(GatewayError) as caught:
        await catalog.grant("m", [grant], by="u1")
    assert caught.value.param == param


async def test_grant_of_an_unknown_model_is_not_found(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks)
    with pytest.raises(GatewayError) as caught:
        await catalog.grant("none", [], by="u1")
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    "picture", ["javascript:alert(1)", "data:image/svg+xml,x", "data:image/png;base64,PHN2Zz4=", 5]
)
async def test_a_model_has_no_picture_that_could_run(tasks: TaskRegistry, picture: object) -> None:
    catalog = make_catalog(tasks)
    record = ModelRecord(id="m", user_id="u1", name="M", meta={"profile_image_url": picture})
    with pytest.raises(GatewayError) as caught:
        await catalog.put_record(record)
    assert caught.value.param == "meta.profile_image_url"
    assert catalog.list_records() == []
    await catalog.put_record(replace(record, meta={"profile_image_url": "/static/favicon.png"}))


async def test_records_survive_a_reload_and_can_be_removed(tasks: TaskRegistry) -> None:
    store = FakeRecords()
    catalog = Catalog(store, tasks, CatalogOptions(), clock=lambda: 5)
    await catalog.put_record(ModelRecord(id="m", user_id="u1", name="M"))
    again = Catalog(store, tasks, CatalogOptions())
    await again.load()
    assert [record.created_at for record in again.list_records()] == [5]
    await again.remove_record("m")
    with pytest.raises(GatewayError):
        await again.remove_record("m")


async def test_use_returns_the_sources_that_are_no_longer_used(tasks: TaskRegistry) -> None:
    one, two = FakeSource("one", [make_model("a")]), FakeSource("two", [make_model("b")])
    catalog = make_catalog(tasks, one, two)
    await catalog.list(ADMIN)
    assert catalog.use([two]) == [one]
    assert [model.id for model in await catalog.list(ADMIN)] == ["b"]
    assert two.listed == 1


async def test_changes_at_the_same_time_lose_nothing(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, FakeSource("s", [make_model("m")]))
    await catalog.list(ADMIN)
    everybody = Grant("user", "*", "read")
    await catalog.grant("m", [], by="u1")
    await asyncio.gather(
        catalog.grant("m", [everybody], by="u1"),
        catalog.switch("m", active=False),
        catalog.describe(ModelRecord(id="m", user_id="u9", name="M", is_active=False), None),
    )
    record = catalog.find_record("m")
    assert record is not None
    assert (record.grants, record.is_active, record.user_id, record.name) == ((everybody,), False, "u1", "M")


async def test_refresh_of_one_source_is_newer_than_what_was_on_its_way(tasks: TaskRegistry) -> None:
    hold = asyncio.Event()
    one, two = FakeSource("one", [make_model("a")], hold=hold), FakeSource("two", [make_model("b")])
    catalog = make_catalog(tasks, one, two)
    refreshing = asyncio.create_task(catalog.refresh(one))
    while one.listed == 0:
        await asyncio.sleep(0)
    hold.set()
    await refreshing
    assert (one.listed, two.listed) == (2, 1)
    one.models = [make_model("c")]
    await catalog.refresh(one)
    assert [model.id for model in await catalog.list(ADMIN)] == ["b", "c"]
    assert [item.source for item in catalog.listings()] == [one, two]


async def test_a_custom_model_is_listed_as_soon_as_it_is_stored_and_gone_when_removed(
    tasks: TaskRegistry,
) -> None:
    catalog = make_catalog(tasks, FakeSource("one", [make_model("b")]))
    await catalog.put_record(
        ModelRecord("c", "u1", "Custom", "b", grants=(Grant("user", USER.user_id, "read"),))
    )
    assert [model.id for model in await catalog.list(USER)] == ["c"]
    assert (await catalog.get("c", USER))[0].upstream_id == make_model("b").upstream_id
    with pytest.raises(GatewayError):
        await catalog.get("b", USER)
    await catalog.remove_record("c")
    assert [model.id for model in await catalog.list(ADMIN)] == ["b"]


async def test_name_without_a_tag_means_its_tag_latest_everywhere(tasks: TaskRegistry) -> None:
    catalog = make_catalog(tasks, FakeSource("one", [make_model("m:latest"), make_model("n:1b")]))
    await catalog.list(ADMIN)
    granted = await catalog.grant("m", [Grant("user", USER.user_id, "read")], by="u1")
    assert granted.id == "m:latest"
    for name in ("m", "m:latest"):
        found = (await catalog.candidates(name, USER))[0].model
        assert found.id == "m:latest"
        assert catalog.find_record(name) == granted
    with pytest.raises(GatewayError):
        await catalog.candidates("n", ADMIN)
    described = await catalog.describe(ModelRecord("m", "u9", "Named"), None)
    assert (described.id, described.user_id, described.grants) == ("m:latest", "u1", granted.grants)
    on_top = await catalog.put_record(ModelRecord("helpdesk", "u1", "Helpdesk", base_model_id="m"))
    assert on_top.base_model_id == "m:latest"
    assert not (await catalog.switch("m", active=False)).is_active
    with pytest.raises(GatewayError):
        await catalog.candidates("m", USER)
    await catalog.remove_record("m")
    assert catalog.find_record("m:latest") is None


async def test_record_that_was_kept_without_the_tag_is_that_of_the_listed_model(tasks: TaskRegistry) -> None:
    source = FakeSource("one")
    catalog = make_catalog(tasks, source)
    kept = ModelRecord("m", "u1", "M", grants=(Grant("user", USER.user_id, "read"),))
    await catalog.put_record(kept)
    source.models = [make_model("m:latest")]
    await catalog.list(ADMIN, refresh=True)
    assert [model.id for model in await catalog.list(USER)] == ["m:latest"]
    # A model of its own, on top of another one, is another model.
    await catalog.put_record(ModelRecord("x", "u1", "X", base_model_id="gone", grants=kept.grants))
    source.models = [make_model("m:latest"), make_model("x:latest")]
    await catalog.list(ADMIN, refresh=True)
    assert [model.id for model in await catalog.list(USER)] == ["m:latest"]


async def test_models_over_the_limit_of_a_source_are_left_out_and_told(
    tasks: TaskRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    source = FakeSource("vast", [make_model(f"m{number}") for number in range(MAX_MODELS + 5)])
    catalog = make_catalog(tasks, source, FakeSource("small", [make_model("x")]))
    assert len(await catalog.list(ADMIN)) == MAX_MODELS + 1
    states = {state["name"]: (state["models"], state["problem"]) for state in catalog.source_states()}
    assert states["small"] == (1, None)
    assert states["vast"][0] == MAX_MODELS
    assert "more than 10000" in str(states["vast"][1])
    assert "more than 10000" in caplog.text
    assert (await catalog.get("m9999", ADMIN))[1] is source


async def test_many_grants_on_many_models_are_looked_up_not_walked(tasks: TaskRegistry) -> None:
    looked = 0

    class Counting(Grant):
        def __getattribute__(self, name: str) -> object:
            nonlocal looked
            looked += 1
            return super().__getattribute__(name)

    catalog = make_catalog(tasks, FakeSource("one", [make_model(f"m{number}") for number in range(100)]))
    grants = tuple(Counting("user", f"u{number}", "read") for number in range(100, 200))
    for number in range(100):
        await catalog.put_record(ModelRecord(f"m{number}", "owner", "M", grants=grants))
    await catalog.list(USER)
    looked = 0
    assert await catalog.list(USER) == []
    assert looked == 0


async def test_a_model_is_not_unknown_while_a_list_cannot_be_read(tasks: TaskRegistry) -> None:
    source = FakeSource("s", failure=GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list"))
    catalog = make_catalog(tasks, FakeSource("other", [make_model("m")]), source)
    with pytest.raises(GatewayError, match="list of s could not be read yet") as caught:
        await catalog.candidates("x", ADMIN)
    assert (caught.value.kind, caught.value.retry_after) == (ErrorKind.UNAVAILABLE, 10)
    # Whoever has no grant would not get the model of this source either.
    with pytest.raises(GatewayError) as caught:
        await catalog.candidates("x", USER)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert (await catalog.get("m", ADMIN))[0].id == "m"
    source.failure = None
    await catalog.list(ADMIN, refresh=True)
    source.failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list")
    await catalog.list(ADMIN, refresh=True)
    # Its last list counts.
    with pytest.raises(GatewayError) as caught:
        await catalog.candidates("x", ADMIN)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_an_alias_is_the_model_with_its_rights(tasks: TaskRegistry) -> None:
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions(alias_prefix="claude-"), clock=lambda: 100)
    catalog.use([FakeSource("s", [make_model("gpt"), make_model("claude-x"), make_model("m:latest")])])
    await catalog.list(ADMIN)
    assert [catalog.alias_of(name) for name in ("gpt", "claude-x")] == ["claude-gpt", "claude-x"]
    assert (await catalog.get("claude-gpt", ADMIN))[0].id == "gpt"
    assert (await catalog.get("claude-m", ADMIN))[0].id == "m:latest"
    for name, viewer in (("claude-gpt", USER), ("claude-claude-x", ADMIN), ("claude-", ADMIN)):
        with pytest.raises(GatewayError) as caught:
            await catalog.get(name, viewer)
        assert caught.value.kind is ErrorKind.NOT_FOUND
    await catalog.grant("gpt", [Grant("user", "u2", "read")], by="u1")
    assert (await catalog.get("claude-gpt", USER))[0].id == "gpt"


async def test_an_alias_is_not_unknown_while_a_list_cannot_be_read(tasks: TaskRegistry) -> None:
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions(alias_prefix="claude-"), clock=lambda: 100)
    catalog.use([FakeSource("s", [make_model("gpt")])])
    await catalog.list(ADMIN)
    await catalog.grant("gpt", [Grant("user", "u2", "read")], by="u1")
    catalog.use([FakeSource("s", failure=GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list"))])
    for name, kind in (("claude-gpt", ErrorKind.UNAVAILABLE), ("claude-other", ErrorKind.NOT_FOUND)):
        with pytest.raises(GatewayError) as caught:
            await catalog.candidates(name, USER)
        assert caught.value.kind is kind
