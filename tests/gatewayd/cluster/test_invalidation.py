"""The invalidation map: which caches a change reaches, at once or before the node is fresh."""

import pytest

from gatewayd.cluster.invalidation import ALL, Changed, InvalidationMap, subjects
from gatewayd.cluster.records import Change, ChangeKind


async def test_drops_are_called_in_order_and_reloads_once_with_all_that_changed() -> None:
    dropped: list[str] = []
    read: list[Changed] = []
    caches = InvalidationMap()
    caches.drop([ChangeKind.USER, ChangeKind.KEY], dropped.append)

    async def reload(changed: Changed) -> None:
        read.append(changed)

    caches.reload([ChangeKind.MODEL, ChangeKind.GRANT], reload)
    caches.apply(
        [
            Change(1, "user", "u1"),
            Change(2, "model", "m"),
            Change(3, "key", "u2"),
            Change(4, "grant", "model/m"),
            Change(5, "tool_server", "s"),
        ]
    )
    assert (dropped, read) == (["u1", "u2"], [])
    await caches.refresh()
    await caches.refresh()
    assert read == [{(ChangeKind.MODEL, "m"), (ChangeKind.GRANT, "model/m")}]
    assert subjects(read[0]) == {"m", "model/m"}


async def test_clear_reaches_everything() -> None:
    dropped: list[str] = []
    read: list[Changed] = []
    caches = InvalidationMap()
    caches.drop(ChangeKind, dropped.append)

    async def reload(changed: Changed) -> None:
        read.append(changed)

    caches.reload([ChangeKind.SETTING], reload)
    caches.clear()
    await caches.refresh()
    assert dropped == [ALL] * len(ChangeKind)
    assert [subjects(each) for each in read] == [None]


async def test_a_reload_that_fails_is_repeated_with_what_changed_meanwhile() -> None:
    read: list[Changed] = []
    caches = InvalidationMap()

    async def reload(changed: Changed) -> None:
        read.append(changed)
        if len(read) == 1:
            caches.apply([Change(2, "limit", "b")])
            raise RuntimeError

    caches.reload([ChangeKind.LIMIT], reload)
    caches.apply([Change(1, "limit", "a")])
    with pytest.raises(RuntimeError):
        await caches.refresh()
    await caches.refresh()
    assert [subjects(each) for each in read] == [{"a"}, {"a", "b"}]
