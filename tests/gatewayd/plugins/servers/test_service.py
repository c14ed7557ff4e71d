"""Tests for gatewayd.plugins.servers.service."""

import logging
from dataclasses import replace

import pytest

from gatewayd.accounts.records import Actor, CredentialKind, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.config import MASK, ConfiguredServers
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer
from gatewayd.plugins.servers.service import KnownServers, ToolServers, VisibleServer
from tests.fakes.http.tool_servers import MemoryServers
from tests.fakes.providers.models import make_actor

ADMIN = make_actor()
USER = make_actor("u2", Role.USER, groups=("g1",))
URL = "http://tools.test/api"
FIXED = ToolServer("fixed", "Fixed", URL, key="fixed-key", origin=ServerOrigin.SETTINGS)


class FakeChecker:
    def __init__(self) -> None:
        self.asked: list[ToolServer] = []

    async def check(self, server: ToolServer, actor: Actor) -> VisibleServer:
        self.asked.append(server)
        return VisibleServer("T", "1", [{"name": "f"}])


class House:
    def __init__(self, *servers: ToolServer, bypass_admins: bool = True) -> None:
        self.store = MemoryServers(*servers)
        self.known = KnownServers(
            self.store, ConfiguredServers((FIXED,), ("bad one",)), bypass_admins=bypass_admins
        )
        self.checker = FakeChecker()
        self.now = 100
        self.servers = ToolServers(self.known, self.store, self.checker, lambda: self.now)


def make(server_id: str = "a", **more: object) -> ToolServer:
    return replace(ToolServer(server_id, server_id, URL, key="a-key", headers={"X": "y"}), **more)  # type: ignore[arg-type]


async def kind_of(work: object) -> ErrorKind:
    with pytest.raises(GatewayError) as caught:
        await work  # type: ignore[misc]
    return caught.value.kind


async def test_all_of_it_is_the_administrators() -> None:
    servers = House(make()).servers
    for work in (
        servers.list(USER),
        servers.get(USER, "a"),
        servers.create(USER, make("b")),
        servers.change(USER, make()),
        servers.remove(USER, "a"),
        servers.replace_all(USER, []),
        servers.check(USER, make()),
    ):
        assert await kind_of(work) is ErrorKind.FORBIDDEN


async def test_servers_are_created_changed_and_removed() -> None:
    house = House()
    made = await house.servers.create(ADMIN, make())
    assert made == make(created_at=100, updated_at=100)
    assert await kind_of(house.servers.create(ADMIN, make())) is ErrorKind.CONFLICT
    house.now = 200
    changed = await house.servers.change(ADMIN, make(name="New", key=MASK, headers={"X": MASK, "Z": "1"}))
    assert changed == make(name="New", headers={"X": "y", "Z": "1"}, created_at=100, updated_at=200)
    assert await house.servers.get(ADMIN, "a") == changed
    await house.servers.remove(ADMIN, "a")
    assert await kind_of(house.servers.get(ADMIN, "a")) is ErrorKind.NOT_FOUND
    assert await kind_of(house.servers.remove(ADMIN, "a")) is ErrorKind.NOT_FOUND


async def test_bad_servers_are_not_stored() -> None:
    house = House(make())
    assert await kind_of(house.servers.create(ADMIN, make("b", url="no"))) is ErrorKind.INVALID_REQUEST
    assert await kind_of(house.servers.create(ADMIN, make("b", key=MASK))) is ErrorKind.INVALID_REQUEST
    assert await kind_of(house.servers.change(ADMIN, make(url="no"))) is ErrorKind.INVALID_REQUEST
    assert list(house.store.rows) == ["a"]


async def test_servers_of_the_settings_can_only_be_looked_at() -> None:
    house = House()
    assert await house.servers.get(ADMIN, "fixed") == FIXED
    assert [server.id for server in await house.servers.list(ADMIN)] == ["fixed"]
    assert await kind_of(house.servers.create(ADMIN, make("fixed"))) is ErrorKind.CONFLICT
    assert await kind_of(house.servers.change(ADMIN, make("fixed"))) is ErrorKind.CONFLICT
    assert await kind_of(house.servers.remove(ADMIN, "fixed")) is ErrorKind.CONFLICT


async def test_a_secret_does_not_follow_its_server_to_another_host() -> None:
    house = House(make())
    elsewhere = make(url="http://evil.test/api", key=MASK, headers={})
    assert await kind_of(house.servers.change(ADMIN, elsewhere)) is ErrorKind.INVALID_REQUEST
    assert await kind_of(house.servers.check(ADMIN, elsewhere)) is ErrorKind.INVALID_REQUEST
    assert house.checker.asked == []
    same = make(url="http://tools.test/other", key=MASK, headers={})
    assert (await house.servers.check(ADMIN, same)).title == "T"
    assert house.checker.asked[0].key == "a-key"


async def test_replacing_all_leaves_what_did_not_change() -> None:
    house = House(make("a", created_at=1), make("b", created_at=1))
    masked = make("a", key=MASK, headers={"X": MASK})
    fixed = replace(FIXED, key=MASK, origin=ServerOrigin.DATABASE)
    found = await house.servers.replace_all(ADMIN, [masked, make("c"), fixed])
    assert [server.id for server in found] == ["a", "c", "fixed"]
    assert house.store.rows == {
        "a": make("a", created_at=1),
        "c": make("c", created_at=100, updated_at=100),
    }


async def test_replacing_all_refuses_before_it_changes() -> None:
    house = House(make("a"))
    wrong = [[make("c"), make("fixed")], [make("c"), make("c")], [make("c"), make("d", key=MASK)]]
    kinds = [await kind_of(house.servers.replace_all(ADMIN, servers)) for servers in wrong]
    assert kinds == [ErrorKind.CONFLICT, ErrorKind.INVALID_REQUEST, ErrorKind.INVALID_REQUEST]
    assert list(house.store.rows) == ["a"]


async def test_access_is_by_grants() -> None:
    open_to_all = make("all", grants=(Grant("user", "*", "read"),))
    groups = make("group", grants=(Grant("group", "g1", "read"),))
    mine = make("mine", grants=(Grant("user", "u2", "write"),))
    off = make("off", grants=(Grant("user", "*", "read"),), is_active=False)
    house = House(open_to_all, groups, mine, off, make("private"))
    assert [one.id for one in await house.known.usable(USER)] == ["all", "group", "mine"]
    everything = ["all", "fixed", "group", "mine", "private"]
    assert [one.id for one in await house.known.usable(ADMIN)] == everything
    strict = House(open_to_all, make("private"), bypass_admins=False).known
    assert [one.id for one in await strict.usable(ADMIN)] == ["all"]
    assert len(await strict.usable(replace(ADMIN, kind=CredentialKind.CONTROL))) == 3


async def test_settings_win_over_the_database(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        house = House(make("fixed", key="other"))
    assert "bad one" in caplog.text
    assert await house.known.find("fixed") == FIXED
    assert await house.known.list() == [FIXED]
