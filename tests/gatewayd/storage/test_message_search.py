"""Tests for gatewayd.storage.message_search."""

import pytest

from gatewayd.chats.records import MessageChange
from gatewayd.storage import message_search
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.message_search import TortoiseMessageSearch
from gatewayd.storage.tables.chats import ChatRow
from tests.fakes.storage.records import chat, message
from tests.gatewayd.storage.conftest import Chatting

SEARCH = TortoiseMessageSearch()


async def favourites(offset: int = 0, limit: int = 10) -> list[str]:
    return [each.message_id for each in await SEARCH.favourites("u1", offset, limit)]


async def test_favourites(stored: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_search, "MAX_FAVOURITE_CHARACTERS", 6)
    await stored.chats.add(chat("c3", user_id="u2"), [message("x", attributes={"favorite": True})])
    nested = {"info": {"favorite": True}, "note": '"favorite":true', "model": {"a": 1}}
    await stored.messages.put(
        "c1",
        [
            message("m1", content="Long text", attributes={"favorite": True, "model": "m"}, timestamp=5),
            message("m2", attributes={"favorite": False}),
            message("m3", attributes=nested),
            message("m4", parts=[{"type": "text", "text": "Ä"}], attributes={"favorite": True}, timestamp=6),
        ],
    )
    first, second = await SEARCH.favourites("u1", 0, 10)
    assert (first.message_id, first.text, first.model) == ("m4", "ä", "")
    assert (second.message_id, second.text, second.model, second.timestamp) == ("m1", "Long t", "m", 5)
    assert await favourites(1, 5) == ["m1"]
    await stored.messages.change("c1", "m2", MessageChange(attributes={"favorite": True}))
    await stored.messages.change("c1", "m4", MessageChange(attributes={"favorite": None}))
    assert sorted(await favourites()) == ["m1", "m2"]
    await stored.chats.hide("c1")
    assert await favourites() == []
    assert await SEARCH.favourites("\x00", 0, 5) == []


async def test_favourites_have_an_index(stored: Chatting) -> None:
    statement = SqlStatement(ChatRow._meta.db)
    if statement.is_postgres:
        [found] = await statement.run(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'idx_chat_messages_favorite'"
        )
        assert '"favorite": true' in found["indexdef"]
        return
    plan = await statement.run(
        "EXPLAIN QUERY PLAN SELECT 1 FROM chat_messages m JOIN chats c ON c.id = m.chat_id"
        f" WHERE {message_search.SQLITE_FAVOURITE} AND c.user_id = 'u1'"
    )
    assert any("idx_chat_messages_favorite" in row["detail"] for row in plan)


async def test_matches(stored: Chatting) -> None:
    long = "x " * 500 + "The STRASSE\nahead" + " y" * 500
    await stored.messages.put("c1", [message("m1", content="strasse"), message("m2", content=long)])
    await stored.messages.put("c2", [message("m3", content="ß" * 400 + " Straße 100%_\\ sure")])
    found = {each.chat_id: each for each in await SEARCH.matches(["c1", "c2", "none", "\x00"], "Straße")}
    assert (found["c1"].message_id, "The STRASSE ahead" in found["c1"].snippet) == ("m2", True)
    assert len(found["c1"].snippet) <= message_search.MAX_SNIPPET_CHARACTERS
    assert "strasse 100%_" in found["c2"].snippet.casefold()
    assert [each.message_id for each in await SEARCH.matches(["c1", "c2"], "100%_\\")] == ["m3"]
    assert await SEARCH.matches(["c1"], "absent") == []
    assert await SEARCH.matches(["c1"], "") == await SEARCH.matches([], "x") == []
    assert await SEARCH.matches(["c1"], "\x00") == []
