from collections.abc import AsyncIterator

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingSpace, VectorBatch, pack_ids
from gatewayd.storage.engine.database import Database
from tests.fakes.storage.passages import SPACE, Shelf, direction, extraction, open_shelf

OTHER = EmbeddingSpace("test:other", 2)


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        yield opened


async def test_a_space_is_added_once(shelf: Shelf) -> None:
    await shelf.spaces.add(OTHER)
    await shelf.spaces.add(EmbeddingSpace(OTHER.name, 99))
    assert await shelf.spaces.list() == [SPACE, OTHER]


async def test_one_space_is_active(shelf: Shelf) -> None:
    await shelf.spaces.add(OTHER)
    assert await shelf.spaces.find_active() is None
    await shelf.spaces.activate(SPACE.name)
    assert await shelf.spaces.find_active() == SPACE
    for _ in range(2):
        await shelf.spaces.activate(OTHER.name)
        assert await shelf.spaces.find_active() == OTHER
    with pytest.raises(GatewayError) as caught:
        await shelf.spaces.activate("test:unknown")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await shelf.spaces.find_active() == OTHER


async def test_what_lacks_vectors_is_counted_and_named(shelf: Shelf) -> None:
    assert await shelf.spaces.counts(SPACE.name) == (0, 0)
    for file_id in ("f", "g", "h"):
        await shelf.upload(file_id)
    await shelf.publish("f", "one", "two", "three")
    await shelf.publish("g", "four", "five", embed=False)
    await shelf.passages.stage("h", extraction("six"))
    assert await shelf.spaces.counts(SPACE.name) == (3, 5)
    assert await shelf.spaces.behind(SPACE.name, 10) == ["g"]
    [(first, _), _] = await shelf.passages.missing("g", SPACE.name, 9)
    await shelf.passages.add_vectors(SPACE.name, VectorBatch("g", pack_ids([first]), direction("x")))
    assert await shelf.spaces.behind(SPACE.name, 10) == ["g"]
    await shelf.embed("g")
    assert await shelf.spaces.behind(SPACE.name, 10) == []
    assert await shelf.spaces.counts(SPACE.name) == (5, 5)
    await shelf.spaces.add(OTHER)
    assert await shelf.spaces.behind(OTHER.name, 10) == ["f", "g"]
    assert await shelf.spaces.behind(OTHER.name, 1) == ["f"]
    assert await shelf.spaces.counts(OTHER.name) == (0, 5)
    assert await shelf.spaces.counts("x" * 300) == (0, 5)
    assert await shelf.spaces.behind("x" * 300, 5) == []


async def test_a_space_is_removed_with_its_vectors_alone(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.storage.search.embedding_spaces.REMOVAL_BATCH_SIZE", 2)
    await shelf.spaces.add(OTHER)
    for file_id in ("f", "g", "h"):
        await shelf.upload(file_id)
        await shelf.publish(file_id, "one", "two")
        await shelf.embed(file_id, OTHER)
    assert await shelf.spaces.counts(OTHER.name) == (6, 6)
    for _ in range(2):
        await shelf.spaces.remove(OTHER.name)
    await shelf.spaces.remove("x" * 300)
    assert await shelf.spaces.list() == [SPACE]
    assert await shelf.spaces.counts(SPACE.name) == (6, 6)
    assert await shelf.spaces.counts(OTHER.name) == (0, 6)
