"""Chats of every damage, folders in circles, and shared copies."""

import asyncio
import json
from typing import Any

import pytest

from gatewayd.chats.folders import MAX_FOLDER_DEPTH
from gatewayd.chats.records import Chat, Message
from gatewayd.storage.chat_slices import UNFINISHED
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.tables.chats import ChatTagRow
from tests.fakes.storage.open_webui import Rows, auth, history, household, message, times, user
from tests.gatewayd.offline.imports.conftest import Importing, numbers, reasons


def chats(*found: Any, **columns: Any) -> Rows:
    """Return one user with these chats, each the JSON of its column."""
    return {
        "user": [user("u-1", "ann@example.org")],
        "auth": [auth("u-1")],
        "chat": [
            {"id": f"c-{place}", "user_id": "u-1", "title": "T", "chat": each, **times(), **columns}
            for place, each in enumerate(found)
        ],
    }


def stored(importing: Importing, chat_id: str = "c-0") -> tuple[Chat, list[Message]]:
    async def read() -> tuple[Chat, list[Message]]:
        async with importing.open():
            chat = await TortoiseChats().find(chat_id)
            assert chat is not None
            return chat, list(await TortoiseMessages().list(chat_id))

    return asyncio.run(read())


def test_circles_and_missing_parents_make_first_messages(importing: Importing) -> None:
    tree = history(
        message("a", "b", "user", "one"),
        message("b", "a", "assistant", "two"),
        message("c", "c", "user", "three"),
        message("d", "gone", "user", "four"),
        message("e", "d", "user", "five"),
        current="nowhere",
    )
    report = importing.rows(chats(tree))
    chat, messages = stored(importing)
    parents = {each.id: each.parent_id for each in messages}
    assert sum(parent is None for parent in parents.values()) == 3
    assert (parents["c"], parents["d"], parents["e"], chat.current_id) == (None, None, "d", "e")
    assert "3 of its messages follow a missing one or themselves" in reasons(report, "chat", "changed")["c-0"]


def test_a_chat_of_50_mb_is_imported_whole(importing: Importing) -> None:
    picture = "data:image/png;base64," + "QUJD" * (1 << 18)
    line = [
        message(f"m{n}", f"m{n - 1}" if n else None, "user", picture, files=[{"n": n}]) for n in range(50)
    ]
    report = importing.rows(chats(history(*line, current="m49")))
    assert numbers(report)["chat"] == (1, 0, 0)
    _, messages = stored(importing)
    assert sum(len(each.content) for each in messages) > 50_000_000
    assert [each.parent_id for each in messages] == [None, *(f"m{n}" for n in range(49))]


def test_a_message_that_is_too_large_is_left_out_and_its_answers_stay(importing: Importing) -> None:
    tree = history(
        message("a", None, "user", "hello"),
        message("b", "a", "assistant", "é" * (4 * 2**20 + 1)),
        message("c", "b", "user", "thanks"),
    )
    report = importing.rows(chats(tree))
    _, messages = stored(importing)
    assert {each.id: each.parent_id for each in messages} == {"a": None, "c": "a"}
    assert "message b is left out" in reasons(report, "chat", "changed")["c-0"]


@pytest.mark.parametrize(
    "text",
    ['{"history": {"messages": {"a": {"id": "a", "con', "[1, 2]", '"text"', "[" * 100_000, "\x00"],
)
def test_a_chat_without_its_json_is_left_out_alone(importing: Importing, text: str) -> None:
    report = importing.rows(chats(text, history(message("a", None, "user", "x"))))
    assert numbers(report)["chat"] == (1, 0, 1)
    assert reasons(report, "chat")["c-0"].startswith("cannot read chat: it is no JSON")


def test_odd_values_are_stored_in_a_form_that_can_be(importing: Importing) -> None:
    deep: Any = "end"
    for _ in range(90):
        deep = [deep]
    text = json.dumps(
        {
            "history": {
                "messages": {
                    "a": {"role": "user", "content": "nul \x00 and \ud800", "parentId": 7, "done": "no"},
                    "b": {
                        "role": "",
                        "model": "m",
                        "content": {"k": 1},
                        "parentId": "a",
                        "timestamp": 1.7e12,
                    },
                    "c": {
                        "role": "user",
                        "content": [{"type": "text"}],
                        "files": "x",
                        "usage": {"n": 10**30},
                    },
                    "d": "no message",
                    "": {"role": "user"},
                    "e": {"role": "user", "content": "deep", "extra": deep, "x": float("nan")},
                }
            },
            "tags": ["x"],
            "id": "\x00",
        }
    )
    report = importing.rows(
        chats(text, title="\x00 title", meta='{"tags": ["x y", 7, ""], "n": 1}', archived=True)
    )
    chat, messages = stored(importing)
    by_id = {each.id: each for each in messages}
    assert set(by_id) == {"a", "b", "c", "e"}
    assert by_id["a"].content == "nul \ufffd and \ufffd"
    assert (by_id["b"].role, by_id["b"].content, by_id["b"].timestamp) == (
        "assistant",
        '{"k": 1}',
        1_700_000_000,
    )
    assert by_id["c"].parts == [{"type": "text"}]
    assert by_id["c"].attributes["usage"] == {"n": str(10**30)}
    assert (chat.title, chat.archived, chat.meta, chat.tags) == ("\ufffd title", True, {"n": 1}, ("7", "x_y"))
    assert report["changed"]


def test_flat_lists_of_the_oldest_versions_are_a_branch(importing: Importing) -> None:
    flat = {
        "messages": [{"id": "a", "role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, 7]
    }
    importing.rows(chats(flat, title=""))
    chat, [first, second] = stored(importing)
    assert (first.parent_id, second.parent_id, chat.current_id, chat.title) == (
        None,
        "a",
        second.id,
        "New Chat",
    )


def test_a_chat_of_too_many_messages_is_left_out(importing: Importing) -> None:
    tree = history(*(message(f"m{n}", None, "user", "x") for n in range(10_001)))
    report = importing.rows(chats(tree))
    assert reasons(report, "chat") == {"c-0": "it has more than 10000 messages"}


def test_a_head_that_is_too_large_is_left_out(importing: Importing) -> None:
    tree = {**history(message("a", None, "user", "x")), "junk": list(range(30_000))}
    report = importing.rows(chats(tree))
    chat, messages = stored(importing)
    assert (chat.head, len(messages)) == ({}, 1)
    assert "only its messages are imported" in reasons(report, "chat", "changed")["c-0"]


def test_the_row_of_a_message_counts(importing: Importing) -> None:
    rows = chats(
        history(message("a", None, "user", "stale"), message("b", "a", "assistant", "old", done=False))
    )
    rows["chat"][0] |= {"current_message_id": "b", "last_read_at": 1_700_000_000}
    columns = {"chat_id": "c-0", **times()}
    rows["chat_message"] = [
        {"id": "c-0-a", "role": "user", "content": "fresh", **columns},
        {
            "id": "c-0-b",
            "role": "assistant",
            "parent_id": "a",
            "content": "new",
            "done": True,
            "model_id": "m",
            "status_history": [{"done": True}],
            "usage": '{"cut',
            **columns,
        },
        {"id": "c-0-", "role": "user", "content": "no id", **columns},
    ]
    importing.rows(rows)
    chat, [first, second] = stored(importing)
    assert (first.content, second.content, second.done, second.attributes["model"]) == (
        "fresh",
        "new",
        True,
        "m",
    )
    assert second.items == {"statusHistory": [{"done": True}]}
    assert (chat.current_id, chat.last_read_at) == ("b", 1_700_000_000)


def test_what_a_killed_import_left_is_imported_again(importing: Importing) -> None:
    rows = chats(history(message("a", None, "user", "x")))
    importing.rows(rows)

    async def half() -> None:
        async with importing.open():
            await ChatTagRow(chat_id="c-0", tag=UNFINISHED, name=UNFINISHED).save(force_create=True)

    asyncio.run(half())
    assert numbers(importing.rows(rows))["chat"] == (1, 0, 0)
    assert len(stored(importing)[1]) == 1


def test_folders_in_circles_and_too_deep_stay_trees(importing: Importing) -> None:
    rows = chats(history(), folder_id="f-20")
    parents = {"f-a": "f-b", "f-b": "f-a", "f-c": "gone", "f-0": None}
    parents |= {f"f-{n}": f"f-{n - 1}" for n in range(1, 21)}
    rows["folder"] = [
        {
            "id": each,
            "user_id": "u-1",
            "name": "Same",
            "parent_id": parent,
            "meta": {"x": "y" * 5000} if each == "f-c" else None,
        }
        for each, parent in parents.items()
    ]
    rows["folder"] += [
        {"id": "f-x", "user_id": "gone", "name": "X"},
        {"id": "f-y", "user_id": "u-1", "name": ""},
    ]
    report = importing.rows(rows)
    assert numbers(report)["folder"] == (24, 0, 2)

    async def read() -> None:
        async with importing.open():
            folders = {each.id: each for each in await TortoiseFolders().list("u-1")}
            names = {(each.parent_id, each.name) for each in folders.values()}
            assert len(names) == len(folders) == 24
            for each in folders.values():
                depth, at = 0, each.parent_id
                while at is not None:
                    depth, at = depth + 1, folders[at].parent_id
                assert depth < MAX_FOLDER_DEPTH
            assert folders["f-c"].meta == {}

    asyncio.run(read())
    assert stored(importing)[0].folder_id == "f-20"
    again = importing.rows(rows)
    assert (numbers(again)["folder"], again["has_changed"]) == ((0, 24, 2), False)


def test_a_folder_of_somebody_else_is_not_used(importing: Importing) -> None:
    rows = chats(history(), folder_id="f-1")
    rows["user"].append(user("u-2", "eve@example.org"))
    rows["folder"] = [
        {"id": "f-1", "user_id": "u-2", "name": "Work"},
        {"id": "f-1", "user_id": "u-1", "name": "Work"},
    ]
    report = importing.rows(rows)
    assert stored(importing)[0].folder_id is None
    assert reasons(report, "folder") == {"f-1": "another user has a folder with its id"}
    assert reasons(report, "chat", "changed") == {"c-0": "its folder is not here"}


def test_a_copy_that_was_unshared_here_does_not_come_back(importing: Importing) -> None:
    importing.rows(household())

    async def unshare() -> None:
        async with importing.open():
            await TortoiseChats().unshare("c-1")

    asyncio.run(unshare())
    report = importing.rows(household())
    assert (numbers(report)["shared chat"], report["has_changed"]) == ((0, 0, 1), False)


def test_a_shared_copy_that_is_damaged_is_left_out_alone(importing: Importing) -> None:
    rows = household()
    rows["shared_chat"][0]["chat"] = '{"cut'
    report = importing.rows(rows)
    assert (numbers(report)["chat"], numbers(report)["shared chat"]) == ((1, 0, 0), (0, 0, 1))
    rows["chat"].append({**rows["chat"][0], "id": "c-2", "share_id": "s-none"})
    assert numbers(importing.rows(rows))["chat"] == (1, 1, 0)
