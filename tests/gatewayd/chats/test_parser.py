"""Tests for gatewayd.chats.parser."""

from typing import Any

import pytest

from gatewayd.chats.json_limits import MAX_MEMBER_VALUES, MAX_VALUES, check_member
from gatewayd.chats.parser import UNTITLED, link_messages, read_document, read_id, read_node
from gatewayd.chats.records import MAX_ITEMS, Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.text import MAX_STORED_DEPTH
from tests.fakes.storage.chats_site import document


def numbers() -> Any:
    return iter(["n1", "n2", "n3"]).__next__


async def test_a_whole_document() -> None:
    read = await read_document(document(params={"temperature": 1}))
    assert (read.title, read.current_id, read.is_linear) == ("Birds", "a1", False)
    assert read.head == {"models": ["m"], "params": {"temperature": 1}}
    question, answer = read.nodes
    assert question.fresh(9) == Message("q1", None, "user", "What stands in the water?", timestamp=5)
    assert answer.fresh(9).attributes == {"model": "m"}
    assert (answer.fresh(9).parent_id, answer.fresh(9).done) == ("q1", True)


async def test_the_lists_of_a_message() -> None:
    read = await read_node(
        {"role": "user", "files": [{"id": "f"}], "sources": None, "tags": [1]}, "message", "m"
    )
    assert read.items == {"files": [{"id": "f"}], "sources": []}
    assert read.fresh(3) == Message(
        "m", None, "user", attributes={"tags": [1]}, items={"files": [{"id": "f"}]}, timestamp=3
    )


async def test_a_partial_message_loses_nothing() -> None:
    stored = Message("m", "p", "assistant", "text", attributes={"model": "x"}, items={"files": [1]})
    assert (await read_node({"childrenIds": ["c"]}, "message", "m")).merged(stored) == stored
    changed = (await read_node({"favorite": True, "files": []}, "message", "m")).merged(stored)
    assert (changed.content, changed.attributes) == ("text", {"model": "x", "favorite": True})
    assert changed.items == {}


async def test_contents_in_parts() -> None:
    parts = [{"type": "text", "text": "x"}]
    read = (await read_node({"content": parts}, "message", "m")).fresh(1)
    assert (read.content, read.parts) == ("", parts)
    assert (await read_node({"content": "y"}, "message", "m")).merged(read).parts is None
    assert (await read_node({"content": None}, "message", "m")).merged(read).content == ""


async def test_a_list_alone_is_a_chain() -> None:
    messages = [{"role": "user", "content": "a"}, {"id": "x", "role": "assistant"}, {"role": "user"}]
    read = await link_messages(await read_document({"messages": messages}), (), numbers())
    assert [(one.id, one.values["parent_id"]) for one in read.nodes] == [
        ("n1", None),
        ("x", "n1"),
        ("n2", "x"),
    ]
    assert read.current_id == "n2"


async def test_a_list_beside_the_tree_is_a_copy() -> None:
    read = await read_document({**document(), "messages": [{"role": "user", "content": "other"}]})
    assert [one.id for one in read.nodes] == ["q1", "a1"]


async def test_a_list_meets_what_is_stored() -> None:
    stored = [Message("s1", None, "user"), Message("s2", "s1", "assistant")]
    messages = [{"role": "user"}, {"role": "assistant"}, {"role": "user"}]
    read = await link_messages(await read_document({"messages": messages}), stored, numbers())
    assert [one.id for one in read.nodes] == ["s1", "s2", "n1"]
    messages[1]["role"] = "user"
    assert [
        one.id
        for one in (await link_messages(await read_document({"messages": messages}), stored, numbers())).nodes
    ] == [
        "s1",
        "n1",
        "n2",
    ]


@pytest.mark.parametrize(("title", "kept"), [(None, None), (" ", UNTITLED), (" a ", "a")])
async def test_titles(title: str | None, kept: str | None) -> None:
    assert (await read_document({"title": title})).title == kept


def test_ids() -> None:
    assert [read_id(value, "id") for value in (None, "", "x" * 255)] == [None, None, "x" * 255]


def in_node(**members: Any) -> dict[str, Any]:
    return {"history": {"messages": {"m": members}}}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


BAD = [
    ([], "chat"),
    ({"title": 1}, "chat.title"),
    ({"title": "x" * 1001}, "chat.title"),
    ({"title": "\0"}, "chat.title"),
    ({"models": ["\ud800"]}, "chat.models.0"),
    ({"messages": {}}, "chat.messages"),
    ({"messages": ["x"]}, "chat.messages.0"),
    ({"messages": [{"id": "a"}, {"id": "a"}]}, "chat.messages.1.id"),
    ({"messages": [{"content": 1}]}, "chat.messages.0.content"),
    ({"history": []}, "chat.history"),
    ({"history": {"currentId": 1}}, "chat.history.currentId"),
    ({"history": {"messages": []}}, "chat.history.messages"),
    ({"history": {"messages": {"": {}}}}, "chat.history.messages"),
    ({"history": {"messages": {"x" * 256: {}}}}, "chat.history.messages"),
    ({"history": {"messages": {"a\0": {}}}}, "chat.history.messages"),
    (in_node(id="n"), "chat.history.messages.m.id"),
    (in_node(id=5), "chat.history.messages.m.id"),
    (in_node(parentId=5), "chat.history.messages.m.parentId"),
    (in_node(parentId="x" * 256), "chat.history.messages.m.parentId"),
    (in_node(role=""), "chat.history.messages.m.role"),
    (in_node(role=1), "chat.history.messages.m.role"),
    (in_node(content=5), "chat.history.messages.m.content"),
    (in_node(content=["x"]), "chat.history.messages.m.content"),
    (in_node(content={}), "chat.history.messages.m.content"),
    (in_node(content="a\0"), "chat.history.messages.m.content"),
    (in_node(done="yes"), "chat.history.messages.m.done"),
    (in_node(timestamp="now"), "chat.history.messages.m.timestamp"),
    (in_node(timestamp=-1), "chat.history.messages.m.timestamp"),
    (in_node(timestamp=True), "chat.history.messages.m.timestamp"),
    (in_node(files={}), "chat.history.messages.m.files"),
    (in_node(sources=["\0"]), "chat.history.messages.m.sources.0"),
    (in_node(usage={"a": "\0"}), "chat.history.messages.m.usage.a"),
]


@pytest.mark.parametrize(("value", "name"), BAD)
async def test_bad_documents_name_the_field(value: Any, name: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await read_document(value)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, name)


async def test_a_list_that_events_have_filled_can_be_read_back() -> None:
    status = {"action": "search", "description": "Searching", "done": False, "urls": ["a", "b"]}
    node = await read_node({"id": "m", "statusHistory": [status] * MAX_ITEMS}, "chat.m")
    assert len(node.items["statusHistory"]) == MAX_ITEMS
    with pytest.raises(GatewayError, match=f"it has more than {MAX_VALUES} values"):
        await read_node({"id": "m", "other": [1] * MAX_VALUES}, "chat.m")


async def test_a_member_that_events_write_can_be_read_back() -> None:
    most = [1] * (MAX_MEMBER_VALUES - 1)
    check_member(most, "sources")
    await read_node({"id": "m", "sources": [most, most]}, "chat.m")
    with pytest.raises(GatewayError, match="has over 100000 values"):
        check_member([*most, 1], "sources")
    with pytest.raises(GatewayError, match="it has more than") as caught:
        await read_node({"id": "m", "sources": [1, [*most, 1]]}, "chat.m")
    assert caught.value.param == "chat.m.sources.1"
    deepest = nested(MAX_STORED_DEPTH)
    await read_node({"id": "m", "sources": [deepest]}, "chat.m")
    with pytest.raises(GatewayError, match="it nests deeper"):
        await read_node({"id": "m", "sources": [[deepest]]}, "chat.m")
