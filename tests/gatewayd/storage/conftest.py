"""The stores on every engine, each test on a fresh database."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.interfaces import (
    GroupStore,
    KeyStore,
    RevocationStore,
    SessionStore,
    UserStore,
    ValueStore,
)
from gatewayd.accounts.links.interfaces import OneTimeLinkStore
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.events.interfaces import MessageEffects
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse, sqlite
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.identities import TortoiseIdentities
from gatewayd.storage.keys import TortoiseKeys, TortoiseRevocations
from gatewayd.storage.message_events import TortoiseMessageEvents
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.sign_in.one_time_links import TortoiseOneTimeLinks
from gatewayd.storage.sign_in.sessions import TortoiseSessions
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import Transactor
from tests.fakes.accounts.memory_identities import MemoryIdentities
from tests.fakes.accounts.memory_stores import (
    Memory,
    MemoryGroups,
    MemoryKeys,
    MemoryOneTimeLinks,
    MemoryRevocations,
    MemorySessions,
    MemoryUsers,
    MemoryValues,
)
from tests.fakes.accounts.records import user
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryEffects, MemoryMessages
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.postgres import Postgres
from tests.fakes.storage.records import chat

ENGINES = ["sqlite", "postgres"]


@dataclass(frozen=True)
class Stores:
    """One implementation of every account interface, over one set of tables."""

    transactor: Transactor
    users: UserStore
    groups: GroupStore
    keys: KeyStore
    revocations: RevocationStore
    values: ValueStore
    sessions: SessionStore
    links: OneTimeLinkStore
    identities: IdentityStore


@dataclass(frozen=True)
class Chatting:
    """What keeps chats, over one state; a database has the users u1 and u2."""

    chats: ChatStore
    messages: MessageStore
    effects: MessageEffects


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Postgres) -> str:
    return postgres.migrated_template


@pytest.fixture(params=ENGINES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseLocation:
    """Return a fresh, migrated database of the engine that the test is run for."""
    return make_location(request, tmp_path, request.param)


def make_location(request: pytest.FixtureRequest, folder: Path, engine: str) -> DatabaseLocation:
    if engine == "sqlite":
        return sqlite(migrated_copy(folder))
    postgres: Postgres = request.getfixturevalue("postgres")
    location = parse(postgres.migrated_database(), pool_size=5)
    request.addfinalizer(partial(postgres.drop_database, location))
    return location


@pytest.fixture
async def database(location: DatabaseLocation) -> AsyncIterator[Database]:
    async with Database.open(location) as opened:
        yield opened


@pytest.fixture(params=["memory", *ENGINES])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Return every implementation in turn: what a test asks of it is the contract."""
    if request.param == "memory":
        memory = Memory()
        parts: list[Any] = [
            MemoryUsers,
            MemoryGroups,
            MemoryKeys,
            MemoryRevocations,
            MemoryValues,
            MemorySessions,
            MemoryOneTimeLinks,
            MemoryIdentities,
        ]
        yield Stores(memory, *(part(memory) for part in parts))
        return
    location = make_location(request, tmp_path, request.param)
    async with Database.open(location) as database, open_reader(location) as reader:
        yield Stores(
            database,
            TortoiseUsers(reader),
            TortoiseGroups(reader),
            TortoiseKeys(),
            TortoiseRevocations(),
            TortoiseValues(),
            TortoiseSessions(),
            TortoiseOneTimeLinks(),
            TortoiseIdentities(b"the secret of the gateway"),
        )


@pytest.fixture(params=["memory", *ENGINES])
async def chatting(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Chatting]:
    """Return every implementation in turn, without chats."""
    if request.param == "memory":
        state = ChatState()
        yield Chatting(MemoryChats(state), MemoryMessages(state), MemoryEffects(state))
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        yield await make_chatting()


@pytest.fixture
async def live(chatting: Chatting) -> Chatting:
    """Return every implementation in turn, with the empty chats c1 and c2."""
    return await _with_chats(chatting)


@pytest.fixture
async def stored(database: Database) -> Chatting:
    """Return what is over a database, with the empty chats c1 and c2."""
    return await _with_chats(await make_chatting())


async def make_chatting() -> Chatting:
    for user_id in ("u1", "u2"):
        await TortoiseUsers().add(user(user_id), None)
    return Chatting(TortoiseChats(), TortoiseMessages(), TortoiseMessageEvents())


async def _with_chats(chatting: Chatting) -> Chatting:
    for chat_id in ("c1", "c2"):
        await chatting.chats.add(chat(chat_id), [])
    return chatting
