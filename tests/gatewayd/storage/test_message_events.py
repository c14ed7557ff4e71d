import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.chats.json_limits import MAX_MEMBER_VALUES, MAX_TEXT_CHARACTERS, MAX_VALUES
from gatewayd.chats.parser import read_node
from gatewayd.chats.records import (
    MAX_CONTENT_CHARACTERS,
    MAX_ITEMS,
    MAX_ITEMS_BYTES,
    ChatQuery,
    MessageChange,
)
from gatewayd.chats.renderer import render_message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage import message_events
from gatewayd.storage.engine.database import Database
from gatewayd.storage.tables.chats import ChatMessageItemRow, ChatMessageRow
from gatewayd.text import casefold_nfc
from tests.fakes.storage.records import message
from tests.gatewayd.storage.conftest import Chatting

VALUES: list[Any] = [{"b": 1, "a": [None]}, "text", '"quoted"', 1, 2.5, True, None, [], "ü\n"]
EXECUTION = {"type": "code_execution", "id": "e"}

SPLIT = [
    ("cafe", "\u0301"),
    ("Cafe", "", "\u0301 au lait"),
    ("cafe\u0327", "\u0301"),
    ("\u1112", "\u1161", "\u11ab\u1100\u1173\u11af"),
    ("ΟΔΟΣ", "\u0345"),
    ("e" + "\u0327" * 14, "\u0327" * 14 + "\u0301"),
]
"""Texts in pieces of which one begins with what composes with the one before."""


async def test_text_is_added_to_the_end(live: Chatting) -> None:
    await live.messages.put("c1", [message("m1", content="a"), message("m2", content="")])
    await live.messages.put("c2", [message("m1", content="other")])
    for text in ("b", "", "'\\%é\n"):
        assert await live.effects.append_content("c1", "m1", text)
    assert list(await live.messages.list("c1")) == [
        message("m1", content="ab'\\%é\n"),
        message("m2", content=""),
    ]
    assert await live.messages.find("c2", "m1") == message("m1", content="other")


async def test_a_character_of_two_pieces_is_searched_as_one(stored: Chatting) -> None:
    for pieces in SPLIT:
        await stored.messages.put("c1", [message("m1", content="a long word ")])
        for piece in pieces:
            assert await stored.effects.append_content("c1", "m1", piece)
        # The search folds what it asks for, whichever form that has.
        found, _ = await stored.chats.list(ChatQuery(text="a long word " + "".join(pieces)))
        assert [each.id for each in found] == ["c1"], pieces
    assert not await stored.effects.append_content("c1", "none", "\u0301")
    await stored.messages.put("c1", [message("m1", content="e" * MAX_CONTENT_CHARACTERS)])
    with pytest.raises(GatewayError, match="its content would have over"):
        await stored.effects.append_content("c1", "m1", "\u0301")


async def test_content_is_replaced(live: Chatting) -> None:
    before = message("m1", content="", parts=[{"type": "text", "text": "a"}], attributes={"model": "m"})
    await live.messages.put("c1", [before])
    assert await live.effects.replace_content("c1", "m1", "new")
    assert await live.messages.find("c1", "m1") == replace(before, content="new", parts=None)
    assert await live.effects.replace_content("c1", "m1", "")
    assert await live.messages.find("c1", "m1") == replace(before, content="", parts=None)


async def test_text_after_a_list_is_a_part_of_it(stored: Chatting) -> None:
    parts = [{"type": "text", "text": "a"}]
    await stored.messages.put("c1", [message("m1", content="", parts=parts)])
    assert await stored.effects.append_content("c1", "m1", 'b"')
    found = await stored.messages.find("c1", "m1")
    assert found == message("m1", content="", parts=[*parts, {"type": "text", "text": 'b"'}])


@pytest.mark.parametrize("texts", ["O", "UVO"])
async def test_text_that_composes_with_the_end_is_folded_before_others_have_to_wait(
    texts: str, stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored.messages.put("c1", [message("m1", content="E")])
    others = list(reversed(texts))

    async def in_slices(work: Callable[[str], str], text: str) -> str:
        if work is casefold_nfc and others and text.endswith("\u0301"):
            assert await stored.effects.append_content("c1", "m1", others.pop())
        return work(text)

    monkeypatch.setattr(message_events, "map_slices", in_slices)
    assert await stored.effects.append_content("c1", "m1", "\u0301")
    row = await ChatMessageRow.get(chat_id="c1", id="m1")
    assert (row.content, row.content_key) == (f"E{texts}\u0301", f"e{texts[:-1].lower()}ó")
    assert not await stored.effects.append_content("c1", "gone", "\u0301")


async def test_values_are_added_in_their_order(live: Chatting) -> None:
    await live.messages.put("c1", [message("m1", items={"files": ["old"]}), message("m2")])
    assert await live.effects.append_items("c1", "m1", "files", VALUES)
    assert await live.effects.append_items("c1", "m1", "files", ["last"])
    assert await live.effects.append_items("c1", "m1", "embeds", [[1, 2]])
    assert await live.effects.append_items("c1", "m1", "files", [])
    everything = ["old", *VALUES, "last"]
    assert list(await live.effects.items("c1", "m1", "files")) == everything
    assert list(await live.messages.list("c1")) == [
        message("m1", items={"files": everything, "embeds": [[1, 2]]}),
        message("m2"),
    ]


async def test_an_object_takes_the_place_of_the_one_with_its_type_and_id(live: Chatting) -> None:
    run = {"type": "code_execution", "id": "a'\"%", "code": "1"}
    before = [*VALUES, {"type": "code_execution"}, {"type": "other", "id": run["id"]}]
    await live.messages.put("c1", [message("m1", items={"sources": before}), message("m2")])
    assert await live.effects.put_item("c1", "m1", "sources", run)
    await live.effects.append_items("c1", "m1", "sources", ["between"])
    assert await live.effects.put_item("c1", "m1", "sources", {**run, "result": {"output": "ü"}})
    assert await live.effects.put_item("c1", "m1", "files", run)
    ended = {**run, "result": {"output": "ü"}}
    assert list(await live.effects.items("c1", "m1", "sources")) == [*before, ended, "between"]
    assert list(await live.effects.items("c1", "m1", "files")) == [run]
    for chat_id, message_id in (("c1", "none"), ("none", "m1"), ("c1", "x" * 999)):
        assert not await live.effects.put_item(chat_id, message_id, "sources", run)
    again = (live.effects.put_item("c1", "m2", "sources", {**run, "n": n}) for n in range(5))
    assert await asyncio.gather(*again) == [True] * 5
    assert len(await live.effects.items("c1", "m2", "sources")) == 1


async def test_a_list_is_replaced(live: Chatting) -> None:
    await live.messages.put("c1", [message("m1", items={"files": [1, 2], "embeds": [3]})])
    assert await live.effects.replace_items("c1", "m1", "files", VALUES)
    assert await live.effects.replace_items("c1", "m1", "embeds", [])
    assert await live.effects.replace_items("c1", "m1", "sources", [4])
    assert await live.messages.find("c1", "m1") == message("m1", items={"files": VALUES, "sources": [4]})
    assert list(await live.effects.items("c1", "m1", "embeds")) == []


async def test_of_no_message_nothing_is_stored(live: Chatting) -> None:
    await live.messages.put("c2", [message("m1")])
    for chat_id, message_id in (("c1", "m1"), ("x", "m1"), ("\x00", "m1"), ("c2", "\x00"), ("c2", "x" * 256)):
        assert not await live.effects.append_content(chat_id, message_id, "x")
        assert not await live.effects.replace_content(chat_id, message_id, "x")
        assert not await live.effects.append_items(chat_id, message_id, "files", [1])
        assert not await live.effects.append_items(chat_id, message_id, "files", [])
        assert not await live.effects.replace_items(chat_id, message_id, "files", [1])
        assert list(await live.effects.items(chat_id, message_id, "files")) == []
    assert list(await live.messages.list("c2")) == [message("m1")]


async def test_characters_that_no_engine_keeps_are_replaced(stored: Chatting) -> None:
    await stored.messages.put("c1", [message("m1", content="")])
    assert await stored.effects.append_content("c1", "m1", "a\x00")
    assert await stored.effects.append_content("c1", "m1", "\ud83d\ude00\ud83d")
    assert await stored.effects.append_items("c1", "m1", "files", ["\x00", {"\ud800": float("nan")}])
    assert await stored.messages.find("c1", "m1") == message(
        "m1", content="a\ufffd😀\ufffd", items={"files": ["\ufffd", {"\ufffd": None}]}
    )
    assert await stored.effects.replace_content("c1", "m1", "\x00")
    found = await stored.messages.find("c1", "m1")
    assert found is not None
    assert found.content == "\ufffd"


@pytest.mark.parametrize("wrong", [object(), {1: 2}, 2**70])
async def test_what_is_no_json_is_refused_by_the_name_of_its_list(stored: Chatting, wrong: Any) -> None:
    await stored.messages.put("c1", [message("m1")])
    for write in (stored.effects.append_items, stored.effects.replace_items):
        with pytest.raises(GatewayError) as caught:
            await write("c1", "m1", "files", [1, wrong])
        assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "files")
    assert await stored.messages.find("c1", "m1") == message("m1")


async def test_parallel_appends_of_text_are_all_there_and_in_the_order_of_each_caller(
    stored: Chatting,
) -> None:
    await stored.messages.put("c1", [message("m1", content="")])

    async def say(name: str) -> None:
        for number in range(10):
            assert await stored.effects.append_content("c1", "m1", f"{name}{number} ")

    names = "abcdefghij"
    await asyncio.gather(*(say(name) for name in names))
    found = await stored.messages.find("c1", "m1")
    assert found is not None
    said = found.content.split()
    assert len(said) == 100
    for name in names:
        assert [each for each in said if each[0] == name] == [f"{name}{number}" for number in range(10)]


async def test_parallel_appends_of_values_are_all_there_and_in_the_order_of_each_caller(
    stored: Chatting,
) -> None:
    await stored.messages.put("c1", [message("m1")])

    async def add(caller: int) -> None:
        for number in range(10):
            assert await stored.effects.append_items("c1", "m1", "files", [[caller, number], [caller, -1]])

    await asyncio.gather(*(add(caller) for caller in range(10)))
    values = await stored.effects.items("c1", "m1", "files")
    assert len(values) == 200
    for caller in range(10):
        mine = [each[1] for each in values if each[0] == caller]
        assert mine == [part for number in range(10) for part in (number, -1)]


async def test_parallel_replacements_leave_one_list(stored: Chatting) -> None:
    await stored.messages.put("c1", [message("m1")])
    await asyncio.gather(
        *(stored.effects.replace_items("c1", "m1", "embeds", [number, number]) for number in range(10))
    )
    first, second = await stored.effects.items("c1", "m1", "embeds")
    assert first == second
    assert await ChatMessageItemRow.all().count() == 2


async def test_appends_to_a_message_that_goes_are_told_or_done(stored: Chatting) -> None:
    await stored.messages.put("c1", [message("m1")])
    results = await asyncio.gather(
        *(stored.effects.append_items("c1", "m1", "files", [number]) for number in range(5)),
        stored.messages.remove("c1", "m1"),
        *(stored.effects.append_items("c1", "m1", "files", [number]) for number in range(5)),
    )
    assert results[5] is True
    assert await ChatMessageItemRow.all().count() == 0


async def test_inside_a_transaction_that_fails_nothing_is_kept(stored: Chatting, database: Database) -> None:
    await stored.messages.put("c1", [message("m1", content="a")])

    async def fail() -> None:
        async with database.transaction():
            assert await stored.effects.append_content("c1", "m1", "b")
            assert await stored.effects.append_items("c1", "m1", "files", [1])
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        await fail()
    assert await stored.messages.find("c1", "m1") == message("m1", content="a")


async def test_a_text_stays_within_its_limit(live: Chatting) -> None:
    text = "x" * (MAX_CONTENT_CHARACTERS - 1)
    await live.messages.put("c1", [message("m1", content=text)])
    assert await live.effects.append_content("c1", "m1", "y")
    for change in (live.effects.append_content, live.effects.replace_content):
        for added in ("z", text + "zz"):
            if change == live.effects.append_content or len(added) > 1:
                with pytest.raises(GatewayError) as caught:
                    await change("c1", "m1", added)
                assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, "content")
    found = await live.messages.find("c1", "m1")
    assert found is not None
    assert found.content == text + "y"
    assert not await live.effects.append_content("c1", "gone", "z")


@pytest.mark.parametrize(
    "values", [list(range(MAX_ITEMS)), ["x" * (MAX_ITEMS_BYTES - 100)]], ids=["count", "bytes"]
)
async def test_a_list_stays_within_its_limits(live: Chatting, values: list[Any]) -> None:
    await live.messages.put("c1", [message("m1")])
    assert await live.effects.append_items("c1", "m1", "sources", values)
    more = ["y" * 100]
    for change in (
        live.effects.append_items("c1", "m1", "sources", more),
        live.effects.replace_items("c1", "m1", "sources", [*values, *more]),
    ):
        with pytest.raises(GatewayError) as caught:
            await change
        assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, "sources")
    assert list(await live.effects.items("c1", "m1", "sources")) == values
    assert await live.effects.append_items("c1", "m1", "files", more)


async def test_a_value_that_could_not_be_read_back_is_refused(stored: Chatting) -> None:
    await stored.messages.put("c1", [message("m1", items={"sources": [EXECUTION]})])
    most: list[Any] = [2**64 - 1] * (MAX_MEMBER_VALUES - 4)
    await stored.effects.put_item("c1", "m1", "sources", {**EXECUTION, "c": most})
    for many, reason in (
        ([*most, 1], "has over 100000 values in it"),
        ("ü" * (MAX_TEXT_CHARACTERS + 1), "characters in a text that is not ASCII"),
        ("\x00" * (MAX_TEXT_CHARACTERS + 1), "characters in a text that is not ASCII"),
    ):
        value = {**EXECUTION, "c": many}
        for refused in (
            stored.effects.append_items("c1", "m1", "sources", [value]),
            stored.effects.replace_items("c1", "m1", "embeds", [value]),
            stored.effects.put_item("c1", "m1", "sources", value),
            stored.messages.change("c1", "m1", MessageChange(items={"files": [value]})),
        ):
            with pytest.raises(GatewayError, match=reason) as caught:
                await refused
            assert caught.value.kind is ErrorKind.TOO_LARGE
    found = await stored.messages.find("c1", "m1")
    assert found is not None
    await read_node(render_message(found, None, []), "message")


async def test_a_list_of_parts_stays_within_what_can_be_read_back(stored: Chatting) -> None:
    parts: list[Any] = [{"a": [1] * (MAX_VALUES - 6)}]
    await stored.messages.put("c1", [message("m1", content="", parts=parts)])
    assert await stored.effects.append_content("c1", "m1", "x")
    with pytest.raises(GatewayError, match="its parts over 20000 values"):
        await stored.effects.append_content("c1", "m1", "x")
    found = await stored.messages.find("c1", "m1")
    assert found is not None
    assert found.parts == [*parts, {"type": "text", "text": "x"}]
    await read_node(render_message(found, None, []), "message")


async def test_an_object_takes_one_place_and_stays_within_the_limits_of_the_list(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored.messages.put("c1", [message("m1", items={"sources": [EXECUTION] * 3})])
    longer = {**EXECUTION, "code": "x"}
    assert await stored.effects.put_item("c1", "m1", "sources", longer)
    held = [longer, EXECUTION, EXECUTION]
    assert list(await stored.effects.items("c1", "m1", "sources")) == held
    monkeypatch.setattr("gatewayd.storage.message_limits.MAX_ITEMS_BYTES", 200)
    with pytest.raises(GatewayError, match="its sources would have over"):
        await stored.effects.put_item("c1", "m1", "sources", {**EXECUTION, "code": "x" * 100})
    assert list(await stored.effects.items("c1", "m1", "sources")) == held


@pytest.mark.parametrize("text", ["x", "x" * 100])
async def test_a_full_chat_takes_no_event(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    await stored.messages.put("c1", [message("m1", content="", items={"files": ["x" * 100]})])
    monkeypatch.setattr("gatewayd.storage.chat_sizes.MAX_CHAT_BYTES", 100)
    monkeypatch.setattr("gatewayd.storage.chat_sizes.MEASURE_INTERVAL_BYTES", len(text))
    for refused in (
        stored.effects.append_content("c1", "m1", text),
        stored.effects.replace_content("c1", "m1", text),
        stored.effects.append_items("c1", "m1", "files", [text]),
        stored.effects.replace_items("c1", "m1", "embeds", [text]),
        stored.effects.put_item("c1", "m1", "files", {**EXECUTION, "code": text}),
    ):
        with pytest.raises(GatewayError, match="its messages hold over") as caught:
            await refused
        assert caught.value.kind is ErrorKind.TOO_LARGE
    assert await stored.messages.find("c1", "m1") == message("m1", content="", items={"files": ["x" * 100]})
