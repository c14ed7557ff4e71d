from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.pipeline.interfaces import ResponseIdStore
from gatewayd.storage.engine.database import Database
from gatewayd.storage.responses.ids import TortoiseResponseIds
from tests.fakes.storage.response_ids import MemoryResponseIds
from tests.gatewayd.storage.conftest import ENGINES, make_location


@pytest.fixture(params=["memory", *ENGINES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ResponseIdStore]:
    """Return every implementation in turn."""
    if request.param == "memory":
        yield MemoryResponseIds()
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        yield TortoiseResponseIds()


async def test_an_id_stays_with_who_received_it_first(store: ResponseIdStore) -> None:
    await store.add(["a", "b"], "u1", 1)
    await store.add(["b", "c"], "u2", 2)
    assert await store.owners(["a", "b", "c", "d"]) == {"a": "u1", "b": "u1", "c": "u2"}
    assert await store.owners([]) == {}


async def test_old_ids_and_those_over_the_limit_are_forgotten(store: ResponseIdStore) -> None:
    for at, digest in enumerate("abcd"):
        await store.add([digest], "u1", at)
    await store.add(["e"], "u2", 1)
    assert await store.prune(1, 2) == 2
    assert set(await store.owners(list("abcde"))) == {"c", "d", "e"}
    assert await store.prune(1, 2) == 0
