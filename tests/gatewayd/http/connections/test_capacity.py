"""Tests for gatewayd.http.connections.capacity."""

import logging
import resource
from dataclasses import dataclass, field
from itertools import count

import pytest

from gatewayd import descriptors
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections import capacity as rooms
from gatewayd.http.connections.capacity import (
    EVICTION_PAUSE_SECONDS,
    MAX_IDLE_HOLDERS,
    DescriptorBudget,
    DescriptorLimits,
    HolderTable,
    RequestHold,
    control_descriptor_limits,
    public_descriptor_limits,
)
from gatewayd.http.connections.request_uses import ConcurrencyBounds, ConcurrencyRules, RequestUse

PLENTY = 1_000_000


@dataclass(eq=False)
class Chair:
    """A connection without a request."""

    is_spare: bool = False
    is_waiting: bool = True
    is_blocked: bool = True
    is_stranger: bool = True
    is_anonymous: bool = True
    is_gone: bool = False
    since: float = field(default_factory=count().__next__)

    def evict(self) -> None:
        self.is_gone = True

    def ask(self, room: DescriptorBudget, account: str, use: RequestUse, address: str = "") -> RequestHold:
        """Have a request that is wholly there."""
        self.is_waiting = self.is_blocked = False
        hold = room.hold(self, account, address, use)
        if account:
            room.note_authenticated(self)
            self.is_stranger = self.is_anonymous = False
        return hold

    def wait(self, since: float) -> None:
        """Be done with the request."""
        self.is_waiting = self.is_blocked = self.is_anonymous = True
        self.since = since


def a_room(
    limit: int = 8, spare: int = 1, strangers: int = 4, **rules: ConcurrencyBounds
) -> DescriptorBudget:
    return DescriptorBudget(DescriptorLimits(limit, spare, strangers, PLENTY), ConcurrencyRules(**rules))


def served(
    room: DescriptorBudget, account: str = "", use: RequestUse = RequestUse.REQUEST, address: str = ""
) -> Chair:
    """Let a connection come with a request."""
    chair = Chair()
    room.enter(chair)
    chair.ask(room, account, use, address)
    return chair


def test_strangers_share_a_part_and_the_oldest_gives_way() -> None:
    room = a_room()
    chairs = [Chair() for _ in range(10)]
    assert all(room.enter(chair) for chair in chairs)
    assert [chair.is_gone for chair in chairs] == [True] * 6 + [False] * 4
    assert room.taken == 4


def test_a_stranger_who_is_served_stays() -> None:
    room = a_room()
    busy = served(room)
    chairs = [Chair() for _ in range(10)]
    assert all(room.enter(chair) for chair in chairs)
    assert not busy.is_gone
    assert sum(not chair.is_gone for chair in chairs) == 3


def test_strangers_who_are_all_served_keep_their_part_and_get_no_more() -> None:
    now = [0.0]
    room = DescriptorBudget(DescriptorLimits(16, 2, 4, PLENTY), clock=lambda: now[0])
    busy = [served(room) for _ in range(4)]
    more = Chair()
    assert room.enter(more)
    assert more.is_spare
    with pytest.raises(GatewayError, match="has its 4 connections without a credential in use") as caught:
        more.ask(room, "", RequestUse.REQUEST)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.UNAVAILABLE, "too_many_connections")
    assert not any(each.is_gone for each in busy)
    # One with a good credential has a place beyond their part.
    more.ask(room, "a", RequestUse.REQUEST)
    assert not more.is_spare
    # Those of them that come have the spare places alone, until one of them gives way.
    late = [Chair() for _ in range(3)]
    assert [room.enter(each) for each in late] == [True, True, False]
    room.leave(late.pop())
    busy[0].wait(-1)
    now[0] += EVICTION_PAUSE_SECONDS
    late[0].ask(room, "", RequestUse.REQUEST)
    assert not late[0].is_spare
    assert [each.is_gone for each in (*busy, *late)] == [True, False, False, False, False, True]


def test_a_full_part_of_strangers_does_not_keep_others_from_room() -> None:
    room = a_room(limit=8, strangers=4)
    known = [served(room, f"a{number}") for number in range(4)]
    busy = [served(room) for _ in range(4)]
    known[0].wait(0)
    assert room.enter(Chair())
    # Nobody gives way for a stranger; for an account somebody does.
    room.begin_run("b")
    assert known[0].is_gone
    assert not any(each.is_gone for each in busy)


def test_connections_that_wait_give_way_to_others() -> None:
    room = a_room(strangers=PLENTY)
    waiting = [served(room, f"a{number}") for number in range(8)]
    for number, chair in enumerate(reversed(waiting)):
        chair.wait(number)
    assert not served(room, "b").is_gone
    assert [chair.is_gone for chair in waiting] == [False] * 7 + [True]
    # A stranger's body that does not come gives way after them.
    room = a_room(limit=8)
    for number in range(6):
        served(room, f"a{number}")
    slow = served(room)
    slow.is_blocked = True
    assert not served(room, "b", RequestUse.UPLOAD).is_gone
    assert slow.is_gone


def test_a_connection_that_lost_its_place_does_not_come_back() -> None:
    room = a_room(strangers=1)
    first, second = Chair(), Chair()
    room.enter(first)
    room.enter(second)
    assert first.is_gone
    room.note_authenticated(first)
    room.leave(first)
    assert room.taken == 1
    room.leave(second)
    room.leave(second)
    assert room.taken == 0


@pytest.mark.parametrize(
    ("use", "files"),
    [
        (RequestUse.REQUEST, 1),
        (RequestUse.LISTENER, 1),
        (RequestUse.UPLOAD, 2),
        (RequestUse.DOWNLOAD, 2),
        (RequestUse.ANSWER, 2),
        (RequestUse.EMBEDDINGS, 5),
    ],
)
def test_requests_are_counted_by_their_descriptors(use: RequestUse, files: int) -> None:
    room = a_room()
    chair = Chair()
    room.enter(chair)
    hold = chair.ask(room, "a", use, "192.0.2.1")
    assert room.taken == files
    room.release(hold)
    assert room.taken == 1


@pytest.mark.parametrize(
    ("use", "code", "words"),
    [
        (RequestUse.REQUEST, "too_many_connections", "the {} has 1 connections at once, the most for one {}"),
        (RequestUse.UPLOAD, "too_many_uploads", "the {} has 1 uploads at once, the most for one {}"),
        (RequestUse.DOWNLOAD, "too_many_downloads", "the {} has 1 downloads at once, the most for one {}"),
        (RequestUse.ANSWER, "too_many_streams", "the {} has 1 streams at once, the most for one {}"),
        (RequestUse.LISTENER, "too_many_streams", "the {} has 1 streams at once, the most for one {}"),
    ],
)
@pytest.mark.parametrize("owner", ["account", "address"])
def test_one_owner_has_bounds(owner: str, use: RequestUse, code: str, words: str) -> None:
    name = code.removeprefix("too_many_")
    room = a_room(limit=100, **{owner: ConcurrencyBounds(**{name: 1})})
    first, other = {"account": "a", "address": "n"}, {"account": "b", "address": "m"}
    chair = Chair()
    room.enter(chair)
    held = chair.ask(room, first["account"], use, first["address"])
    shared = {**other, owner: first[owner]}
    with pytest.raises(GatewayError) as caught:
        served(room, shared["account"], use, shared["address"])
    assert caught.value.kind is ErrorKind.RATE_LIMITED
    assert caught.value.message == f"cannot take the request: {words.format(owner, owner)}"
    assert (caught.value.code, caught.value.retry_after) == (code, rooms.RETRY_SECONDS)
    served(room, other["account"], use, other["address"])
    room.release(held)
    served(room, first["account"], use, first["address"])


@pytest.mark.parametrize(("owner", "most"), [("account", 5), ("address", 10)])
def test_one_owner_holds_a_part_of_the_descriptors_whatever_is_set(owner: str, most: int) -> None:
    room = a_room(limit=40, strangers=PLENTY)
    who = {"account": ("a", RequestUse.ANSWER, ""), "address": ("", RequestUse.ANSWER, "n")}[owner]
    for _ in range(most):
        served(room, *who)
    with pytest.raises(GatewayError, match=f"the {owner} holds {2 * most} open files") as caught:
        served(room, *who)
    assert caught.value.code == "too_many_streams"
    served(room, "b", RequestUse.ANSWER, "m")


def test_a_full_room_takes_questions_about_the_health_alone(caplog: pytest.LogCaptureFixture) -> None:
    room = a_room(limit=4, spare=1)
    busy = [served(room, f"a{number}") for number in range(4)]
    chair, late = Chair(), Chair()
    with caplog.at_level(logging.WARNING):
        assert room.enter(chair)
        assert chair.is_spare
        with pytest.raises(GatewayError, match="has its 4 connections and files in use") as caught:
            chair.ask(room, "b", RequestUse.REQUEST)
        assert (caught.value.kind, caught.value.code) == (ErrorKind.UNAVAILABLE, "too_many_connections")
        assert caught.value.retry_after == rooms.RETRY_SECONDS
        assert not room.enter(late)
    assert [vars(each)["refused"] for each in caplog.records] == [1]
    assert not any(each.is_gone for each in busy)
    # Once there is room, the spare place is one as others.
    room.leave(late)
    room.leave(busy[0])
    chair.ask(room, "b", RequestUse.REQUEST)
    assert not chair.is_spare


def test_a_request_without_room_for_its_file_is_refused_and_nothing_stays_counted() -> None:
    room = a_room(limit=8)
    for number in range(6):
        served(room, f"a{number}")
    served(room, "b", RequestUse.REQUEST)
    with pytest.raises(GatewayError, match="connections and files in use"):
        served(room, "c", RequestUse.UPLOAD)
        served(room, "d", RequestUse.UPLOAD)
    assert room.taken == 8


def test_files_that_something_else_holds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    room = DescriptorBudget(DescriptorLimits(8, 1, PLENTY, PLENTY), clock=lambda: 0.0)
    first, second = Chair(), Chair()
    room.enter(first)
    monkeypatch.setattr(descriptors, "open_files", lambda: PLENTY + 1)
    assert room.enter(second)
    assert first.is_gone


@pytest.mark.parametrize("soft", [256, 1000, 1024, 65_536])
def test_places_by_the_limit_of_open_files(soft: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    public, control = public_descriptor_limits(), control_descriptor_limits()
    assert control.limit == max(64, soft // 32)
    assert public.limit >= soft // 2
    assert public.strangers == public.limit // 2
    if soft >= 1000:
        assert soft - public.limit - public.spare - control.limit == rooms.RESERVED_DESCRIPTORS
    assert soft != 1000 or public.limit == 800
    assert public_descriptor_limits(50).limit == max(public.limit - 50, soft // 2)


def test_a_run_holds_a_descriptor_of_its_account_without_a_connection() -> None:
    room = a_room(limit=8)
    ends = [room.begin_run("a") for _ in range(2)]
    assert room.taken == 2
    with pytest.raises(GatewayError, match="the account holds 2 open files"):
        room.begin_run("a")
    with pytest.raises(GatewayError, match="the account holds 2 open files"):
        served(room, "a", RequestUse.ANSWER)
    room.begin_run("b")
    for end in ends:
        end()
    room.begin_run("a")()


def test_runs_are_among_the_streams_and_find_no_room_where_there_is_none() -> None:
    room = a_room(limit=100, account=ConcurrencyBounds(streams=1))
    room.begin_run("a")
    with pytest.raises(GatewayError, match="the account has 1 streams at once"):
        room.begin_run("a")
    full = a_room(limit=4)
    for number in range(4):
        served(full, f"a{number}")
    with pytest.raises(GatewayError, match="has its 4 connections and files in use"):
        full.begin_run("b")
    assert full.taken == 4


def test_a_row_of_refusals_and_closures_makes_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    room = DescriptorBudget(DescriptorLimits(2, 0, 2, PLENTY), clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for second in range(130):
            now[0] = float(second)
            room.enter(Chair())
    told = [(vars(each)["closed"], vars(each)["refused"]) for each in caplog.records]
    assert told == [(1, 0), (60, 0), (60, 0)]
    assert {each.getMessage() for each in caplog.records} == {
        "connections are closed or refused: a limit of connections is reached"
    }


def test_who_holds_nothing_any_more_is_forgotten_when_there_are_many() -> None:
    holders = HolderTable("account", ConcurrencyBounds(connections=2), 100)
    kept = [holders.add("first", RequestUse.REQUEST), holders.add("first", RequestUse.REQUEST)]
    for number in range(3 * MAX_IDLE_HOLDERS):
        holders.remove(holders.add(f"{number}", RequestUse.REQUEST), RequestUse.REQUEST)
        assert len(holders) <= MAX_IDLE_HOLDERS + 1
    with pytest.raises(GatewayError, match="2 connections at once"):
        holders.add("first", RequestUse.REQUEST)
    assert kept[0] is kept[1]
