from typing import Any

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.modules.chats import messages_of
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


@pytest.fixture
async def chats(installed: InstalledModules) -> Any:
    return (await load_at_home("from open_webui.models.chats import Chats, ChatForm"))[0].Chats


async def test_chats_are_found(chats: Any) -> None:
    chat = await in_thread(chats.get_chat_by_id, "c1")
    assert (chat.id, chat.user_id, chat.title) == ("c1", "ada", "Trains")
    assert chat.chat["history"]["messages"]["m2"]["content"] == "hi"
    assert await chat is chat
    assert (await in_thread(chats.get_chat_by_id_and_user_id, "c1", "ada")).id == "c1"
    assert await in_thread(chats.get_chat_by_id_and_user_id, "c1", "bob") is None
    assert await in_thread(chats.get_chat_by_id, "c9") is None
    assert await in_thread(chats.get_chat_title_by_id, "c1") == "Trains"
    assert await in_thread(chats.get_chat_title_by_id, "c9") is None
    assert await in_thread(chats.is_chat_owner, "c1", "ada") is True
    assert await in_thread(chats.is_chat_owner, "c1", "bob") is False


async def test_awaited_on_a_loop_of_its_own(chats: Any) -> None:
    async def plugin() -> str:
        return str((await chats.get_chat_by_id("c1")).title)

    assert await at_home(plugin) == "Trains"


async def test_lists(chats: Any) -> None:
    whole = await in_thread(chats.get_chats_by_user_id, "ada")
    assert [chat.chat["models"] for chat in whole] == [["small"]]
    assert [chat.id for chat in await in_thread(chats.get_chat_list_by_user_id, "ada")] == ["c1"]
    for listing in ("get_chats_by_user_id", "get_chat_list_by_user_id", "get_chat_title_id_list_by_user_id"):
        listed = await in_thread(getattr(chats, listing), "ada")
        assert ([chat.id for chat in listed.items], listed.total) == (["c1"], 1)
        assert await listed is listed
    titles = await in_thread(chats.get_chat_title_id_list_by_user_id, "ada")
    assert [(chat.id, chat.title) for chat in await titles] == [("c1", "Trains")]
    assert await in_thread(chats.get_chats_by_user_id, "bob") == []
    assert await in_thread(lambda: chats.get_chat_list_by_user_id("ada", skip=1, limit=5)) == []


async def test_messages(chats: Any) -> None:
    for read in (chats.get_messages_map_by_chat_id, chats.get_messages_by_chat_id):
        assert sorted(await in_thread(read, "c1")) == ["m1", "m2"]
        assert await in_thread(read, "c9") is None
    message = await in_thread(chats.get_message_by_id_and_message_id, "c1", "m1")
    assert await message == {"id": "m1", "parentId": None, "role": "user", "content": "hello"}
    assert await in_thread(chats.get_message_by_id_and_message_id, "c1", "m9") is None


async def test_messages_are_written(chats: Any, host: PluginHost) -> None:
    write = chats.upsert_message_to_chat_by_id_and_message_id
    chat = await in_thread(write, "c1", "m2", {"content": "changed"})
    assert chat.chat["history"]["messages"]["m2"]["content"] == "changed"
    assert (await host.chats.find_message("c1", "m2") or {})["role"] == "assistant"
    assert await in_thread(write, "c9", "m2", {"content": "changed"}) is None


async def test_files_and_states_are_added_to_messages(chats: Any) -> None:
    add = chats.add_message_files_by_id_and_message_id
    first, second = {"type": "image", "url": "/a"}, {"type": "image", "url": "/b"}
    assert await in_thread(add, "c1", "m2", [first]) == [first]
    assert await (await in_thread(add, "c1", "m2", [second])) == [first, second]
    assert await in_thread(add, "c1", "m9", [second]) is None
    status = {"description": "looking", "done": False}
    chat = await in_thread(chats.add_message_status_to_chat_by_id_and_message_id, "c1", "m2", status)
    assert chat.chat["history"]["messages"]["m2"]["statusHistory"] == [status]
    assert await in_thread(chats.add_message_status_to_chat_by_id_and_message_id, "c9", "m2", status) is None
    assert await in_thread(chats.insert_chat_files, "c1", "m2", ["f1"], "ada") == []


async def test_chats_are_made_changed_and_removed(chats: Any, host: PluginHost) -> None:
    form = (await load_at_home("from open_webui.models.chats import ChatForm"))[0].ChatForm
    made = await in_thread(chats.insert_new_chat, "bob", form(chat={"title": "New"}))
    assert (made.user_id, made.title) == ("bob", "New")
    newer = await in_thread(chats.insert_new_chat, "own-id", "bob", form(chat={"title": "Newer"}))
    assert (newer.user_id, newer.title) == ("bob", "Newer")
    assert (await in_thread(chats.update_chat_title_by_id, "c1", "Rails")).title == "Rails"
    changed = await in_thread(chats.update_chat_by_id, "c1", {"models": ["big"]})
    assert (changed.chat["models"], changed.chat["title"]) == (["big"], "Rails")
    assert await in_thread(chats.update_chat_by_id, "c9", {}) is None
    assert [t.name for t in await in_thread(chats.get_chat_tags_by_id_and_user_id, "c1", "ada")] == ["Rail"]
    assert await in_thread(chats.get_chat_tags_by_id_and_user_id, "c1", "bob") == []
    assert await in_thread(chats.delete_chat_by_id_and_user_id, "c1", "bob") is False
    assert await in_thread(chats.delete_chat_by_id_and_user_id, "c1", "ada") is True
    assert await in_thread(chats.delete_chat_by_id, made.id) is True
    assert await host.chats.find(made.id, None) is None


def test_a_chat_without_a_history_has_no_messages() -> None:
    assert messages_of(None) == messages_of({}) == messages_of({"chat": {"history": None}}) == {}
