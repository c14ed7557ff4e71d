"""What follows a commit."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.ingest.updates import FileRemoval
from tests.fakes.documents.ingest_services import Ingest


async def test_an_index_that_fails_stops_nobody(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = await ingest.completed("a.txt", "text")
    await ingest.link("c", file.id)

    async def fail(*_: object) -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "the disk is full")

    monkeypatch.setattr(ingest.index, "forget", fail)
    assert await FileRemoval(ingest.stores, ingest.updates).remove(file.id)
    assert ingest.index.learned[-1] == (SearchScope(ScopeKind.COLLECTION, "c"), file.id)
    assert "cannot update the vector index before its next check: the disk is full" in caplog.text
    assert not ingest.blobs.path(file.id).exists()


async def test_removing_twice_is_told(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    removal = FileRemoval(ingest.stores, ingest.updates)
    assert [await removal.remove(file.id) for _ in range(2)] == [True, False]


async def test_a_file_that_is_in_use_stays_where_only_unused_ones_go(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    await ingest.link("c", file.id)
    removal = FileRemoval(ingest.stores, ingest.updates)
    assert not await removal.remove(file.id, unused=True)
    assert await ingest.stores.files.find(file.id) is not None
    assert ingest.blobs.path(file.id).is_file()
    del ingest.library.tables.links["c", file.id]
    assert await removal.remove(file.id, unused=True)
