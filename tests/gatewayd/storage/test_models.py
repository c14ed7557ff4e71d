import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.tables.accounts import GrantRow

FULL = ModelRecord(
    id="org/model:7b é",
    user_id="u1",
    name="Модель",
    base_model_id="org/base",
    params={"temperature": 0.5, "stop": ["1"]},
    meta={"description": None},
    is_active=False,
    grants=(Grant("user", "*", "read"), Grant("group", "g1", "write"), Grant("group", "g1", "read")),
    updated_at=2,
    created_at=1,
)


@pytest.fixture
def models(database: Database) -> TortoiseModels:
    return TortoiseModels()


async def test_a_record_comes_back_as_it_was(models: TortoiseModels) -> None:
    await models.put(FULL)
    assert await models.find(FULL.id) == FULL
    assert await models.list() == [FULL]


async def test_what_is_absent_is_none_or_false(models: TortoiseModels) -> None:
    assert await models.find("x") is None
    assert await models.find("\x00") is None
    assert await models.list() == []
    assert not await models.remove("x")
    assert not await models.remove("\x00")


async def test_a_record_is_replaced_with_its_grants(models: TortoiseModels) -> None:
    await models.put(FULL)
    fresh = replace(
        FULL, name="new", base_model_id=None, grants=(Grant("user", "u2", "read"),), is_active=True
    )
    await models.put(fresh)
    assert await models.list() == [fresh]


async def test_a_removed_record_leaves_no_grants(models: TortoiseModels) -> None:
    await models.put(FULL)
    await models.put(replace(FULL, id="other"))
    assert await models.remove(FULL.id)
    assert [record.id for record in await models.list()] == ["other"]
    assert await GrantRow.all().count() == len(FULL.grants)


async def test_the_same_grant_twice_is_one(models: TortoiseModels) -> None:
    await models.put(replace(FULL, grants=(Grant("user", "*", "read"),) * 2))
    found = await models.find(FULL.id)
    assert found is not None
    assert found.grants == (Grant("user", "*", "read"),)


async def test_racing_replacements_leave_one_whole_record(models: TortoiseModels) -> None:
    versions = [
        replace(FULL, name=str(number), grants=(Grant("user", str(number), "read"),)) for number in range(8)
    ]
    await asyncio.gather(*(models.put(version) for version in versions))
    found = await models.list()
    assert len(found) == 1
    assert found[0] in versions


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "x" * 257),
        ("id", "\x00"),
        ("name", "\ud800"),
        ("params", {"a": float("nan")}),
        ("meta", {"a": "\x00"}),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(
    models: TortoiseModels, field: str, value: Any
) -> None:
    with pytest.raises(GatewayError) as caught:
        await models.put(replace(FULL, **{field: value}))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert await models.list() == []


async def test_a_bad_grant_keeps_the_record_as_it_was(models: TortoiseModels) -> None:
    await models.put(FULL)
    with pytest.raises(GatewayError) as caught:
        await models.put(replace(FULL, name="new", grants=(Grant("user", "\x00", "read"),)))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert await models.list() == [FULL]
