"""Tests for gatewayd.http.public.chats.routes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from openapi_spec_validator import validate

from gatewayd.chats.records import MessageChange
from gatewayd.events.records import EventTarget
from gatewayd.http.openapi import describe_routes
from gatewayd.text import MAX_STORED_DEPTH
from tests.fakes.accounts.services import check_access
from tests.fakes.storage.chats_site import ChatHouse, ChatSite, document, node, serving_chats

RECORD = {
    "id",
    "user_id",
    "title",
    "chat",
    "updated_at",
    "created_at",
    "last_read_at",
    "share_id",
    "archived",
    "pinned",
    "meta",
    "folder_id",
    "current_message_id",
}


@pytest.fixture
async def site() -> AsyncIterator[ChatSite]:
    async with serving_chats() as made:
        yield made


async def test_access(site: ChatSite) -> None:
    places = {"{message_id}": "m", "{share_id}": "s", "{user_id}": "u", "{folder_id}": "f"}
    rows = list(site.house.rows())
    for name, value in places.items():
        rows = [replace(row, path=row.path.replace(name, value)) for row in rows]
    assert await check_access(site.site, rows) == 49


async def test_a_new_chat(site: ChatSite) -> None:
    made = await site.chat(params={"temperature": 1}, timestamp=123)
    assert set(made) == RECORD
    assert (made["title"], made["user_id"], made["current_message_id"]) == ("Birds", site.user.id, "a1")
    chat = made["chat"]
    assert (chat["params"], chat["timestamp"], chat["models"]) == ({"temperature": 1}, 123, ["m"])
    assert chat["history"]["messages"]["q1"]["childrenIds"] == ["a1"]
    assert [message["id"] for message in chat["messages"]] == ["q1", "a1"]
    assert await site.ok("GET", f"/{made['id']}") == made


async def test_a_chat_of_a_list_alone(site: ChatSite) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    made = await site.ok("POST", "/new", None, {"chat": {"messages": messages}})
    first, second = made["chat"]["messages"]
    assert (first["content"], second["content"], second["parentId"]) == ("a", "b", first["id"])
    assert made["chat"]["history"]["currentId"] == second["id"]
    messages = [*messages, {"role": "user", "content": "c"}]
    for _ in range(2):
        again = await site.ok("POST", f"/{made['id']}", None, {"chat": {"messages": messages}})
    shown = again["chat"]["messages"]
    assert [message["content"] for message in shown] == ["a", "b", "c"]
    assert [message["id"] for message in shown[:2]] == [first["id"], second["id"]]
    assert len(again["chat"]["history"]["messages"]) == 3


async def test_an_empty_chat(site: ChatSite) -> None:
    made = await site.ok("POST", "/new", None, {"chat": {}})
    assert made["title"] == "New Chat"
    assert made["chat"] == {
        "title": "New Chat",
        "history": {"messages": {}, "currentId": None},
        "messages": [],
    }
    put = await site.ok("POST", f"/{made['id']}/messages/m", None, {"content": "x"})
    assert (put["current_message_id"], put["chat"]["messages"][0]["role"]) == ("m", "user")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 422),
        ([], 422),
        ({"chat": 5}, 400),
        ({"chat": {"title": 5}}, 400),
        ({"chat": {"messages": {}}}, 400),
        ({"chat": {"history": {"messages": {"m": {"content": 5}}}}}, 400),
        ({"chat": {"title": "a\0"}}, 400),
        ({"chat": {}, "folder_id": "f"}, 404),
        ({"chat": {}, "folder_id": 5}, 422),
    ],
)
async def test_bad_chats_leave_nothing(site: ChatSite, form: Any, status: int) -> None:
    assert (await site.call("POST", "/new", None, form))[0] == status
    made = await site.chat()
    if "folder_id" not in form:
        assert (await site.call("POST", f"/{made['id']}", None, form))[0] == status
    assert await site.ok("GET", f"/{made['id']}") == made
    assert len(await site.ok("GET", "/")) == 1


ROWS = [
    ("GET", "", None),
    ("POST", "", {"chat": {"title": "new"}}),
    ("DELETE", "", None),
    ("POST", "/messages/a1", {"content": "new"}),
    ("DELETE", "/messages/a1", None),
    ("GET", "/pinned", None),
    ("POST", "/pin", None),
    ("POST", "/archive", None),
    ("POST", "/clone", None),
    ("POST", "/share", None),
    ("DELETE", "/share", None),
    ("GET", "/export", None),
    ("GET", "/tags", None),
    ("POST", "/tags", {"name": "t"}),
    ("DELETE", "/tags", {"name": "t"}),
    ("DELETE", "/tags/all", None),
]
READING = {("GET", ""), ("GET", "/pinned"), ("GET", "/export"), ("GET", "/tags"), ("POST", "/clone")}
OWNING = READING | {("DELETE", ""), ("POST", "/messages/a1"), ("DELETE", "/messages/a1")}


@pytest.mark.parametrize(("method", "path", "body"), ROWS)
async def test_chats_of_others_do_not_exist(site: ChatSite, method: str, path: str, body: Any) -> None:
    made = await site.chat()
    told = []
    for chat_id in (made["id"], "unknown"):
        status, answer = await site.call(method, f"/{chat_id}{path}", site.other, body)
        told.append((status, answer["detail"].replace(chat_id, "ID")))
    assert told[0] == told[1]
    assert told[0][0] == 404
    assert await site.ok("GET", f"/{made['id']}") == made


@pytest.mark.parametrize(("method", "path", "body"), ROWS)
async def test_what_administrators_may(site: ChatSite, method: str, path: str, body: Any) -> None:
    made = await site.chat()
    status, _ = await site.call(method, f"/{made['id']}{path}", site.admin, body)
    assert status == (200 if (method, path) in OWNING else 403)
    assert (await site.call(method, f"/unknown{path}", site.admin, body))[0] == 404


@pytest.mark.parametrize(("method", "path", "body"), ROWS)
async def test_administrators_without_access(method: str, path: str, body: Any) -> None:
    async with serving_chats(admin_access=False) as site:
        made = await site.chat()
        assert (await site.call(method, f"/{made['id']}{path}", site.admin, body))[0] == 404


@pytest.mark.parametrize(
    ("leaf", "method", "path", "body"),
    [
        ("delete", "DELETE", "/ID", None),
        ("delete", "DELETE", "/", None),
        ("delete_message", "DELETE", "/ID/messages/a1", None),
        ("edit", "POST", "/ID/messages/a1", {"content": "new"}),
        ("share", "POST", "/ID/share", None),
        ("import", "POST", "/import", {"chats": []}),
        ("export", "GET", "/ID/export", None),
        ("export", "GET", "/all", None),
        ("export", "GET", "/all/archived", None),
    ],
)
async def test_permissions(site: ChatSite, leaf: str, method: str, path: str, body: Any) -> None:
    made = await site.chat()
    tree = site.site.accounts.permissions.defaults()
    tree["chat"][leaf] = False
    await site.site.accounts.permissions.set_defaults(tree, "test")
    status, answer = await site.call(method, path.replace("ID", made["id"]), None, body)
    assert (status, f"chat.{leaf}" in answer["detail"]) == (403, True)
    assert await site.ok("GET", f"/{made['id']}") == made


async def test_a_change_is_merged(site: ChatSite) -> None:
    made = await site.chat(params={"a": 1}, tags=["x"])
    site.house.accounts.time += 100
    nodes = {"a1": {"childrenIds": ["q2"]}, "q2": node("q2", "a1", content="And now?")}
    changed = await site.ok("POST", f"/{made['id']}", None, {"chat": {"history": {"messages": nodes}}})
    chat = changed["chat"]
    assert (chat["params"], chat["tags"], changed["title"]) == ({"a": 1}, ["x"], "Birds")
    assert chat["history"]["currentId"] == "a1"
    answer = chat["history"]["messages"]["a1"]
    assert answer == {**made["chat"]["history"]["messages"]["a1"], "childrenIds": ["q2"]}
    assert changed["updated_at"] == made["updated_at"] + 100
    moved = {"chat": {"history": {"currentId": "q2"}, "params": {}, "title": "Herons"}}
    changed = await site.ok("POST", f"/{made['id']}", None, moved)
    assert (changed["title"], changed["current_message_id"], changed["chat"]["params"]) == (
        "Herons",
        "q2",
        {},
    )
    assert [message["id"] for message in changed["chat"]["messages"]] == ["q1", "a1", "q2"]


@pytest.mark.parametrize(
    "change",
    [
        {"content": "other"},
        {"content": [{"type": "text", "text": "x"}]},
        {"role": "system"},
        {"done": None},
        {"parentId": None},
        {"timestamp": 77},
        {"favorite": True, "error": None},
        {"files": [{"id": "f"}], "statusHistory": [{"done": True}]},
    ],
)
async def test_members_of_a_message_are_merged(site: ChatSite, change: dict[str, Any]) -> None:
    made = await site.chat()
    form = {"chat": {"history": {"messages": {"a1": change}}}}
    changed = await site.ok("POST", f"/{made['id']}", None, form)
    answer = changed["chat"]["history"]["messages"]["a1"]
    wanted = {**made["chat"]["history"]["messages"]["a1"], **change}
    assert answer == {name: value for name, value in wanted.items() if (name, value) != ("done", None)}
    assert await site.ok("POST", f"/{made['id']}", None, form) == changed


async def test_the_current_message_stays_a_valid_one(site: ChatSite) -> None:
    made = await site.chat()
    form = {"chat": {"history": {"currentId": "gone"}}}
    assert (await site.ok("POST", f"/{made['id']}", None, form))["current_message_id"] == "a1"
    left = await site.ok("DELETE", f"/{made['id']}/messages/a1")
    assert left["current_message_id"] == "q1"
    left = await site.ok("DELETE", f"/{made['id']}/messages/q1")
    assert (left["current_message_id"], left["chat"]["messages"]) == (None, [])


async def test_a_ring_is_rendered(site: ChatSite) -> None:
    nodes = {"a": node("a", "b"), "b": node("b", "a"), "c": node("c", "nowhere")}
    made = await site.ok("POST", "/new", None, {"chat": {"history": {"messages": nodes, "currentId": "b"}}})
    assert [message["id"] for message in made["chat"]["messages"]] == ["a", "b"]


async def test_messages_are_put(site: ChatSite) -> None:
    made = await site.chat()
    path = f"/{made['id']}/messages"
    changed = await site.ok("POST", f"{path}/a1", None, {"content": "Two herons."})
    answer = changed["chat"]["history"]["messages"]["a1"]
    assert answer == {**made["chat"]["history"]["messages"]["a1"], "content": "Two herons."}
    changed = await site.ok("POST", f"{path}/q2", None, {"content": "Why?", "files": [1]})
    added = changed["chat"]["history"]["messages"]["q2"]
    assert (added["role"], added["parentId"], added["files"]) == ("user", "a1", [1])
    assert changed["current_message_id"] == "q2"
    changed = await site.ok("POST", f"{path}/a2", None, {"content": "So.", "parentId": "q1"})
    assert changed["chat"]["history"]["messages"]["q1"]["childrenIds"] == ["a1", "a2"]
    assert changed["chat"]["history"]["messages"]["a2"]["role"] == "assistant"
    told = [each for each in site.house.told if each[1]["type"] == "chat:message"]
    target, event = told[0]
    assert target == EventTarget(site.user.id, made["id"], "a1")
    data = {"chat_id": made["id"], "message_id": "a1", "content": "Two herons."}
    assert event == {"type": "chat:message", "data": data}
    assert len(told) == 3


@pytest.mark.parametrize(
    ("message_id", "form", "status"),
    [
        ("a1", {}, 422),
        ("a1", {"content": 5}, 400),
        ("a1", {"content": "x", "id": "q1"}, 400),
        ("x" * 256, {"content": "x"}, 400),
        ("a1", {"content": "a\0"}, 400),
    ],
)
async def test_bad_messages_leave_nothing(site: ChatSite, message_id: str, form: Any, status: int) -> None:
    made = await site.chat()
    assert (await site.call("POST", f"/{made['id']}/messages/{message_id}", None, form))[0] == status
    assert await site.ok("GET", f"/{made['id']}") == made
    assert [event["type"] for _, event in site.house.told] == ["chat:list"]


async def test_a_message_is_taken_out(site: ChatSite) -> None:
    nodes = {"q": node("q", None), "a": node("a", "q"), "r": node("r", "a"), "s": node("s", "a")}
    made = await site.ok("POST", "/new", None, {"chat": {"history": {"messages": nodes}}})
    left = await site.ok("DELETE", f"/{made['id']}/messages/a")
    assert left["chat"]["history"]["messages"]["q"]["childrenIds"] == ["r", "s"]
    assert left["current_message_id"] == "s"
    assert site.house.told[-1][1]["type"] == "chat:reload"
    assert (await site.call("DELETE", f"/{made['id']}/messages/a"))[0] == 404


async def test_deleting(site: ChatSite) -> None:
    made = await site.chat()
    await site.ok("POST", f"/{made['id']}/tags", None, {"name": "x"})
    share_id = (await site.ok("POST", f"/{made['id']}/share"))["share_id"]
    assert await site.ok("DELETE", f"/{made['id']}") is True
    for path in (f"/{made['id']}", f"/share/{share_id}"):
        assert (await site.call("GET", path))[0] == 404
    assert (await site.call("DELETE", f"/{made['id']}"))[0] == 404
    await site.chat()
    others = await site.chat(who=site.other)
    assert await site.ok("DELETE", "/") is True
    assert await site.ok("GET", "/") == []
    assert await site.ok("GET", f"/{others['id']}", site.other) == others


async def test_pins_and_the_archive(site: ChatSite) -> None:
    made = await site.chat()
    site.house.accounts.time += 10
    for state in (True, False):
        assert (await site.ok("POST", f"/{made['id']}/pin"))["pinned"] is state
        assert await site.ok("GET", f"/{made['id']}/pinned") is state
        assert (await site.ok("POST", f"/{made['id']}/archive"))["archived"] is state
    assert await site.ok("GET", f"/{made['id']}") == made
    other = await site.chat(who=site.other)
    for path, state in (("/archive/all", True), ("/unarchive/all", False)):
        assert await site.ok("POST", path) is True
        assert (await site.ok("GET", f"/{made['id']}"))["archived"] is state
    assert (await site.ok("GET", f"/{other['id']}", site.other))["archived"] is False


async def test_copies(site: ChatSite) -> None:
    made = await site.chat()
    for form, title in (
        (None, "Clone of Birds"),
        ({"title": " Mine "}, "Mine"),
        ({"title": " "}, "New Chat"),
    ):
        copy = await site.ok("POST", f"/{made['id']}/clone", None, form)
        assert (copy["title"], copy["chat"]["originalChatId"]) == (title, made["id"])
        assert copy["id"] != made["id"]
        assert copy["chat"]["history"] == made["chat"]["history"]


async def test_sharing(site: ChatSite) -> None:
    made = await site.chat()
    shared = await site.ok("POST", f"/{made['id']}/share")
    share_id = shared["share_id"]
    assert shared == {**made, "share_id": share_id}
    seen = await site.ok("GET", f"/share/{share_id}", site.other)
    assert (seen["id"], seen["title"], seen["chat"]) == (share_id, "Birds", made["chat"])
    await site.ok("POST", f"/{made['id']}", None, {"chat": {"title": "Herons"}})
    assert await site.ok("GET", f"/share/{share_id}", site.other) == seen
    assert (await site.ok("POST", f"/{made['id']}/share"))["share_id"] == share_id
    assert (await site.ok("GET", f"/share/{share_id}", site.other))["title"] == "Herons"
    copy = await site.ok("POST", f"/{share_id}/clone/shared", site.other)
    assert (copy["user_id"], copy["title"]) == (site.other.id, "Clone of Herons")
    assert (await site.call("GET", f"/{share_id}", site.other))[0] == 404
    assert [await site.ok("DELETE", f"/{made['id']}/share") for _ in range(2)] == [True, False]
    assert (await site.call("GET", f"/share/{share_id}", site.other))[0] == 404
    assert (await site.call("POST", f"/{share_id}/clone/shared", site.other))[0] == 404


async def test_tags(site: ChatSite) -> None:
    made = await site.chat()
    path = f"/{made['id']}/tags"
    await site.ok("POST", path, None, {"name": "Water Birds"})
    tags = await site.ok("POST", path, None, {"name": "water birds"})
    assert tags == [{"id": "water_birds", "name": "Water Birds", "user_id": site.user.id, "meta": None}]
    assert await site.ok("GET", path) == tags
    assert (await site.ok("GET", f"/{made['id']}"))["meta"] == {"tags": ["water_birds"]}
    assert await site.ok("DELETE", path, None, {"name": "Water Birds"}) == []
    await site.ok("POST", path, None, {"name": "a"})
    assert await site.ok("DELETE", f"{path}/all") is True
    assert await site.ok("GET", path) == []
    for name, status in ((" ", 400), ("a\0", 400), ("x" * 256, 400), (5, 422)):
        assert (await site.call("POST", path, None, {"name": name}))[0] == status


async def test_export_and_import(site: ChatSite) -> None:
    made = await site.chat()
    await site.ok("POST", f"/{made['id']}/tags", None, {"name": "t"})
    await site.ok("POST", f"/{made['id']}/pin")
    record = await site.ok("GET", f"/{made['id']}/export")
    site.house.accounts.time += 50
    (taken,) = await site.ok("POST", "/import", site.other, {"chats": [record]})
    same = {"title", "chat", "pinned", "meta", "created_at", "updated_at", "current_message_id"}
    assert {name: taken[name] for name in same} == {name: record[name] for name in same}
    assert (taken["user_id"], taken["id"] != made["id"]) == (site.other.id, True)


async def test_what_an_event_has_kept_goes_out_and_comes_in_again(site: ChatSite) -> None:
    made = await site.chat()
    deep: Any = "end"
    for _ in range(MAX_STORED_DEPTH):
        deep = {"a": deep}
    change = MessageChange(items={"sources": [deep]})
    assert await site.house.messages.change(made["id"], made["current_message_id"], change)
    record = await site.ok("GET", f"/{made['id']}/export")
    (taken,) = await site.ok("POST", "/import", site.other, {"chats": [record]})
    assert taken["chat"] == record["chat"]
    assert (await site.ok("POST", f"/{made['id']}", None, {"chat": record["chat"]}))["chat"] == record["chat"]
    copy = await site.ok("POST", f"/{made['id']}/clone")
    assert copy["chat"]["history"] == record["chat"]["history"]
    message = record["chat"]["history"]["messages"][made["current_message_id"]]
    path = f"/{made['id']}/messages/{made['current_message_id']}"
    await site.ok("POST", path, None, {"sources": message["sources"], "content": "x"})


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (5, "chats.1"),
        ({}, "chats.1.chat"),
        ({"chat": {"title": 5}}, "chats.1.chat.title"),
        ({"chat": {}, "meta": []}, "chats.1.meta"),
        ({"chat": {}, "meta": {"a": "\0"}}, "chats.1.meta.a"),
        ({"chat": {}, "meta": {"tags": [5]}}, "chats.1.meta.tags"),
        ({"chat": {}, "pinned": "yes"}, "chats.1.pinned"),
        ({"chat": {}, "created_at": "now"}, "chats.1.created_at"),
    ],
)
async def test_bad_imports_leave_nothing(site: ChatSite, bad: Any, name: str) -> None:
    status, answer = await site.call("POST", "/import", None, {"chats": [{"chat": document()}, bad]})
    assert (status, answer["error"]["param"]) == (400, name)
    assert await site.ok("GET", "/") == []
    assert (await site.call("POST", "/import", None, {"chats": {}}))[0] == 400


def test_description() -> None:
    rows = ChatHouse().rows()
    assert len({(row.method, row.path) for row in rows}) == len(rows)
    validate(describe_routes(rows, title="t", version="1"))
