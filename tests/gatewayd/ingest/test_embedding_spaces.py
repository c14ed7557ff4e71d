"""Embedding spaces: which one is searched, and the change of models."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedding_spaces import ReindexState
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace, FileStatus, ScopeKind, SearchScope
from tests.fakes.documents.ingest_services import Ingest, ingesting
from tests.fakes.documents.memory_stores import DIMENSION, HashEmbedder, Library

OLD, NEW = "test:old:1", "test:new:1"
LONG = " ".join(f"word{number}" for number in range(300))


class Broken(HashEmbedder):
    """A model that cannot be asked for its space."""

    def __init__(self, kind: ErrorKind) -> None:
        super().__init__()
        self.error: GatewayError | None = GatewayError(kind, "the model is not here")

    async def space(self) -> EmbeddingSpace:
        if self.error is not None:
            raise self.error
        return await super().space()


async def filled(folder: Path) -> Library:
    """Return documents with vectors of the old model."""
    async with ingesting(folder, configured=HashEmbedder(OLD)) as ingest:
        for number in range(3):
            file = await ingest.completed(f"{number}.txt", f"{LONG} {number}")
            await ingest.link("c", file.id)
        return ingest.library


def changing(folder: Path, library: Library, **named: Any) -> Any:
    """Run with the new model configured."""
    fields = {"configured": HashEmbedder(NEW), "others": {OLD: HashEmbedder(OLD)}} | named
    return ingesting(folder, library=library, **fields)


async def searched(ingest: Ingest) -> str | None:
    found = await ingest.spaces.query()
    return None if found is None else found[0].name


async def entered(ingest: Ingest) -> list[str]:
    return [space.name for space, _ in await ingest.spaces.targets()]


async def test_the_first_model_is_searched(ingest: Ingest) -> None:
    assert await searched(ingest) == "test:hash:1"
    assert await entered(ingest) == ["test:hash:1"]


async def test_another_model_waits_for_the_reindex(tmp_path: Path) -> None:
    library = await filled(tmp_path)
    async with changing(tmp_path, library) as ingest:
        assert await searched(ingest) == OLD
        assert await entered(ingest) == [OLD, NEW]
        file = await ingest.completed("new.txt", "a new file")
        assert [await ingest.vectors(file.id, name) for name in (OLD, NEW)] == [1, 1]
        total = len(library.tables.passages)
        await ingest.spaces.reindex()
        assert await searched(ingest) == NEW
        assert await entered(ingest) == [NEW]
        assert set(library.tables.spaces) == {NEW}
        assert {name for name, _ in library.tables.vectors} == {NEW}
        assert len(library.tables.vectors) == total
        assert ingest.spaces.progress() == ReindexState(running=False, error=None)


async def test_search_works_at_every_moment_of_a_reindex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = await filled(tmp_path)
    async with changing(tmp_path, library) as ingest:
        found: list[int] = []

        async def search(*_: Any) -> None:
            query = await ingest.spaces.query()
            assert query is not None
            space, embedder = query
            vector = await embedder.embed(["word7"], EmbeddingPurpose.QUERY)
            found.append(
                len(await ingest.index.search(space, SearchScope(ScopeKind.COLLECTION, "c"), vector, 99))
            )

        for store, name in ((ingest.passages, "add_vectors"), (ingest.spaces_store, "activate")):
            monkeypatch.setattr(store, name, after(getattr(store, name), search))
        await ingest.spaces.reindex()
        assert len(found) == 4
        assert set(found) == {len(library.tables.passages)}


def after(method: Any, also: Any) -> Any:
    async def both(*args: Any) -> None:
        await method(*args)
        await also()

    return both


async def test_a_reindex_goes_on_where_it_ended(tmp_path: Path) -> None:
    library = await filled(tmp_path)
    embedder = HashEmbedder(NEW)
    async with changing(tmp_path, library, configured=embedder) as ingest:
        embedder.failures = [None, GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "down")]
        with pytest.raises(GatewayError, match="down"):
            await ingest.spaces.reindex()
        state = ingest.spaces.progress()
        assert (state.running, state.error) == (False, "down")
        done, total = await ingest.spaces_store.counts(NEW)
        assert 0 < done < total
        assert await searched(ingest) == OLD
        await ingest.spaces.reindex()
        assert len(embedder.texts) == total


async def test_one_reindex_at_a_time_and_new_files_first(tmp_path: Path) -> None:
    library = await filled(tmp_path)
    async with changing(tmp_path, library) as ingest:
        with ingest.spaces.pause_reindex():
            running = ingest.tasks.spawn("reindex", ingest.spaces.reindex())
            while not ingest.spaces.progress().running:
                await asyncio.sleep(0)
            with pytest.raises(GatewayError) as refused:
                await ingest.spaces.reindex()
            assert refused.value.kind is ErrorKind.CONFLICT
            assert (await ingest.spaces_store.counts(NEW))[0] == 0
        while running in ingest.tasks.list():
            await asyncio.sleep(0)
        assert await searched(ingest) == NEW


async def test_without_a_model_words_are_searched_until_a_reindex(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library, configured=Broken(ErrorKind.NOT_CONFIGURED)) as ingest:
        files = [await ingest.completed(f"{number}.txt", f"{LONG} {number}") for number in range(2)]
        assert {file.status for file in files} == {FileStatus.COMPLETED}
        assert await searched(ingest) is None
        with pytest.raises(GatewayError) as refused:
            await ingest.spaces.reindex()
        assert refused.value.kind is ErrorKind.NOT_CONFIGURED
    assert [record.message for record in caplog.records] == [
        "cannot embed documents, search uses words only: the model is not here"
    ]
    async with ingesting(tmp_path, library=library) as ingest:
        assert await ingest.vectors(files[0].id) == 0
        await ingest.spaces.reindex()
        assert await ingest.vectors(files[0].id) == files[0].chunks
        assert (SearchScope(ScopeKind.FILE, files[0].id), files[0].id) in ingest.index.learned


async def test_a_model_that_is_down_at_the_start_is_asked_later(tmp_path: Path) -> None:
    embedder = Broken(ErrorKind.UPSTREAM_UNREACHABLE)
    async with ingesting(tmp_path, configured=embedder) as ingest:
        with pytest.raises(GatewayError):
            await ingest.spaces.query()
        embedder.error = None
        assert await searched(ingest) == "test:hash:1"


async def test_a_former_model_that_cannot_be_opened_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = await filled(tmp_path)
    async with changing(tmp_path, library, others={}) as ingest:
        assert await searched(ingest) is None
        assert await entered(ingest) == [NEW]
    sentence = f"cannot open the model of {OLD}: search uses words only until a reindex"
    assert [record.message for record in caplog.records] == [sentence]


async def test_a_model_of_another_size_is_not_mixed_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = Library()
    library.tables.spaces["test:hash:1"] = EmbeddingSpace("test:hash:1", 3)
    async with ingesting(tmp_path, library=library) as ingest:
        assert (await ingest.completed("a.txt", "text")).status is FileStatus.COMPLETED
        assert await entered(ingest) == []
    assert f"test:hash:1 now has {DIMENSION} dimensions, its stored vectors have 3" in caplog.text


async def test_no_model_at_all(tmp_path: Path) -> None:
    async with ingesting(tmp_path, configured=None) as ingest:
        assert (await ingest.completed("a.txt", "text")).status is FileStatus.COMPLETED
        assert (await searched(ingest), await entered(ingest)) == (None, [])


async def test_vectors_of_a_former_model_that_a_cut_reindex_left_are_unused(tmp_path: Path) -> None:
    library = await filled(tmp_path)
    async with changing(tmp_path, library) as ingest:
        assert await ingest.spaces.find_unused() == [], "the configured model has not answered"
        await ingest.completed("new.txt", "a new file")
        assert await ingest.spaces.find_unused() == [], "one is searched, the other is filled"
    async with ingesting(tmp_path, library=library, configured=HashEmbedder(OLD)) as ingest:
        await searched(ingest)
        assert await ingest.spaces.find_unused() == [NEW]
        assert await ingest.spaces.remove_unused() == 1
        assert set(library.tables.spaces) == {OLD}
        assert await ingest.spaces.remove_unused() == 0
