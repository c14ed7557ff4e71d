"""Nobody sees or changes what is another's: chats, messages, tasks, calls, events, tools and their valves.

Every row of the API description that names one thing is asked by somebody else.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gatewayd.http.routes import BASES
from tests.fakes.daemons.chat_site import CHATS, EVENTS, TASKS, House, Turn, opened_house
from tests.fakes.http.event_listener import Listener

CANARY = "canary-of-ann"
TOOL = '''"""
title: Private canary-of-ann
"""
from pydantic import BaseModel


class Tools:
    class Valves(BaseModel):
        secret: str = ""

    class UserValves(BaseModel):
        mine: str = ""

    def look(self) -> str:
        """Look canary-of-ann."""
        return "canary-of-ann"
'''
PARTS = ("/api/v1/chats/", "/api/tasks/", "/api/v1/events/", "/api/v1/tools/id/")
"""Where the rows are that name one thing of somebody's."""

HI = [{"role": "user", "content": "hi"}]
FORM = {"id": "secretive", "name": "x", "content": TOOL, "meta": {"description": ""}}
BODIES: dict[str, Any] = {
    f"{CHATS}/{{id}}": {"chat": {"title": "x"}},
    f"{CHATS}/{{id}}/messages/{{message_id}}": {"content": "x"},
    f"{CHATS}/{{id}}/branch": {"chat": {"title": "x"}},
    f"{CHATS}/{{chat_id}}/messages/{{message_id}}/event": {"type": "replace", "data": {"content": "x"}},
    f"{CHATS}/{{id}}/tags": {"name": "x"},
    f"{EVENTS}/calls/{{id}}": {"result": True},
    "/api/v1/tools/id/{id}/update": FORM,
    "/api/v1/tools/id/{id}/access/update": {"access_grants": []},
}
"""What is sent where an empty object is not enough."""

ADMIN_ROWS = {("GET", f"{CHATS}/list/user/{{user_id}}")}
SILENT = {
    ("GET", f"{TASKS}/chat/{{chat_id}}"): {"task_ids": []},
    ("POST", f"{TASKS}/stop/{{task_id}}"): None,
}
"""Rows that answer as if there were nothing, for the sake of older clients; None for a status of false."""

Row = tuple[str, str]


@dataclass
class Belongings:
    """What ann has: a chat whose answer runs, its task, and a call that waits."""

    turn: Turn
    task_id: str
    call_id: str
    chats: list[dict[str, Any]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    settings = {"ENV": "dev", "USER_PERMISSIONS_WORKSPACE_TOOLS_ACCESS": "true"}
    with opened_house(tmp_path_factory.mktemp("h"), **settings) as opened:
        yield opened
        opened.assert_well()


@pytest.fixture(scope="module")
def listener(house: House) -> Iterator[Listener]:
    """Keep ann's page open, so that her calls wait."""
    with house.listen() as opened:
        yield opened


@pytest.fixture(scope="module")
def hers(house: House, listener: Listener) -> Iterator[Belongings]:
    house.ok("POST", "/api/v1/tools/create", FORM)
    house.ok("POST", "/api/v1/tools/id/secretive/valves/update", {"secret": CANARY})
    house.ok("POST", "/api/v1/tools/id/secretive/valves/user/update", {"mine": CANARY})
    turn = house.begin("asks", CANARY, title=CANARY)
    house.ok("POST", f"{CHATS}/{turn.chat_id}/tags", {"name": CANARY})
    for action in ("archive", "pin"):
        other = house.begin(text=CANARY, title=CANARY)
        house.ok("POST", f"{CHATS}/{other.chat_id}/{action}", {})
    task_id = house.start(turn, "asks")
    call_id = listener.wait_type("confirmation", turn.chat_id).data["call_id"]
    yield Belongings(turn, task_id, call_id, house.ok("GET", f"{CHATS}/all"))
    # Nobody answers it, and the daemon would wait for that.
    house.ok("POST", f"{TASKS}/stop/{task_id}", {})


def described(house: House) -> list[Row]:
    """Return all rows but those of provisioning, which have a credential of their own."""
    paths = house.daemon.call("GET", "/openapi.json")[1]["paths"]
    return [
        (method.upper(), path)
        for path, operations in paths.items()
        for method in operations
        if not path.startswith("/api/v1/scim")
    ]


def filled(path: str, house: House, hers: Belongings) -> str:
    """Return a path with the ids of what ann has."""
    one = "secretive" if "/tools/" in path else hers.call_id if "/calls/" in path else hers.turn.chat_id
    values = {
        "id": house.ann.id if "/users/" in path else one,
        "chat_id": hers.turn.chat_id,
        "message_id": hers.turn.answer,
        "task_id": hers.task_id,
        "user_id": house.ann.id,
        "share_id": hers.turn.chat_id,
    }
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def assert_untouched(house: House, hers: Belongings) -> None:
    """Check that ann has everything as it was, and that her answer still waits for her."""
    assert house.ok("GET", f"{CHATS}/all") == hers.chats
    assert house.tasks_of(hers.turn) == [hers.task_id]
    assert [call["call_id"] for call in house.ok("GET", f"{EVENTS}/calls")["calls"]] == [hers.call_id]
    assert house.ok("GET", "/api/v1/tools/id/secretive")["content"] == TOOL
    assert house.ok("GET", "/api/v1/tools/id/secretive/valves")["secret"] == CANARY
    assert house.ok("GET", "/api/v1/tools/id/secretive/valves/user")["mine"] == CANARY


def test_what_names_one_thing_is_refused_to_others(house: House, hers: Belongings) -> None:
    rows = [row for row in described(house) if row[1].startswith(PARTS) and "{" in row[1]]
    assert len(rows) > 30
    for method, path in rows:
        body = None if method == "GET" else BODIES.get(path, {})
        for who in (house.bob.token, house.bob.key):
            status, answer = house.call(method, filled(path, house, hers), body, who)
            if (method, path) in SILENT:
                expected = SILENT[method, path]
                assert status == 200
                assert answer == expected if expected else answer["status"] is False
            else:
                assert status == (403 if (method, path) in ADMIN_ROWS else 404), (method, path, answer)
            assert CANARY not in str(answer), (method, path)
    assert_untouched(house, hers)


def test_nothing_of_hers_is_in_any_answer_to_others(house: House, hers: Belongings) -> None:
    asked = 0
    for method, path in described(house):
        # These never end, or end what bob needs.
        if path in {EVENTS, "/ws/socket.io"} or path.startswith("/api/v1/auths/"):
            continue
        queries = ("", f"?text={CANARY}&query={CANARY}", "?include_pinned=true") if method == "GET" else ("",)
        for query in queries:
            body = None if method == "GET" else BODIES.get(path, {})
            status, answer = house.call(method, filled(path, house, hers) + query, body, house.bob.key)
            assert status < 500 or "/ollama" in path, (method, path, status, answer)
            assert CANARY not in str(answer).replace(f"/{CANARY}", ""), (method, path)
            asked += 1
    assert asked > 200
    assert_untouched(house, hers)


def test_lists_of_others_are_empty(house: House, hers: Belongings) -> None:
    eve = house.add()
    for path in ("/", "/list", "/all", "/all/archived", "/archived", "/pinned", "/shared", "/all/tags"):
        assert house.ok("GET", CHATS + path, None, eve) == []
    for query in (CANARY, "hi", "tag:" + CANARY, "pinned:true", "archived:true", "%25", "_"):
        assert house.ok("GET", f"{CHATS}/search?text={query}", None, eve) == []
    assert house.ok("POST", f"{CHATS}/tags", {"name": CANARY}, eve) == []
    assert house.ok("DELETE", f"{CHATS}/", None, eve) is True
    assert house.ok("POST", f"{CHATS}/archive/all", {}, eve) is True
    assert_untouched(house, hers)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("session", ["", "a session"])
def test_no_answer_goes_to_a_foreign_chat(house: House, hers: Belongings, base: str, session: str) -> None:
    house.provider.script()
    body = house.body(hers.turn, session_id=session, stream=False)
    for fields in ({}, {"id": str(uuid.uuid4())}, {"id": None, "user_message": {"id": "q", "content": "x"}}):
        status, answer = house.call("POST", f"{base}/chat/completions", {**body, **fields}, house.bob)
        assert status == 404, (fields, answer)
    status, answer = house.call(
        "POST", f"{base}/chat/completions", {**body, "id": None, "session_id": ""}, house.bob
    )
    assert status == 404, answer
    assert not [one for one in house.provider.fake.requests if one.method == "POST"]
    assert_untouched(house, hers)


def test_no_filter_and_no_task_works_at_a_foreign_chat(house: House, hers: Belongings) -> None:
    turn = hers.turn
    body = {"model": "o.m", "messages": HI, "chat_id": turn.chat_id, "id": turn.answer, "session_id": "s"}
    for path in ("/api/chat/completed", *(f"/api/v1/tasks/{task}/completions" for task in ("title", "tags"))):
        status, answer = house.call("POST", path, body, house.bob)
        assert status == 404, (path, answer)
    assert_untouched(house, hers)


def test_a_message_of_a_foreign_chat_is_not_reached_through_ones_own(house: House, hers: Belongings) -> None:
    mine = house.begin(who=house.bob)
    place = f"{CHATS}/{mine.chat_id}/messages/{hers.turn.answer}"
    told = {"type": "replace", "data": {"content": "x"}}
    assert house.ok("POST", f"{place}/event", told, house.bob) is True
    record = house.ok("POST", place, {"content": "mine"}, house.bob)
    assert CANARY not in str(record)
    # A message of the same id is another one.
    assert record["chat"]["history"]["messages"][hers.turn.answer]["content"] == "mine"
    assert house.call("DELETE", place, None, house.bob)[0] == 200
    # Nor by an id of a chat that a client chooses.
    chosen = {"chat": {"id": hers.turn.chat_id, "title": "x", "history": {"messages": {}}}}
    made = house.ok("POST", f"{CHATS}/new", chosen, house.bob)
    assert made["id"] != hers.turn.chat_id
    (imported,) = house.ok(
        "POST", f"{CHATS}/import", {"chats": [{**made, "id": hers.turn.chat_id}]}, house.bob
    )
    assert imported["id"] != hers.turn.chat_id
    assert_untouched(house, hers)


def test_nobody_hears_what_happens_in_a_foreign_chat(house: House, hers: Belongings) -> None:
    with (
        house.listen(house.bob) as bob,
        house.listen(house.bob, query=f"?chat_id={hers.turn.chat_id}") as pointed,
        house.listen(house.bob, last_id=hers_last_id(house)) as resumed,
        house.listen(house.admin) as admin,
    ):
        turn, _ = house.ask("events", "20")
        house.finished(turn)
        house.ok("DELETE", f"{CHATS}/{turn.chat_id}")
        own, _ = house.ask("events", "1", house.bob)
        bob.wait_idle(own.chat_id)
        resumed.wait_idle(own.chat_id)
        for listener in (bob, pointed, resumed, admin):
            assert {one.data["chat_id"] for one in listener.heard} <= {own.chat_id}
            assert CANARY not in str(listener.heard)
        assert resumed.opened["user_id"] == house.bob.id


def hers_last_id(house: House) -> str:
    """Return an id from ann's own stream."""
    with house.listen() as opened:
        return opened.last_id


def test_a_foreign_session_gets_no_calls(house: House, hers: Belongings, listener: Listener) -> None:
    before = len(listener.heard)
    with house.listen(house.bob) as bob:
        turn = house.begin("asks", who=house.bob)
        body = house.body(turn, "asks", session_id=listener.opened["session_id"])
        house.ok("POST", "/api/chat/completions", body, house.bob)
        call_id = bob.wait_type("confirmation", turn.chat_id).data["call_id"]
        assert house.call("POST", f"{EVENTS}/calls/{call_id}", {"result": True})[0] == 404
        assert house.ok("POST", f"{EVENTS}/calls/{call_id}", {"result": True}, house.bob) is True
    house.finished(turn, house.bob)
    assert len(listener.heard) == before
    assert_untouched(house, hers)


def test_administrators_who_may_not_see_chats(tmp_path: Any) -> None:
    with opened_house(tmp_path, ENABLE_ADMIN_CHAT_ACCESS="false") as house:
        turn = house.begin(text=CANARY, title=CANARY)
        chat = f"{CHATS}/{turn.chat_id}"
        told = {"type": "status", "data": {"description": "x", "done": True}}
        assert house.call("GET", chat, None, house.admin)[0] == 404
        assert house.call("POST", f"{chat}/messages/{turn.answer}/event", told, house.admin)[0] == 404
        assert house.call("GET", f"{CHATS}/list/user/{house.ann.id}", None, house.admin)[0] == 403
        assert house.call("GET", f"{CHATS}/all/db", None, house.admin)[0] == 403
        assert house.call("DELETE", chat, None, house.admin)[0] == 404
        assert house.message(turn)["done"] is False
