"""From bytes to passages: what is reused, what is replaced, and what stays."""

from dataclasses import replace

import pytest

from gatewayd.ingest.records import FileStatus, ScopeKind, SearchScope
from gatewayd.ingest.size_classes import QueueKey, SizeClass
from gatewayd.transactions import after_commit
from tests.fakes.documents.ingest_services import Ingest
from tests.fakes.documents.memory_stores import HashEmbedder

LONG = " ".join(f"word{number}" for number in range(300))


def embedded(ingest: Ingest) -> list[str]:
    assert isinstance(ingest.configured, HashEmbedder)
    return ingest.configured.texts


async def test_a_text_that_is_known_is_not_embedded_again(ingest: Ingest) -> None:
    first = await ingest.completed("a.txt", LONG)
    count = len(embedded(ingest))
    twin = await ingest.completed("b.txt", LONG, user_id="other")
    assert len(embedded(ingest)) == count == first.chunks
    assert await ingest.vectors(twin.id) == await ingest.vectors(first.id) == count
    assert twin.text_hash == first.text_hash


async def test_pages_without_text_are_stored_with_the_file(ingest: Ingest) -> None:
    file = await ingest.completed("a.pdf", "\f" * 9 + "the only text")
    assert (file.pages, file.blank_pages) == (10, 9)
    await ingest.queue.close()
    failed = await ingest.upload("b.pdf", "one\f")
    await ingest.processor.fail(failed.id, "it is torn")
    assert ingest.library.tables.files[failed.id].blank_pages == 0


async def test_a_processed_file_is_told_to_the_index(ingest: Ingest) -> None:
    await ingest.queue.close()
    file = await ingest.upload("a.txt", LONG)
    await ingest.link("c", file.id)
    await ingest.processor.process(file.id, SizeClass.LARGE)
    assert ingest.index.learned == [
        (SearchScope(ScopeKind.FILE, file.id), file.id),
        (SearchScope(ScopeKind.COLLECTION, "c"), file.id),
    ]


async def test_a_new_version_takes_the_place_of_the_old_one(ingest: Ingest) -> None:
    old = await ingest.completed("a.txt", "old")
    await ingest.link("c", old.id, "a.txt")
    await ingest.queue.close()
    new = await ingest.upload("a.txt", "new")
    await ingest.link("c", new.id, "a.txt")
    assert ingest.library.tables.files_in(SearchScope(ScopeKind.COLLECTION, "c")) == [old.id]
    await ingest.processor.process(new.id, SizeClass.LARGE)
    assert set(ingest.library.tables.files) == {new.id}
    assert set(ingest.library.tables.links) == {("c", new.id)}
    assert not ingest.blobs.path(old.id).exists()
    assert ingest.index.forgotten == [SearchScope(ScopeKind.FILE, old.id)]
    assert (SearchScope(ScopeKind.COLLECTION, "c"), old.id) in ingest.index.learned


async def test_a_file_is_prepared_before_the_transaction_that_publishes_it(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, bool]] = []

    async def prepare(file_id: str) -> None:
        calls: list[None] = []
        # At once outside of a transaction.
        after_commit(lambda: calls.append(None))
        seen.append((await ingest.passages.is_staged(file_id), bool(calls)))

    monkeypatch.setattr(ingest.passages, "prepare", prepare)
    await ingest.completed("a.txt", LONG)
    assert seen == [(True, True)]


async def test_a_replaced_file_of_somebody_else_or_in_use_stays(ingest: Ingest) -> None:
    used, foreign = await ingest.completed("a.txt", "a"), await ingest.completed("b.txt", "b", user_id="x")
    await ingest.link("c", used.id, "a.txt")
    await ingest.link("d", used.id)
    await ingest.link("c", foreign.id, "b.txt")
    await ingest.queue.close()
    for name in ("a.txt", "b.txt"):
        new = await ingest.upload(name, f"new {name}")
        await ingest.link("c", new.id, name)
        await ingest.processor.process(new.id, SizeClass.LARGE)
    assert {used.id, foreign.id} < set(ingest.library.tables.files)
    linked = {file_id for collection, file_id in ingest.library.tables.links if collection == "c"}
    assert linked.isdisjoint({used.id, foreign.id})
    assert ("d", used.id) in ingest.library.tables.links


async def failed_version(ingest: Ingest, user_id: str = "owner", *links: tuple[str, str]) -> str:
    """Add a file that is linked before it fails."""
    file = await ingest.upload("a.txt", "", user_id=user_id)
    for collection, path in links:
        await ingest.link(collection, file.id, path)
    await ingest.processor.fail(file.id, "no")
    return file.id


async def test_of_failed_versions_the_newest_stays(ingest: Ingest) -> None:
    await ingest.queue.close()
    good = await ingest.upload("a.txt", "good")
    await ingest.link("c", good.id, "a.txt")
    await ingest.processor.process(good.id, SizeClass.LARGE)
    old = await failed_version(ingest, "owner", ("c", "a.txt"))
    assert set(ingest.library.tables.files) == {good.id, old}
    new = await failed_version(ingest, "owner", ("c", "a.txt"))
    assert set(ingest.library.tables.files) == {good.id, new}
    assert not ingest.blobs.path(old).exists()


async def test_a_failed_version_that_is_older_than_another_goes(ingest: Ingest) -> None:
    await ingest.queue.close()
    old = await ingest.upload("a.txt", "")
    await ingest.link("c", old.id, "a.txt")
    new = await failed_version(ingest, "owner", ("c", "a.txt"))
    assert set(ingest.library.tables.files) == {old.id, new}
    await ingest.processor.fail(old.id, "no")
    assert set(ingest.library.tables.files) == {new}


async def test_failed_versions_elsewhere_or_of_somebody_else_stay(ingest: Ingest) -> None:
    await ingest.queue.close()
    foreign = await failed_version(ingest, "other", ("c", "a.txt"))
    elsewhere = await failed_version(ingest, "owner", ("c", "a.txt"), ("d", "a.txt"))
    placeless = await failed_version(ingest, "owner", ("c", ""))
    new = await failed_version(ingest, "owner", ("c", "a.txt"))
    assert set(ingest.library.tables.files) == {foreign, elsewhere, placeless, new}


async def test_a_name_given_meanwhile_is_kept(ingest: Ingest) -> None:
    await ingest.queue.close()
    file = await ingest.upload("a.txt", "text")
    described = await ingest.processor._ensure_staged(file, QueueKey("owner", SizeClass.LARGE))
    from_client = await ingest.files_store.find(file.id)
    assert from_client is not None
    assert from_client.text_hash == described.text_hash
    renamed = replace(from_client, name="b.txt")
    await ingest.files_store.change(renamed)
    await ingest.processor.process(file.id, SizeClass.LARGE)
    done = await ingest.files_store.find(file.id)
    assert done is not None
    assert (done.name, done.status) == ("b.txt", FileStatus.COMPLETED)
    assert ingest.extractor.names == ["a.txt"]


async def test_a_file_that_is_gone_is_nothing_to_do(ingest: Ingest) -> None:
    await ingest.processor.process("nothing", SizeClass.LARGE)
    await ingest.processor.fail("nothing", "no")
    assert ingest.index.learned == []
