import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.chats.records import (
    MAX_CONTENT_CHARACTERS,
    MAX_ITEMS,
    ChatChange,
    ChatQuery,
    MessageChange,
    NewChat,
    SharedChat,
    Tag,
)
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage import chats
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.engine.database import Database
from gatewayd.storage.message_events import TortoiseMessageEvents
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.tables.chats import (
    ChatMessageItemRow,
    ChatMessageRow,
    ChatRow,
    ChatTagRow,
    SharedChatRow,
)
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.storage.records import chat, message
from tests.gatewayd.storage.conftest import Chatting, make_chatting

FULL = chat(
    "c1",
    title="Straße & Öl",
    head={"models": ["m"], "params": {"a": None}, "files": [{"id": "1"}], "empty": ""},
    current_id="m2",
    archived=True,
    pinned=True,
    folder_id="f1",
    meta={"x": [1, 2.5, True]},
    last_read_at=4,
    updated_at=3,
    created_at=1,
)


async def test_a_copy_may_be_over_the_limits_of_a_message(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.storage.message_limits.MAX_CONTENT_CHARACTERS", 3)
    monkeypatch.setattr("gatewayd.storage.message_limits.MAX_ITEMS", 1)
    messages = [message("m1", content="long", items={"files": [1, 2]})]
    with pytest.raises(GatewayError, match="cannot write the message"):
        await stored.chats.add(chat("c3"), messages)
    await stored.chats.add(chat("c3"), messages, is_copy=True)
    assert list(await stored.messages.list("c3")) == messages


@pytest.fixture
async def rows(database: Database) -> TortoiseChats:
    await make_chatting()
    return TortoiseChats()


async def listed(chatting: Chatting, **query: Any) -> list[str]:
    found, total = await chatting.chats.list(ChatQuery(**query))
    assert total == len(found)
    return [each.id for each in found]


async def test_a_chat_comes_back_as_it_was(chatting: Chatting) -> None:
    messages = [message("m1"), message("m2", "m1", content="hello", timestamp=7)]
    await chatting.chats.add(FULL, messages)
    assert await chatting.chats.find("c1") == FULL
    assert await chatting.chats.list(ChatQuery()) == ([FULL], 1)
    assert await chatting.messages.list("c1") == messages


async def test_what_is_absent_is_none_or_false(chatting: Chatting) -> None:
    for chat_id in ("x", "\x00", "x" * 65):
        assert await chatting.chats.find(chat_id) is None
        assert await chatting.chats.find_shared(chat_id) is None
        assert not await chatting.chats.change(chat_id, ChatChange(title="t"), 1)
        assert not await chatting.chats.touch(chat_id, 1)
        assert not await chatting.chats.hide(chat_id)
        assert not await chatting.chats.unshare(chat_id)
        assert list(await chatting.chats.hide_all(chat_id)) == []
        await chatting.chats.remove_tags(chat_id)
        assert list(await chatting.chats.tags(user_id=chat_id)) == []
        assert list(await chatting.chats.tags(chat_id=chat_id)) == []
        assert await listed(chatting, user_id=chat_id) == []
        assert await listed(chatting, folder_ids=(chat_id,)) == []
        assert await listed(chatting, tags=(chat_id,)) == []
    assert await listed(chatting) == []


async def test_an_id_is_taken_once(chatting: Chatting) -> None:
    await chatting.chats.add(FULL, [])
    with pytest.raises(GatewayError) as caught:
        await chatting.chats.add(chat("c1"), [message("m1")])
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await chatting.chats.find("c1") == FULL
    assert list(await chatting.messages.list("c1")) == []


async def test_a_change_writes_what_is_given(chatting: Chatting) -> None:
    await chatting.chats.add(FULL, [])
    await chatting.chats.add(chat("c2"), [])
    assert await chatting.chats.change("c1", ChatChange(), 9)
    assert await chatting.chats.find("c1") == replace(FULL, updated_at=9)
    change = ChatChange(
        title="New", head={}, current_id="m9", archived=False, pinned=False, folder_id="", meta={"y": 1}
    )
    assert await chatting.chats.change("c1", replace(change, last_read_at=0), 10)
    assert await chatting.chats.find("c1") == replace(
        FULL,
        title="New",
        head={},
        current_id="m9",
        archived=False,
        pinned=False,
        folder_id=None,
        meta={"y": 1},
        last_read_at=0,
        updated_at=10,
    )
    assert await chatting.chats.find("c2") == chat("c2")
    assert await listed(chatting, text="NEW") == ["c1"]
    assert await listed(chatting, text="straße") == []


async def test_touching_sets_the_time_alone(chatting: Chatting) -> None:
    await chatting.chats.add(FULL, [])
    for at in (5, 5, 4):
        assert await chatting.chats.touch("c1", at)
        assert await chatting.chats.find("c1") == replace(FULL, updated_at=at)


async def test_a_search_looks_in_titles_and_contents_in_any_case(chatting: Chatting) -> None:
    await chatting.chats.add(chat("c1", title="Über Öl"), [message("m1", content="say 100% now")])
    await chatting.chats.add(
        chat("c2", title="other"),
        [message("m1", content="nothing"), message("m2", "m1", content="ÄPFEL_und\nBirnen")],
    )
    assert await listed(chatting, text="über ÖL") == ["c1"]
    assert await listed(chatting, text="äpfel_UND") == ["c2"]
    assert await listed(chatting, text="0%") == ["c1"]
    assert await listed(chatting, text="1%0") == []
    assert await listed(chatting, text="äpfel-und") == []
    assert await listed(chatting, text="\\") == []
    assert await listed(chatting, text="\x00") == []
    assert await listed(chatting, user_id="u2", text="öl") == []


async def test_a_search_finds_what_was_appended_and_not_what_was_replaced(rows: TortoiseChats) -> None:
    chatting = Chatting(rows, TortoiseMessages(), TortoiseMessageEvents())
    effects = chatting.effects
    parts = [{"type": "text", "text": "in a List"}, {"type": "image_url", "image_url": {"url": "data:x"}}, 1]
    await rows.add(chat("c1"), [message("m1", content="Some"), message("m2", parts=parts, content="")])
    await effects.append_content("c1", "m1", "Thing Élse")
    await effects.append_content("c1", "m2", " More")
    assert [await listed(chatting, text=text) for text in ("SOMETHING é", "LIST MORE", "data:x")] == [
        ["c1"],
        ["c1"],
        [],
    ]
    await effects.replace_content("c1", "m1", "Fresh")
    await chatting.messages.change("c1", "m2", MessageChange(content="Now"))
    assert [await listed(chatting, text=text) for text in ("something", "list", "FRESH", "NOW")] == [
        [],
        [],
        ["c1"],
        ["c1"],
    ]


async def test_a_listing_filters_and_pages(chatting: Chatting) -> None:
    await chatting.chats.add(chat("c1", title="b", updated_at=1, created_at=3, archived=True), [])
    await chatting.chats.add(chat("c2", title="a", updated_at=3, created_at=1, pinned=True), [])
    await chatting.chats.add(chat("c3", title="C", updated_at=2, created_at=2, folder_id="f1"), [])
    await chatting.chats.add(chat("c4", "u2", title="é", updated_at=2, created_at=2), [])
    await chatting.chats.share(SharedChat("s1", "c3", "u1", {}))
    await chatting.chats.add_tag("c1", Tag("x", "X", "u1"))
    await chatting.chats.add_tag("c1", Tag("y", "Y", "u1"))
    await chatting.chats.add_tag("c2", Tag("x", "X", "u1"))
    assert await listed(chatting) == ["c2", "c4", "c3", "c1"]
    assert await listed(chatting, descending=False) == ["c1", "c3", "c4", "c2"]
    assert await listed(chatting, sort_by="title", descending=False) == ["c2", "c1", "c3", "c4"]
    assert await listed(chatting, sort_by="created_at") == ["c1", "c4", "c3", "c2"]
    assert await listed(chatting, user_id="u2") == ["c4"]
    assert await listed(chatting, archived=True) == ["c1"]
    assert await listed(chatting, archived=False, pinned=False) == ["c4", "c3"]
    assert await listed(chatting, folder_ids=("f1",)) == ["c3"]
    assert await listed(chatting, shared=True) == ["c3"]
    assert await listed(chatting, shared=False, user_id="u1") == ["c2", "c1"]
    assert await listed(chatting, tags=("x",)) == ["c2", "c1"]
    assert await listed(chatting, tags=("x", "y")) == ["c1"]
    found, total = await chatting.chats.list(ChatQuery(offset=1, limit=2))
    assert ([each.id for each in found], total) == (["c4", "c3"], 4)
    assert (found[1].share_id, found[0].share_id) == ("s1", None)
    assert (await chatting.chats.list(ChatQuery(offset=9)))[1] == 4


async def test_chats_have_no_other_order(rows: TortoiseChats) -> None:
    with pytest.raises(GatewayError) as caught:
        await rows.list(ChatQuery(sort_by="user_id; --"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "sort_by")


async def test_tags_are_given_once_and_taken(chatting: Chatting) -> None:
    for chat_id, user_id in (("c1", "u1"), ("c2", "u1"), ("c3", "u2")):
        await chatting.chats.add(chat(chat_id, user_id), [])
        await chatting.chats.add_tag(chat_id, Tag("b_b", "B b", user_id))
        await chatting.chats.add_tag(chat_id, Tag("b_b", "B b", user_id))
    await chatting.chats.add_tag("c1", Tag("a", "a", "u1"))
    both = [Tag("b_b", "B b", "u1"), Tag("a", "a", "u1")]
    assert list(await chatting.chats.tags(chat_id="c1")) == both
    assert list(await chatting.chats.tags(user_id="u1")) == both
    assert list(await chatting.chats.tags(user_id="u1", chat_id="c2")) == both[:1]
    found = await chatting.chats.find("c1")
    assert found is not None
    assert found.tags == ("a", "b_b")
    await chatting.chats.remove_tags("c1", ["b_b", "none", "\x00"])
    assert list(await chatting.chats.tags(chat_id="c1")) == both[1:]
    await chatting.chats.add_tag("c1", both[0])
    await chatting.chats.remove_tags("c1")
    assert list(await chatting.chats.tags(chat_id="c1")) == []
    assert list(await chatting.chats.tags(user_id="u1")) == both[:1]


async def test_what_is_shared_takes_the_place_of_what_was(chatting: Chatting) -> None:
    await chatting.chats.add(chat("c1"), [])
    first = SharedChat("s1", "c1", "u1", {"title": "then", "chat": {"history": {}}}, 5)
    await chatting.chats.share(first)
    assert await chatting.chats.find_shared("s1") == first
    second = replace(first, id="s2", document={}, created_at=6)
    await chatting.chats.share(second)
    assert (await chatting.chats.find_shared("s1"), await chatting.chats.find_shared("s2")) == (None, second)
    found = await chatting.chats.find("c1")
    assert found is not None
    assert found.share_id == "s2"
    assert await chatting.chats.unshare("c1")
    assert not await chatting.chats.unshare("c1")
    assert await chatting.chats.find_shared("s2") is None


async def test_a_removed_chat_leaves_nothing(rows: TortoiseChats) -> None:
    for chat_id in ("c1", "c2"):
        await rows.add(chat(chat_id), [message("m1", items={"files": [1]}), message("m2", "m1")])
        await rows.add_tag(chat_id, Tag("a", "a", "u1"))
        await rows.share(SharedChat(f"s {chat_id}", chat_id, "u1", {}))
    assert await rows.hide("c1")
    assert not await rows.hide("c1")
    await rows.purge(["c1"])
    for table, left in (
        (ChatRow, 1),
        (ChatMessageRow, 2),
        (ChatMessageItemRow, 1),
        (ChatTagRow, 1),
        (SharedChatRow, 1),
    ):
        assert await table.all().count() == left


async def test_all_chats_of_a_user_go_and_are_counted(chatting: Chatting) -> None:
    await chatting.chats.add(chat("c1"), [message("m1"), message("m2")])
    await chatting.chats.add(chat("c2"), [])
    await chatting.chats.add(chat("c3", "u2"), [])
    assert sorted(await chatting.chats.hide_all("u1")) == ["c1", "c2"]
    await chatting.chats.purge(["c1", "c2"])
    assert await listed(chatting) == ["c3"]
    assert list(await chatting.chats.hide_all("u1")) == []


async def test_all_chats_of_a_user_are_archived_and_come_back(
    chatting: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "MAX_ARCHIVED_ROWS", 2)
    made = [chat(f"c{number}", updated_at=number) for number in range(5)]
    for each in (*made, chat("other", "u2")):
        await chatting.chats.add(each, [])
    for archived in (True, False):
        await chatting.chats.archive_all("u1", archived=archived)
        await chatting.chats.archive_all("x\x00", archived=archived)
        assert await chatting.chats.find("c3") == replace(made[3], archived=archived)
        assert len(await listed(chatting, archived=archived)) == 5 + (not archived)


async def test_several_chats_are_added_or_none(chatting: Chatting) -> None:
    async def each(*ids: str) -> AsyncIterator[NewChat]:
        for chat_id in ids:
            yield NewChat(chat(chat_id), [message("m")], [Tag("t", "T", "u1")])

    await chatting.chats.add_all(each("c1", "c2"))
    with pytest.raises(GatewayError) as caught:
        await chatting.chats.add_all(each("c3", "c2"))
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await listed(chatting, sort_by="title", tags=("t",)) == ["c2", "c1"]
    assert len(await chatting.messages.list("c2")) == 1


async def test_messages_over_the_limits_are_refused_before_they_are_stored(chatting: Chatting) -> None:
    await chatting.chats.check([message("m", items={"files": [1] * MAX_ITEMS})])
    for large in (
        message("m", content="x" * (MAX_CONTENT_CHARACTERS + 1)),
        message("m", items={"files": [1] * (MAX_ITEMS + 1)}),
    ):
        with pytest.raises(GatewayError) as caught:
            await chatting.chats.check([large])
        assert caught.value.kind is ErrorKind.TOO_LARGE


async def test_a_removed_user_takes_the_chats_along(rows: TortoiseChats) -> None:
    await rows.add(chat("c1"), [message("m1")])
    await rows.add(chat("c2", "u2"), [message("m1")])
    await TortoiseUsers().remove("u1")
    assert (await rows.find("c1"), await rows.find("c2")) == (None, chat("c2", "u2"))
    assert await ChatMessageRow.all().count() == 1


async def test_a_chat_of_nobody_is_refused(rows: TortoiseChats) -> None:
    with pytest.raises(GatewayError, match="does not exist") as caught:
        await rows.add(chat("c1", "nobody"), [])
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_nothing_hangs_on_a_chat_that_is_not_there(chatting: Chatting) -> None:
    with pytest.raises(GatewayError, match="cannot find chat 'c1'") as tagged:
        await chatting.chats.add_tag("c1", Tag("a", "a", "u1"))
    with pytest.raises(GatewayError, match="cannot find chat 'c1'") as shared:
        await chatting.chats.share(SharedChat("s", "c1", "u1", {}))
    assert (tagged.value.kind, shared.value.kind) == (ErrorKind.NOT_FOUND, ErrorKind.NOT_FOUND)


async def test_characters_that_no_engine_keeps_are_replaced(rows: TortoiseChats) -> None:
    await rows.add(chat("c1", title="a\x00b", head={"x\x00": ["\ud800"]}, meta={"n": float("nan")}), [])
    await rows.change("c1", ChatChange(title="\x00"), 1)
    assert await rows.find("c1") == chat(
        "c1", title="\ufffd", head={"x\ufffd": ["\ufffd"]}, meta={"n": None}, updated_at=1
    )


async def test_ids_that_cannot_be_stored_are_refused(rows: TortoiseChats) -> None:
    for wrong in (chat("x" * 65), chat("c1", current_id="\x00"), chat("c1", folder_id="\ud800")):
        with pytest.raises(GatewayError) as caught:
            await rows.add(wrong, [])
        assert caught.value.kind is ErrorKind.INVALID_REQUEST


async def test_racing_shares_leave_one(rows: TortoiseChats) -> None:
    await rows.add(chat("c1"), [])
    shares = [SharedChat(f"s{number}", "c1", "u1", {"n": number}) for number in range(8)]
    await asyncio.gather(*(rows.share(each) for each in shares))
    assert await SharedChatRow.all().count() == 1


async def test_writing_a_message_rewrites_no_chat(rows: TortoiseChats, database: Database) -> None:
    await rows.add(chat("c1", updated_at=1), [message("m1")])
    if database.location.is_sqlite:
        await database.engine.execute_query_dict(
            "CREATE TRIGGER writes BEFORE UPDATE ON chats BEGIN SELECT RAISE(ABORT, 'written'); END"
        )
    else:
        await database.engine.execute_query_dict(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'written'; END $$"
        )
        await database.engine.execute_query_dict(
            "CREATE TRIGGER writes BEFORE UPDATE ON chats FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    messages, effects = TortoiseMessages(), TortoiseMessageEvents()
    await messages.put("c1", [message("m1"), message("m2", "m1")])
    await messages.change("c1", "m2", MessageChange(content="x", items={"files": [1]}))
    await effects.append_content("c1", "m2", "y")
    await effects.append_items("c1", "m2", "files", [2])
    await messages.remove("c1", "m1")
    # In the second in which it was touched already, it is not written either.
    assert await rows.touch("c1", 1)
    with pytest.raises(GatewayError):
        await rows.touch("c1", 2)
