import asyncio
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tables.accounts import ValueRow
from tests.gatewayd.storage.conftest import Stores

JSON = [
    None,
    True,
    False,
    0,
    1,
    1.0,
    -0.5,
    1e300,
    2**64 - 1,
    -(2**63),
    "",
    "1",
    "null",
    '"quoted"',
    "{",
    "é🦊 \\u0000",
    [],
    {},
    {"a": [{"b": None}]},
]


@pytest.mark.parametrize("value", JSON, ids=repr)
async def test_a_value_comes_back_as_it_was(stores: Stores, value: Any) -> None:
    await stores.values.put({"X": value}, at=1, by="me")
    found = (await stores.values.load())["X"]
    assert (type(found), found) == (type(value), value)


async def test_values_are_written_together_and_again(stores: Stores) -> None:
    assert await stores.values.load() == {}
    await stores.values.put({"A": 1, "B": 2}, at=1, by="me")
    await stores.values.put({"B": [3], "C": 4}, at=2, by="you")
    await stores.values.put({}, at=3, by="you")
    assert await stores.values.load() == {"A": 1, "B": [3], "C": 4}


async def test_forgotten_values_are_counted(stores: Stores) -> None:
    await stores.values.put({"A": 1, "B": 2}, at=1, by="me")
    assert await stores.values.remove(["A", "gone"]) == 1
    assert await stores.values.remove([]) == 0
    assert await stores.values.load() == {"B": 2}


async def test_who_wrote_a_value_is_kept(database: Database) -> None:
    await TortoiseValues().put({"A": 1}, at=7, by="me")
    row = await ValueRow.get(name="A")
    assert (row.updated_at, row.updated_by) == (7, "me")


@pytest.mark.parametrize(
    "value",
    [float("inf"), {1: 2}, object(), 2**64, "\x00", "\ud800", b"x"],
    ids=lambda value: type(value).__name__,
)
async def test_one_bad_value_keeps_all_from_being_stored(database: Database, value: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseValues().put({"A": 1, "B": value}, at=1, by="me")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "B")
    assert await TortoiseValues().load() == {}


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_damaged_value_is_an_error_and_no_default(database: Database) -> None:
    await TortoiseValues().put({"A": 1}, at=1, by="me")
    await ValueRow.filter(name="A").update(value="{")
    with pytest.raises(GatewayError, match="setting A") as caught:
        await TortoiseValues().load()
    assert caught.value.kind is ErrorKind.INTERNAL


async def test_racing_writers_of_the_same_values_all_succeed(stores: Stores) -> None:
    names = [f"N{number}" for number in range(10)]
    await asyncio.gather(
        *(
            stores.values.put(dict.fromkeys(names if each % 2 else names[::-1], each), at=each, by="me")
            for each in range(16)
        )
    )
    assert len(set((await stores.values.load()).values())) == 1
