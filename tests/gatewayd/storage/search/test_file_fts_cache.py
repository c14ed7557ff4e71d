from collections.abc import AsyncIterator

import pytest

from gatewayd.storage.search.file_fts_cache import MAX_FILES, FileWordCache


@pytest.fixture
async def files() -> AsyncIterator[FileWordCache]:
    opened = FileWordCache()
    yield opened
    await opened.close()


async def test_a_file_is_searched_once_it_is_taken_in(files: FileWordCache) -> None:
    assert await files.search(("f", 2), '"fox"', 5) is None
    hits = await files.search_new(("f", 2), [(1, "a fox"), (2, "the foxes and the fox")], '"fox"', 5)
    assert {hit.passage_id for hit in hits} == {1, 2}
    assert await files.search(("f", 2), '"fox"', 5) == hits
    assert await files.search(("f", 2), '"fox"', 1) == hits[:1]
    assert await files.search(("f", 2), '"wolf"', 5) == []
    assert await files.search(("f", 3), '"fox"', 5) is None


async def test_taking_in_a_file_again_changes_nothing(files: FileWordCache) -> None:
    for _ in range(2):
        [hit] = await files.search_new(("f", 1), [(1, "a fox")], '"fox"', 5)
        assert hit.passage_id == 1


async def test_the_file_that_was_searched_longest_ago_is_dropped(files: FileWordCache) -> None:
    for number in range(MAX_FILES):
        await files.search_new((f"f{number}", 1), [(1, "a fox")], '"fox"', 5)
    assert await files.search(("f0", 1), '"fox"', 5)
    await files.search_new(("more", 1), [(1, "a fox")], '"fox"', 5)
    assert await files.search(("f1", 1), '"fox"', 5) is None
    assert await files.search(("f0", 1), '"fox"', 5)


async def test_large_files_are_dropped_before_there_are_many(
    files: FileWordCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.storage.search.file_fts_cache.MAX_CHARACTERS", 100)
    for name in ("a", "b", "c"):
        await files.search_new((name, 2), [(1, "a fox"), (2, "x" * 40)], '"fox"', 5)
    assert await files.search(("a", 2), '"fox"', 5) is None
    assert await files.search(("b", 2), '"fox"', 5)
    # One that is larger than all room is there for its own search.
    assert await files.search_new(("huge", 1), [(1, "a fox " * 100)], '"fox"', 5)
    assert await files.search(("huge", 1), '"fox"', 5)
    assert await files.search(("b", 2), '"fox"', 5) is None
