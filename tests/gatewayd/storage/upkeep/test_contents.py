"""Tests for gatewayd.storage.upkeep.contents."""

from dataclasses import replace

from gatewayd.storage.engine.database import Database
from gatewayd.storage.upkeep.contents import TortoiseContents
from tests.fakes.storage.records import chat
from tests.gatewayd.storage.conftest import Chatting


async def test_the_times_of_an_imported_chat_do_not_count(stored: Chatting, database: Database) -> None:
    before = await TortoiseContents().newest()
    await stored.chats.add(replace(chat("c9"), updated_at=10**10), [])
    assert await TortoiseContents().newest() == before < 10**10


async def test_an_empty_database_has_no_figures(database: Database) -> None:
    figures = TortoiseContents()
    assert (await figures.largest_file(), await figures.newest()) == (0, 0)
