"""Tests for gatewayd.plugin_host.chats."""

from typing import Any

import pytest

from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS, copy
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.plugins.host_services import Hosting
from tests.fakes.storage.chats_site import document


async def chat(made: Hosting, title: str = "Birds") -> Any:
    return await made.host.chats.create(made.ann.id, document(title))


async def forbid(made: Hosting, *leaves: str) -> None:
    tree = copy(BUILTIN_PERMISSIONS)
    tree["chat"].update(dict.fromkeys(leaves, False))
    await made.documents.accounts.permissions.set_defaults(tree, "test")


async def test_a_chat_is_its_owners(made: Hosting) -> None:
    record = await chat(made)
    chats = made.host.chats
    assert record["user_id"] == made.ann.id
    assert await chats.find(record["id"], None) == record
    assert await chats.find(record["id"], made.ann.id) == record
    # An administrator who may read it does so as one, not as a user whom a plugin names.
    assert await chats.find(record["id"], made.admin.id) is None
    assert await chats.find("none", None) is None
    with pytest.raises(GatewayError) as unknown:
        await chats.create("nobody", document())
    assert unknown.value.kind is ErrorKind.NOT_FOUND


async def test_lists(made: Hosting) -> None:
    first, second = await chat(made, "One"), await chat(made, "Two")
    chats = made.host.chats
    assert {each["id"] for each in await chats.list(made.ann.id, 0, None)} == {first["id"], second["id"]}
    assert len(await chats.list(made.ann.id, 1, 5)) == 1
    ann = await made.actors.of(made.ann.id)
    assert ann is not None
    await made.chats.chats.toggle_archived(ann, first["id"])
    assert [each["title"] for each in await chats.list(made.ann.id, 0, None)] == ["Two"]
    assert await chats.list(made.admin.id, 0, None) == []
    assert await chats.list("nobody", 0, None) == []


async def test_a_chat_is_changed_by_merging(made: Hosting) -> None:
    record = await chat(made)
    changed = await made.host.chats.change(record["id"], {"title": "Herons", "tags": ["x"]})
    assert changed is not None
    assert (changed["title"], changed["chat"]["models"], changed["chat"]["tags"]) == ("Herons", ["m"], ["x"])
    assert await made.host.chats.change("none", {"title": "x"}) is None


async def test_messages_are_changed_and_added_whatever_the_user_may_do(made: Hosting) -> None:
    record = await chat(made)
    await forbid(made, "edit")
    chats, chat_id = made.host.chats, record["id"]
    assert await chats.put_message(chat_id, "a1", {"content": "A grey heron.", "mark": 1})
    known = await chats.find_message(chat_id, "a1")
    assert known is not None
    assert (known["content"], known["mark"], known["model"]) == ("A grey heron.", 1, "m")
    assert await chats.put_message(chat_id, "q2", {"content": "And then?"})
    added = await chats.find_message(chat_id, "q2")
    assert added is not None
    assert (added["role"], added["parentId"]) == ("user", "a1")
    again = await chats.find(chat_id, None)
    assert again is not None
    assert again["current_message_id"] == "q2"
    assert await chats.find_message(chat_id, "none") is None
    assert not await chats.put_message("none", "a1", {"content": "x"})


async def test_lists_of_messages_are_added_to(made: Hosting) -> None:
    record = await chat(made)
    chats, chat_id = made.host.chats, record["id"]
    assert await chats.append_items(chat_id, "a1", "files", [{"id": "f1"}]) == [{"id": "f1"}]
    assert await chats.append_items(chat_id, "a1", "files", [{"id": "f2"}]) == [{"id": "f1"}, {"id": "f2"}]
    assert await chats.append_items(chat_id, "none", "files", [{"id": "f1"}]) is None
    with pytest.raises(GatewayError) as refused:
        await chats.append_items(chat_id, "a1", "content", ["x"])
    assert refused.value.param == "kind"


async def test_users_need_the_permission_to_delete_and_plugins_do_not(made: Hosting) -> None:
    first, second = await chat(made), await chat(made)
    await forbid(made, "delete")
    chats = made.host.chats
    with pytest.raises(GatewayError) as refused:
        await chats.remove(first["id"], made.ann.id)
    assert refused.value.kind is ErrorKind.FORBIDDEN
    assert not await chats.remove(first["id"], made.admin.id)
    assert await chats.remove(first["id"], None)
    assert not await chats.remove(first["id"], None)
    await forbid(made)
    assert await chats.remove(second["id"], made.ann.id)
    assert await chats.find(second["id"], None) is None


async def test_tags(made: Hosting) -> None:
    record = await chat(made)
    ann = await made.actors.of(made.ann.id)
    assert ann is not None
    await made.chats.tags.add(ann, record["id"], "Water Birds")
    (tag,) = await made.host.chats.tags(record["id"])
    assert (tag["id"], tag["name"], tag["user_id"]) == ("water_birds", "Water Birds", made.ann.id)
    assert await made.host.chats.tags("none") == []
