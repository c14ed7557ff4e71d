"""Tests for gatewayd.storage.upkeep.aged_rows: what is old on every engine."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.catalog.records import ModelRecord
from gatewayd.chats.records import ChatFolder, MessageState
from gatewayd.ingest.records import IngestJob
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.upkeep import aged_rows
from gatewayd.storage.upkeep.aged_rows import TortoiseAgedRows
from tests.fakes.documents.records import collection, file, link
from tests.fakes.storage.records import chat, message
from tests.gatewayd.storage.conftest import make_chatting

NOW = 1_000


@pytest.fixture
def rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> TortoiseAgedRows:
    monkeypatch.setattr(aged_rows, "PAGE_ROWS", 2)
    return TortoiseAgedRows()


async def listed(found: AsyncIterator[str]) -> list[str]:
    return [each async for each in found]


async def test_pinned_running_and_changed_chats_are_not_old(rows: TortoiseAgedRows) -> None:
    chats = (await make_chatting()).chats
    await chats.add(chat("b", updated_at=5), [message("m")])
    await chats.add(chat("a", "u2", updated_at=5, archived=True), [])
    await chats.add(chat("pinned", updated_at=1, pinned=True), [])
    await chats.add(chat("runs", updated_at=2), [message("m", state=MessageState.RUNNING)])
    await chats.add(chat("gone", updated_at=3), [])
    await chats.hide("gone")
    await chats.add(chat("first", updated_at=4), [])
    await chats.add(chat("new", updated_at=NOW), [])
    assert await listed(rows.old_chats(NOW)) == ["first", "a", "b"]
    assert await listed(rows.old_chats(5)) == ["first"]
    for chat_id, is_hidden in {"a": True, "pinned": False, "runs": False, "new": False, "\0": False}.items():
        assert await rows.hide_old_chat(chat_id, NOW) is is_hidden
    assert not await rows.hide_old_chat("a", NOW)
    assert await chats.find("a") is None
    assert await chats.find("runs") is not None


async def test_a_file_that_something_needs_is_not_old(rows: TortoiseAgedRows) -> None:
    files, collections = TortoiseFiles(), TortoiseCollections()
    await make_chatting()
    for place, name in enumerate(("in", "waits", "model", "folder", "other", "free", "orphan")):
        owner = {"other": "u2", "orphan": "nobody"}.get(name, "u1")
        await files.add(file(f"file-{name}", user_id=owner, updated_at=place))
    await files.add(file("file-new", updated_at=NOW))
    await collections.add(collection("c1"))
    await collections.link(link("c1", "file-in"))
    await TortoiseJobs().put(IngestJob("file-waits", created_at=1))
    knowledge = {"knowledge": [{"type": "file", "id": "file-model"}]}
    await TortoiseModels().put(ModelRecord("m", "u1", "M", meta=knowledge))
    data = {"files": [{"id": "file-folder"}, {"id": "file-other"}]}
    await TortoiseFolders().add(ChatFolder("f", "u1", "F", data=data))
    # A folder of someone else keeps no file.
    assert await listed(rows.old_files(NOW)) == ["file-other", "file-free", "file-orphan"]
    assert await rows.is_old_file("file-free", NOW)
    assert not await rows.is_old_file("file-free", 5)
    assert not await rows.is_old_file("file-folder", NOW)
    assert not await rows.is_old_file("absent", NOW)


async def test_usage_is_deleted_by_its_day(rows: TortoiseAgedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aged_rows, "DELETED_ROWS", 2)
    days = ("2026-01-01", "2026-01-02", "2026-02-01", "2026-02-02")
    keys = [UsageKey(day, user_id, "", "m", "p", "chat") for day in days for user_id in ("u1", "u2")]
    await TortoiseUsage().add({key: UsageSums(1) for key in keys})
    assert await rows.count_usage("2026-02-02") == 6
    assert await rows.remove_usage("2026-02-02") == 6
    assert (await rows.count_usage("2026-02-02"), await rows.count_usage("2026-03-01")) == (0, 2)
