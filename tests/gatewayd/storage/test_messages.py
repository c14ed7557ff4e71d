import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.chats.records import Message, MessageChange, MessageState
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage import messages
from gatewayd.storage.engine.database import Database
from gatewayd.storage.tables.chats import ChatMessageItemRow
from tests.fakes.storage.records import message
from tests.gatewayd.storage.conftest import Chatting

FULL = message(
    "m1",
    role="assistant",
    content="Grüße\n\t<b>",
    done=False,
    state=MessageState.RUNNING,
    attributes={"model": "m", "usage": {"total_tokens": 2}, "none": None, "n": 1.5},
    items={"statusHistory": [{"description": "a"}, {"done": True}], "files": ["x", 1, None, [2], {"y": 3}]},
    timestamp=9,
)
LIST = message(
    "m2", "m1", content="", parts=[{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]
)


async def test_messages_come_back_as_they_were(live: Chatting) -> None:
    await live.messages.put("c1", [FULL, LIST])
    await live.messages.put("c2", [message("m1")])
    assert list(await live.messages.list("c1")) == [FULL, LIST]
    assert await live.messages.find("c1", "m1") == FULL
    assert await live.messages.find("c1", "m2") == LIST
    assert await live.messages.find("c2", "m1") == message("m1")


async def test_what_is_absent_is_none_or_false(live: Chatting) -> None:
    await live.messages.put("c1", [message("m1")])
    for chat_id, message_id in (("c1", "x"), ("x", "m1"), ("\x00", "m1"), ("c1", "\x00"), ("c1", "x" * 256)):
        assert await live.messages.find(chat_id, message_id) is None
        assert list(await live.messages.branch(chat_id, message_id)) == []
        assert not await live.messages.change(chat_id, message_id, MessageChange(content="x"))
        assert not await live.messages.remove(chat_id, message_id)
    assert list(await live.messages.list("x")) == []
    assert list(await live.messages.list("c2")) == []
    assert list(await live.messages.list("\x00")) == []
    await live.messages.put("c1", [])
    assert list(await live.messages.list("c1")) == [message("m1")]


async def test_a_message_is_replaced_whole_and_keeps_its_place(live: Chatting) -> None:
    await live.messages.put("c1", [FULL, LIST])
    fresh = message("m1", "m0", done=True, items={"embeds": ["e"]})
    await live.messages.put("c1", [message("m3"), fresh])
    assert list(await live.messages.list("c1")) == [fresh, LIST, message("m3")]


async def test_of_two_with_one_id_the_last_counts(live: Chatting) -> None:
    await live.messages.put("c1", [FULL, message("m2"), message("m1", content="last")])
    assert list(await live.messages.list("c1")) == [message("m1", content="last"), message("m2")]


async def test_a_change_writes_what_is_given(live: Chatting) -> None:
    await live.messages.put("c1", [FULL, LIST])
    assert await live.messages.change("c1", "m1", MessageChange())
    plain = replace(FULL, attributes={key: value for key, value in FULL.attributes.items() if value})
    found = await live.messages.find("c1", "m1")
    assert found in (FULL, plain)
    change = MessageChange(
        role="tool",
        content="",
        done=True,
        state=MessageState.IDLE,
        attributes={"model": None, "usage": {"a": 1}, "ключ.\"'": [1]},
        items={"files": [], "sources": [{"s": 1}]},
    )
    assert await live.messages.change("c1", "m1", change)
    assert await live.messages.find("c1", "m1") == replace(
        FULL,
        role="tool",
        content="",
        done=True,
        state=MessageState.IDLE,
        attributes={"usage": {"a": 1}, "n": 1.5, "ключ.\"'": [1]},
        items={"statusHistory": FULL.items["statusHistory"], "sources": [{"s": 1}]},
    )
    assert await live.messages.find("c1", "m2") == LIST


async def test_the_content_is_a_text_or_a_list(live: Chatting) -> None:
    await live.messages.put("c1", [message("m1", content="text"), LIST])
    parts = [{"type": "text", "text": "b"}]
    assert await live.messages.change("c1", "m1", MessageChange(parts=parts))
    assert await live.messages.change("c1", "m2", MessageChange(content="now a text"))
    assert list(await live.messages.list("c1")) == [
        message("m1", content="", parts=parts),
        replace(LIST, content="now a text", parts=None),
    ]


async def test_a_branch_goes_from_the_root_to_a_message(live: Chatting) -> None:
    tree = [message("d", "c"), message("a"), message("b", "a"), message("x", "a"), message("c", "b")]
    await live.messages.put("c1", [*tree, message("lost", "gone"), message("under", "lost")])
    await live.messages.put("c2", [message("gone")])

    async def branch(message_id: str) -> list[str]:
        return [each.id for each in await live.messages.branch("c1", message_id)]

    assert [await branch(end) for end in ("a", "d", "x", "under")] == [
        ["a"],
        ["a", "b", "c", "d"],
        ["a", "x"],
        ["lost", "under"],
    ]


async def test_parents_in_a_circle_end_a_branch(live: Chatting) -> None:
    await live.messages.put(
        "c1", [message("a", "c"), message("b", "a"), message("c", "b"), message("s", "s")]
    )
    found = await live.messages.branch("c1", "b")
    assert [each.id for each in found] == ["c", "a", "b"]
    assert [each.id for each in await live.messages.branch("c1", "s")] == ["s"]


async def test_the_children_of_a_removed_message_get_its_parent(live: Chatting) -> None:
    tree = [message("a"), message("b", "a", items={"files": [1]}), message("c", "b"), message("d", "b")]
    await live.messages.put("c1", tree)
    await live.messages.put("c2", [message("c", "b")])
    assert await live.messages.remove("c1", "b")
    assert not await live.messages.remove("c1", "b")
    assert list(await live.messages.list("c1")) == [message("a"), message("c", "a"), message("d", "a")]
    assert list(await live.messages.list("c2")) == [message("c", "b")]
    assert await live.messages.remove("c1", "a")
    assert list(await live.messages.list("c1")) == [message("c"), message("d")]


async def test_the_outline_and_single_messages(live: Chatting) -> None:
    tree = [message("b", "a", items={"files": [1]}), message("a"), message("c", "b")]
    await live.messages.put("c1", tree)
    await live.messages.put("c2", [message("a")])
    assert list(await live.messages.outline("c1")) == [("b", "a"), ("a", None), ("c", "b")]
    assert list(await live.messages.outline("gone")) == []
    assert list(await live.messages.select("c1", ["c", "b", "gone"])) == [tree[0], tree[2]]
    assert list(await live.messages.select("c1", [])) == []
    await live.messages.remove_all("c1", ["b", "a", "gone"])
    assert list(await live.messages.list("c1")) == [tree[2]]
    assert list(await live.messages.list("c2")) == [message("a")]


async def test_what_was_running_is_ended(live: Chatting) -> None:
    idle = message("m2", done=False, attributes={"model": "m"})
    await live.messages.put("c1", [FULL, idle])
    await live.messages.put("c2", [message("m1", state=MessageState.RUNNING)])
    error = {"content": 'it\'s "over"'}
    assert await live.messages.end_running(error) == 2
    assert await live.messages.end_running(error) == 0
    found = await live.messages.find("c1", "m1")
    assert found is not None
    assert (found.done, found.state, found.content) == (True, MessageState.IDLE, FULL.content)
    assert (found.attributes["error"], found.attributes["usage"]) == (error, {"total_tokens": 2})
    assert found.items == FULL.items
    assert await live.messages.find("c1", "m2") == idle
    assert await live.messages.find("c2", "m1") == message("m1", done=True, attributes={"error": error})


async def test_many_messages_keep_their_order(live: Chatting) -> None:
    many = [message(f"m{number}", f"m{number - 1}", items={"files": [number]}) for number in range(2001)]
    await live.messages.put("c1", many)
    assert list(await live.messages.list("c1")) == many
    assert list(await live.messages.branch("c1", "m2000")) == many


async def test_a_message_without_a_chat_is_refused(live: Chatting) -> None:
    with pytest.raises(GatewayError, match="cannot find chat 'x'") as caught:
        await live.messages.put("x", [message("m1")])
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (MessageChange(content="a\x00\ud83d"), {"content": "a\ufffd\ufffd"}),
        (
            MessageChange(parts=[{"type": "text", "text": "\x00"}, float("inf")]),
            {"content": "", "parts": [{"type": "text", "text": "\ufffd"}, None]},
        ),
        (MessageChange(attributes={"\x00": "\x00"}), {"attributes": {"\ufffd": "\ufffd"}}),
        (MessageChange(items={"files": ["\ud800"]}), {"items": {"files": ["\ufffd"]}}),
    ],
)
async def test_characters_that_no_engine_keeps_are_replaced(
    stored: Chatting, change: MessageChange, kept: dict[str, Any]
) -> None:
    await stored.messages.put("c1", [message("m1")])
    await stored.messages.change("c1", "m1", change)
    assert await stored.messages.find("c1", "m1") == replace(message("m1"), **kept)


def deep(levels: int) -> Any:
    value: Any = "\x00"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "wrong",
    [
        message("x" * 256),
        message("\x00"),
        message("m2", "\x00"),
        message("m2", role="x" * 65),
        message("m2", attributes={"a": object()}),
        message("m2", attributes={"a": 2**70}),
        message("m2", items={"files": [deep(101)]}),
        message("m2", items={"x" * 33: [1]}),
        message("m2", timestamp=2**63),
    ],
)
async def test_what_cannot_be_stored_is_refused_and_nothing_is_changed(
    stored: Chatting, wrong: Message
) -> None:
    await stored.messages.put("c1", [message("m1")])
    with pytest.raises(GatewayError) as caught:
        await stored.messages.put("c1", [message("m1", content="new"), wrong])
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert list(await stored.messages.list("c1")) == [message("m1")]


async def test_parallel_changes_are_all_kept(stored: Chatting) -> None:
    await stored.messages.put("c1", [message("m1")])
    changes = [MessageChange(attributes={f"k{number}": number}) for number in range(20)]
    results = await asyncio.gather(*(stored.messages.change("c1", "m1", each) for each in changes))
    assert all(results)
    found = await stored.messages.find("c1", "m1")
    assert found is not None
    assert found.attributes == {f"k{number}": number for number in range(20)}


async def test_parallel_puts_of_one_message_leave_one(stored: Chatting) -> None:
    versions = [message("m1", content=str(number), items={"files": [number]}) for number in range(10)]
    await asyncio.gather(*(stored.messages.put("c1", [each]) for each in versions))
    [found] = await stored.messages.list("c1")
    assert found in versions
    assert await ChatMessageItemRow.all().count() == 1


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chat_messages SET content = content || 'x' WHERE chat_id = 'c' AND id = 'm'",
        "UPDATE chat_messages SET parent_id = 'x' WHERE chat_id = 'c' AND parent_id = 'm'",
        "UPDATE chat_messages SET done = TRUE WHERE state = 'running'",
        "SELECT * FROM chat_messages WHERE chat_id = 'c' ORDER BY number",
        "SELECT value FROM chat_message_items WHERE kind = 'files' AND message_id = 5 ORDER BY id",
        "DELETE FROM chat_message_items WHERE message_id = 5",
        "SELECT * FROM chats WHERE user_id = 'u' ORDER BY updated_at DESC, id DESC LIMIT 5",
        "SELECT * FROM chats ORDER BY updated_at DESC LIMIT 5",
        "SELECT * FROM shared_chats WHERE chat_id = 'c'",
        "SELECT * FROM chat_tags WHERE chat_id = 'c' AND tag = 't'",
        "DELETE FROM user_valves WHERE family = 'tool' AND plugin_id = 'p'",
        "SELECT * FROM plugins WHERE family = 'tool' AND id = 'p'",
    ],
)
async def test_what_is_looked_up_has_an_index(database: Database, statement: str) -> None:
    plan = await database.engine.execute_query_dict(f"EXPLAIN QUERY PLAN {statement}")
    steps = [row["detail"] for row in plan]
    assert all("USING" in step and "INDEX" in step for step in steps), steps


async def test_the_size_of_a_chat_is_that_of_all_its_messages(live: Chatting) -> None:
    assert await live.messages.size("c1") == await live.messages.size("\x00") == 0
    texts = [message("m1", content="\u00fc" * 1000), message("m2", content="", parts=["x" * 1000])]
    await live.messages.put("c1", [*texts, message("m3", items={"files": ["y" * 1000]})])
    await live.messages.put("c2", [message("m1", content="z" * 1000)])
    assert 4000 < await live.messages.size("c1") < 4300
    assert 1000 < await live.messages.size("c2") < 1100


async def test_texts_are_encoded_before_others_have_to_wait(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def recorded(name: str, work: Any) -> Any:
        def call(*args: Any) -> Any:
            order.append(name)
            return work(*args)

        return call

    for name in ("map_slices", "encode_list", "encode_items", "write_transaction"):
        monkeypatch.setattr(messages, name, recorded(name, getattr(messages, name)))
    await stored.messages.put("c1", [message("m1", content="x", items={"files": [1]})])
    assert order == ["encode_list", "map_slices", "map_slices", "write_transaction"]
    order.clear()
    await stored.messages.change("c1", "m1", MessageChange(content="y", items={"files": [2]}))
    assert order == ["map_slices", "map_slices", "encode_items", "write_transaction"]
