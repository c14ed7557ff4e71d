"""Tests for gatewayd.storage.chat_slices."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.chats.records import ChatQuery, Message, NewChat, SharedChat, Tag
from gatewayd.errors import GatewayError
from gatewayd.storage import chat_slices
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.tables.chats import ChatMessageItemRow, ChatMessageRow, ChatRow, ChatTagRow
from tests.fakes.storage.records import chat, message
from tests.gatewayd.storage.conftest import make_chatting

LISTS = {"files": [{"a": 1}, {"a": 2}, {"a": 3}], "embeds": ["x"]}
LONG = [message("m0", items=LISTS), message("m1"), message("m2", items=LISTS), message("m3", items=LISTS)]
SQLITE = pytest.mark.parametrize("location", ["sqlite"], indirect=True)


@pytest.fixture
async def rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> TortoiseChats:
    """Return chats of which a transaction stores two rows."""
    monkeypatch.setattr(chat_slices, "MAX_SLICE_ROWS", 2)
    monkeypatch.setattr(chat_slices, "MAX_SLICE_SECONDS", 1e-9)
    await make_chatting()
    return TortoiseChats()


def new(chat_id: str, messages: Sequence[Message] = LONG) -> NewChat:
    return NewChat(chat(chat_id), messages, [Tag("t", "T", "u1"), Tag("t", "t", "u1")])


async def each(*chats: NewChat) -> AsyncIterator[NewChat]:
    for one in chats:
        yield one


async def assert_hidden(rows: TortoiseChats, chat_id: str, others: int = 0) -> None:
    assert await rows.find(chat_id) is None
    assert (await rows.list(ChatQuery(user_id="u1")))[1] == others
    assert len(await rows.tags(user_id="u1")) == 0


@pytest.mark.parametrize("size", [5, 10**6])
async def test_chats_come_back_as_they_were(
    rows: TortoiseChats, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(chat_slices, "MAX_SLICE_CHARACTERS", size)
    await rows.add_all(each(new("c1"), new("c2", []), new("c3", [message("m", content="x" * 20)])))
    found = await rows.find("c1")
    assert found is not None
    assert found.tags == ("t",)
    assert await rows.tags(chat_id="c1") == [Tag("t", "T", "u1")]
    assert await TortoiseMessages().list("c1") == LONG
    assert len(await TortoiseMessages().list("c3")) == 1
    assert (await rows.list(ChatQuery(user_id="u1")))[1] == 3
    assert await rows.list_unfinished() == []


async def test_of_one_id_the_last_message_is_stored(rows: TortoiseChats) -> None:
    await rows.add_all(each(new("c1", [message("m", content="a"), message("m", content="b")])))
    assert [each.content for each in await TortoiseMessages().list("c1")] == ["b"]


@SQLITE
async def test_others_write_meanwhile_and_find_nothing_of_it(rows: TortoiseChats) -> None:
    async def slow() -> AsyncIterator[NewChat]:
        yield new("c1")
        assert await ChatMessageRow.filter(chat_id="c1").count() > 0
        await assert_hidden(rows, "c1")
        # One that waits for the end of the whole change would wait for ever.
        await asyncio.wait_for(rows.add(chat("other", "u2"), [message("m")]), 10)
        assert await rows.list_unfinished() == ["c1"]
        yield new("c2")

    await rows.add_all(slow())
    assert (await rows.list(ChatQuery()))[1] == 3
    assert await rows.list_unfinished() == []


async def test_all_are_stored_or_none(rows: TortoiseChats) -> None:
    with pytest.raises(GatewayError, match="does not exist"):
        await rows.add_all(each(new("c1"), NewChat(chat("c2", "nobody"), LONG)))

    async def breaking() -> AsyncIterator[NewChat]:
        yield new("c1")
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await rows.add_all(breaking())
    for table in (ChatRow, ChatMessageRow, ChatMessageItemRow, ChatTagRow):
        assert await table.all().count() == 0


@SQLITE
async def test_a_commit_whose_end_nobody_waits_for_keeps_all(
    rows: TortoiseChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = chat_slices.write_transaction

    @asynccontextmanager
    async def cut_off(what: str) -> AsyncIterator[Any]:
        async with inner(what) as client:
            yield client
        if not await rows.list_unfinished():
            raise asyncio.CancelledError

    monkeypatch.setattr(chat_slices, "write_transaction", cut_off)
    with pytest.raises(asyncio.CancelledError):
        await rows.add_all(each(new("c1"), new("c2")))
    assert [await TortoiseMessages().list(chat_id) for chat_id in ("c1", "c2")] == [LONG, LONG]
    assert (await rows.list(ChatQuery()))[1] == 2


@SQLITE
async def test_what_a_killed_process_leaves_is_hidden_and_deleted(
    rows: TortoiseChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: Any) -> None:
        """Stand for a process that is dead."""

    await rows.add(chat("whole"), LONG)
    await rows.share(SharedChat("s", "whole", "u1", {}))
    with monkeypatch.context() as dying, pytest.raises(GatewayError):
        dying.setattr(chat_slices, "purge", nothing)
        await rows.add_all(each(new("c1"), NewChat(chat("c2", "nobody"), [])))
    assert await rows.hide("whole")
    assert not await rows.hide("whole")
    await rows.remove_tags("whole")
    for chat_id in ("c1", "whole"):
        await assert_hidden(rows, chat_id)
    assert await rows.find_shared("s") is None
    unfinished = await rows.list_unfinished()
    assert sorted(unfinished) == ["c1", "whole"]
    await rows.purge(unfinished)
    for table in (ChatRow, ChatMessageRow, ChatMessageItemRow, ChatTagRow):
        assert await table.all().count() == 0


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_chat_whose_row_is_being_deleted_is_not_hidden(
    rows: TortoiseChats, database: Database
) -> None:
    await rows.add(chat("c1"), [])
    assert await rows.hide("c1")
    is_begun, is_gone = asyncio.Event(), asyncio.Event()

    async def purge() -> None:
        async with database.transaction():
            await rows.purge(["c1"])
            is_begun.set()
            await is_gone.wait()

    purging = asyncio.ensure_future(purge())
    await is_begun.wait()
    hiding = asyncio.ensure_future(rows.hide_all("u1"))
    while not await SqlStatement(ChatRow._meta.db).run("SELECT 1 FROM pg_locks WHERE NOT granted"):
        await asyncio.sleep(0.01)
    is_gone.set()
    await purging
    assert await hiding == []


@SQLITE
async def test_others_write_while_a_long_chat_is_deleted(
    rows: TortoiseChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rows.add(chat("c1"), [message(f"m{number}") for number in range(40)])
    inner, left, left_to_others = chat_slices._delete_some, [], []
    is_begun = asyncio.Event()

    async def counted(client: Any, chat_id: str, count: int) -> bool:
        is_gone = await inner(client, chat_id, count)
        left.append(await ChatMessageRow.filter(chat_id=chat_id).count())
        is_begun.set()
        return is_gone

    async def other() -> None:
        await is_begun.wait()
        await rows.add(chat("other", "u2"), [])
        left_to_others.append(left[-1])

    monkeypatch.setattr(chat_slices, "_delete_some", counted)
    other_task = asyncio.ensure_future(other())
    await asyncio.sleep(0)
    assert await rows.hide("c1")
    await rows.purge(["c1"])
    await other_task
    assert left[0] == 40 - chat_slices.FIRST_DELETED_ROWS
    assert 0 < left_to_others[0] <= left[0]
    assert left[-1] == 0
