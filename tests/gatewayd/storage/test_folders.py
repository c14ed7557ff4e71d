"""Tests for gatewayd.storage.folders."""

import pytest

from gatewayd.chats.interfaces import FolderStore
from gatewayd.chats.records import ChatChange, ChatFolder, ChatQuery
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage import folders
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.storage.tables.chats import FolderRow
from tests.gatewayd.storage.conftest import Chatting

FULL = ChatFolder("f1", "u1", "Öl und", "f0", True, {"icon": "x"}, {"files": [1]}, 2, 1)


@pytest.fixture
def store(stored: Chatting) -> FolderStore:
    return TortoiseFolders()


async def test_folders(store: FolderStore) -> None:
    await store.add(FULL)
    await store.add(ChatFolder("f2", "u1", "Alt"))
    await store.add(ChatFolder("f3", "u2", "Alt"))
    assert await store.find("f1") == FULL
    assert [(each.id, each.data) for each in await store.list("u1")] == [("f2", {}), ("f1", {})]
    with pytest.raises(GatewayError) as caught:
        await store.add(FULL)
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await store.put(ChatFolder("f1", "u1", "New"))
    assert await store.find("f1") == ChatFolder("f1", "u1", "New")
    assert not await store.put(ChatFolder("f9", "u1", "New"))
    await store.remove(["f1", "f9", "\x00"])
    assert await store.find("f1") is None


@pytest.mark.parametrize("bad", ["\x00", "\ud800", "x" * 300])
async def test_ids_that_cannot_be(store: FolderStore, bad: str) -> None:
    assert await store.find(bad) is None
    assert await store.list(bad) == []
    await store.empty(bad, ["f1"])
    await store.empty("u1", [bad])


async def test_chats_in_folders(
    store: FolderStore, stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_MOVED_ROWS", 1)
    await store.add(FULL)

    async def found(**query: object) -> list[str]:
        return [each.id for each in (await stored.chats.list(ChatQuery(user_id="u1", **query)))[0]]  # type: ignore[arg-type]

    for chat_id in ("c1", "c2"):
        await stored.chats.change(chat_id, ChatChange(folder_id="f1"), 5)
    assert await found(is_loose=True) == []
    assert len(await found(folder_ids=("f1", "x" * 300))) == 2
    assert len(await found(folder_name="öl_und")) == 2
    assert (
        await found(folder_ids=()) == await found(folder_name="none") == await found(folder_name="\x00") == []
    )
    await store.remove(["f1"])
    assert len(await found(is_loose=True)) == 2
    await store.empty("u2", ["f1"])
    assert len(await found(folder_ids=("f1",))) == 2
    await store.empty("u1", ["f1"])
    assert await found(folder_ids=("f1",)) == []


async def test_folders_end_with_their_user(store: FolderStore) -> None:
    await store.add(ChatFolder("f3", "u2", "Alt"))
    await UserRow.filter(id="u2").delete()
    assert await FolderRow.all().count() == 0
