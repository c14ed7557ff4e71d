"""Tests for the overview of chats: favourites, and searches that name the message."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.storage.chats_site import ChatSite, serving_chats


@pytest.fixture
async def site() -> AsyncIterator[ChatSite]:
    async with serving_chats() as made:
        yield made


async def test_favourites(site: ChatSite) -> None:
    chat = await site.chat()
    await site.chat("theirs", site.other)
    theirs = (await site.chat("theirs", site.other))["id"]
    await site.ok(
        "POST", f"/{theirs}", site.other, {"chat": {"history": {"messages": {"a1": {"favorite": True}}}}}
    )
    assert await site.ok("GET", "/favorites") == []
    change = {"history": {"messages": {"a1": {"favorite": True}, "q1": {"favorite": False}}}}
    await site.ok("POST", f"/{chat['id']}", None, {"chat": change})
    assert await site.ok("GET", "/favorites") == [
        {
            "chat_id": chat["id"],
            "title": "Birds",
            "folder_id": None,
            "message_id": "a1",
            "role": "assistant",
            "model": "m",
            "content": "A heron.",
            "timestamp": 6,
        }
    ]
    assert await site.ok("GET", "/favorites?page=2") == []
    assert (await site.call("GET", "/favorites?page=0"))[0] == 422


async def test_a_search_names_the_message(site: ChatSite) -> None:
    await site.chat("Herons")
    [found] = await site.ok("GET", "/search?text=HERON.")
    assert (found["title"], found["message_id"], found["snippet"]) == ("Herons", "a1", "A heron.")
    [found] = await site.ok("GET", "/search?text=herons")
    assert (found["message_id"], found["snippet"]) == (None, None)
