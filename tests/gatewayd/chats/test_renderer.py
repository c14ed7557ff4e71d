"""Tests for gatewayd.chats.renderer."""

from gatewayd.chats.records import Chat, Message, MessageState
from gatewayd.chats.renderer import (
    render_branch,
    render_chat,
    render_history,
    render_list_item,
    render_message,
)

TREE = [
    Message("q", None, "user", "why", timestamp=1),
    Message("a", "q", "assistant", "so", done=True, attributes={"model": "m"}, items={"files": [1]}),
    Message("b", "q", "assistant", "or so", done=False, state=MessageState.RUNNING),
    Message("r", "a", "user", parts=[{"type": "text", "text": "x"}]),
]


async def test_a_record() -> None:
    chat = Chat("c", "u", "T", {"models": ["m"]}, "r", meta={"x": 1}, tags=("t",), share_id="s")
    record = await render_chat(chat, TREE)
    shown = record.pop("chat")
    assert record == {
        "id": "c",
        "user_id": "u",
        "title": "T",
        "updated_at": 0,
        "created_at": 0,
        "last_read_at": None,
        "share_id": "s",
        "archived": False,
        "pinned": False,
        "meta": {"x": 1, "tags": ["t"]},
        "folder_id": None,
        "current_message_id": "r",
    }
    assert (shown["title"], shown["models"], shown["history"]["currentId"]) == ("T", ["m"], "r")
    nodes = shown["history"]["messages"]
    assert list(nodes) == ["q", "a", "b", "r"]
    assert nodes["q"]["childrenIds"] == ["a", "b"]
    assert shown["messages"] == [nodes["q"], nodes["a"], nodes["r"]]


def test_a_message() -> None:
    assert render_message(TREE[1], "q", ["r"]) == {
        "id": "a",
        "parentId": "q",
        "childrenIds": ["r"],
        "role": "assistant",
        "content": "so",
        "timestamp": 0,
        "done": True,
        "model": "m",
        "files": [1],
    }
    assert render_message(TREE[3], "a", [])["content"] == [{"type": "text", "text": "x"}]
    assert "done" not in render_message(TREE[0], None, [])


async def test_the_current_message_is_one() -> None:
    assert [(await render_history(TREE, wanted))[1] for wanted in ("a", "gone", None)] == ["a", "r", "r"]
    assert await render_history([], "a") == ({}, None)


async def test_an_unknown_parent_makes_a_root() -> None:
    nodes, _ = await render_history([Message("m", "gone", "user")], None)
    assert nodes["m"]["parentId"] is None


async def test_rings_are_cut() -> None:
    ring = [
        Message("a", "c", "user"),
        Message("b", "a", "user"),
        Message("c", "b", "user"),
        Message("d", "b", "user"),
        Message("e", "e", "user"),
    ]
    nodes, _ = await render_history(ring, None)
    assert {key: node["parentId"] for key, node in nodes.items()} == {
        "a": None,
        "b": "a",
        "c": "b",
        "d": "b",
        "e": None,
    }
    shown = (await render_chat(Chat("c", "u", "T", current_id="d"), ring))["chat"]["messages"]
    assert [message["id"] for message in shown] == ["a", "b", "d"]


async def test_long_chains_are_no_trouble() -> None:
    chain = [Message(str(n), str(n - 1) if n else None, "user") for n in range(20_000)]
    shown = (await render_chat(Chat("c", "u", "T"), chain[::-1]))["chat"]["messages"]
    assert [message["id"] for message in shown] == ["0"]
    assert len((await render_chat(Chat("c", "u", "T"), chain))["chat"]["messages"]) == 20_000


def test_a_branch() -> None:
    shown = render_branch([TREE[0], TREE[1]])
    assert [(one["id"], one["parentId"], one["childrenIds"]) for one in shown] == [
        ("q", None, ["a"]),
        ("a", "q", []),
    ]


def test_an_element() -> None:
    assert render_list_item(Chat("c", "u", "T", last_read_at=3, updated_at=2, created_at=1)) == {
        "id": "c",
        "title": "T",
        "updated_at": 2,
        "created_at": 1,
        "last_read_at": 3,
    }
