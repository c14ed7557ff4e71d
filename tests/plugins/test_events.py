"""The tables of sections 6.2 and 6.5, row by row: what an event of a plugin does, and who hears of it."""

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gatewayd.events.event_types import EVENT_TYPES
from gatewayd.events.records import EventHelper
from tests.fakes.daemons.plugin_site import Asked, Site, wait_until
from tests.plugins.corpus.event_showcase import EVENTS

OWN = {"chat:active", "chat:list", "chat:reload", "chat:outlet", "chat:tasks:cancel"}
"""What only the gateway itself tells."""

STATUS = {"description": "at it", "done": False, "hidden": False}
IMAGE = {"type": "image", "url": "/b"}

# What the showcase emits, and what the stored message has afterwards that it has not without the event.
EMITTED = (
    # Section 6.2, in its order, and the stored effects of 6.5.
    ("status", {"statusHistory": [STATUS]}),
    ("chat:completion", {}),
    ("chat:message:delta", {}),
    ("message", {"content": "appended"}),
    ("chat:message", {}),
    ("replace", {"content": "replaced"}),
    ("chat:message:files", {}),
    ("files", {"files": [IMAGE]}),
    ("chat:title", {}),
    ("bare title", {}),
    ("chat:tags", {}),
    ("bare tags", {}),
    ("source", {"sources": [EVENTS["source"]["data"]]}),
    ("citation", {"sources": [EVENTS["citation"]["data"]]}),
    ("code", {"sources": [EVENTS["code"]["data"]]}),
    ("notification", {}),
    ("untyped notification", {}),
    ("chat:message:favorite", {}),
    ("execute", {}),
    # Section 6.5.
    ("embeds", {"embeds": ["<b>one</b>"]}),
    ("chat:message:embeds", {}),
    ("chat:message:error", {}),
    ("chat:message:follow_ups", {}),
    # Types of somebody's own, and odd ones.
    ("custom", {}),
    ("without data", {}),
    ("error", {}),
    ("empty status", {"statusHistory": [{"description": ""}]}),
    ("wrong message", {}),
    ("wrong status", {}),
    ("wrong files", {}),
)
DROPPED = ("empty", "without type")

SHOWN_ALWAYS = ("id", "parentId", "childrenIds", "role", "timestamp", "model", "done")


@pytest.fixture(params=["saved at the end", "saved often"])
def either(request: pytest.FixtureRequest) -> Site:
    """A gateway, with ENABLE_REALTIME_CHAT_SAVE off and on."""
    site: Site = request.getfixturevalue("site" if request.param == "saved at the end" else "saving_site")
    return site


def effects(message: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a message beside what every answer has."""
    rest = {name: value for name, value in message.items() if name not in SHOWN_ALWAYS}
    return {name: value for name, value in rest.items() if value}


def test_every_type_of_the_table_is_emitted_here() -> None:
    emitted = {EVENTS[name]["type"] for name, _ in EMITTED}
    emitters = {
        name
        for row in EVENT_TYPES
        if row.helper is EventHelper.EMITTER
        for name in row.names
        if name not in OWN
    }
    assert emitters <= emitted
    assert {name for name, _ in EMITTED} | {*DROPPED, "more embeds", "other embeds"} == EVENTS.keys()


def test_exactly_the_short_names_are_stored() -> None:
    stored = {EVENTS[name]["type"] for name, kept in EMITTED if kept}
    assert stored == {"status", "message", "replace", "embeds", "files", "source", "citation"}


@pytest.mark.parametrize(("name", "kept"), EMITTED, ids=[row[0] for row in EMITTED])
def test_an_event_is_stored_and_delivered(either: Site, name: str, kept: dict[str, Any]) -> None:
    with either.listening() as listener:
        asked = either.start("event_showcase", name, listener.session_id)
        message = either.finish(asked)
        told = listener.told(asked)
    assert effects(message) == kept
    assert {"data": {}, **EVENTS[name]} in told
    assert message["done"] is True


@pytest.mark.parametrize(("name", "kept"), EMITTED, ids=[row[0] for row in EMITTED])
def test_an_event_is_stored_with_the_browser_gone(either: Site, name: str, kept: dict[str, Any]) -> None:
    assert effects(either.ask("event_showcase", name)) == kept


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_no_event_is_dropped(either: Site, name: str) -> None:
    with either.listening() as listener:
        asked = either.start("event_showcase", f"{name},custom", listener.session_id)
        message = either.finish(asked)
        told = listener.told(asked)
    assert effects(message) == {}
    types = [event["type"] for event in told]
    assert types.count("terminal:write") == 1
    assert set(types) <= {"terminal:write", "chat:active", "chat:completion"}


def test_events_of_one_message_stay_in_their_order(either: Site) -> None:
    names = ["status", "message", "chat:message:delta", "message", "replace", "message", "empty status"]
    with either.listening() as listener:
        asked = either.start("event_showcase", ",".join(names), listener.session_id)
        message = either.finish(asked)
        told = [event for event in listener.told(asked) if event in EVENTS.values()]
    assert told == [EVENTS[name] for name in names]
    assert effects(message) == {"content": "replacedappended", "statusHistory": [STATUS, {"description": ""}]}


def test_events_are_stored_while_the_answer_is_still_given(either: Site) -> None:
    asked = either.start("event_showcase", "message,replace,message,status,embeds,files,citation,source,hold")
    wait_until(lambda: len(either.message(asked).get("sources") or []) == 2)
    message = either.message(asked)
    assert message["done"] is False
    assert effects(message) == {
        "content": "replacedappended",
        "statusHistory": [STATUS],
        "embeds": ["<b>one</b>"],
        "files": [IMAGE],
        "sources": [EVENTS["citation"]["data"], EVENTS["source"]["data"]],
    }
    either.good("POST", f"/api/tasks/chat/{asked.chat_id}/stop")
    assert either.finish(asked) == {**message, "done": True}


def test_lists_are_appended_and_told_whole(either: Site) -> None:
    with either.listening() as listener:
        asked = either.start("event_showcase", "embeds,more embeds,files,files", listener.session_id)
        message = either.finish(asked)
        told = listener.told(asked)
    assert effects(message) == {"embeds": ["<b>one</b>", "<b>three</b>"], "files": [IMAGE, IMAGE]}
    lists = [event["data"]["embeds"] for event in told if event["type"] == "embeds"]
    assert lists == [["<b>one</b>"], ["<b>one</b>", "<b>three</b>"]]
    assert [len(event["data"]["files"]) for event in told if event["type"] == "files"] == [1, 2]


def test_embeds_may_be_replaced(either: Site) -> None:
    assert either.ask("event_showcase", "embeds,more embeds,other embeds")["embeds"] == ["<b>four</b>"]


def test_a_temporary_chat_stores_nothing_and_is_told(either: Site) -> None:
    with either.listening() as listener:
        form = {
            "model": "event_showcase",
            "stream": True,
            "chat_id": "local:abc",
            "id": "m1",
            "session_id": listener.session_id,
            "messages": [{"role": "user", "content": "status,message"}],
        }
        either.good("POST", "/api/chat/completions", form)
        told = listener.told(Asked("local:abc", "m1"))
    assert EVENTS["status"] in told
    assert EVENTS["message"] in told


def tell_from_outside(site: Site, asked: Asked, token: str = "") -> Asked:
    """Send an event about a message as tools outside do."""
    path = f"/api/v1/chats/{asked.chat_id}/messages/{asked.message_id}/event"
    assert site.good("POST", path, EVENTS["status"], token) is True
    return asked


def test_events_go_to_their_user_alone(site: Site) -> None:
    other = site.new_user("Bea")
    with site.listening(other) as listener, site.listening() as mine:
        asked = site.start("event_showcase", "status", mine.session_id)
        assert EVENTS["status"] in mine.told(asked)
        own = tell_from_outside(site, site.new_chat("echo", "x", other), other)
        listener.first(lambda frame: frame["chat_id"] == own.chat_id)
        assert {frame["chat_id"] for frame in listener.frames} == {own.chat_id}


def test_a_listener_of_one_chat_hears_no_other(site: Site) -> None:
    first = site.new_chat("event_showcase", "status")
    with site.listening(query=f"?chat_id={first.chat_id}") as narrow, site.listening() as wide:
        second = site.start("event_showcase", "status", wide.session_id)
        wide.told(second)
        tell_from_outside(site, first)
        narrow.first(lambda frame: frame["chat_id"] == first.chat_id)
        assert {frame["chat_id"] for frame in narrow.frames} == {first.chat_id}


def test_a_listener_that_comes_back_gets_what_it_missed(site: Site) -> None:
    with site.listening() as listener:
        site.ask("event_showcase", "status", session_id=listener.session_id)
        last_id = listener.last_id
    asked = site.start("event_showcase", "message,custom")
    site.finish(asked)
    with site.listening(last_id=last_id) as listener:
        told = listener.told(asked)
        assert listener.opened["gap"] is False
    assert EVENTS["message"] in told
    assert EVENTS["custom"] in told


def test_content_is_saved_once_or_as_it_comes(site: Site, saving_site: Site) -> None:
    text = "slowly " + "word " * 2000
    asked, often = site.start("token_stream", text), saving_site.start("token_stream", text)
    wait_until(lambda: len(site.message(asked).get("statusHistory") or []) > 30)
    assert site.message(asked)["content"] == ""
    wait_until(lambda: saving_site.message(often)["content"].startswith("slowly word"))
    assert saving_site.message(often)["done"] is False
    for one, place in ((asked, site), (often, saving_site)):
        place.good("POST", f"/api/tasks/chat/{one.chat_id}/stop")
        assert place.finish(one)["content"].startswith("slowly word")


def test_a_client_that_leaves_in_the_middle_ends_nothing(either: Site) -> None:
    asked = either.new_chat("token_stream", "x")
    form = {
        "model": "token_stream",
        "stream": True,
        "chat_id": asked.chat_id,
        "id": asked.message_id,
        "messages": [{"role": "user", "content": "slowly one two three four five six seven eight"}],
    }
    for _ in part_of_a_stream(either, form):
        break
    message = either.finish(asked)
    assert message["content"].startswith("slowly one two three four five six seven eight")
    assert len(message["statusHistory"]) == 9
    assert message["done"] is True


def part_of_a_stream(site: Site, form: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of an answer; who stops early leaves."""
    request = urllib.request.Request(
        f"{site.daemon.base_url}/api/chat/completions",
        json.dumps(form).encode(),
        {"Authorization": f"Bearer {site.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as reply:
        yield from reply


# Who emits: model, filters, and what makes it (6.5, the table of capabilities).
def test_pipes_filters_actions_and_tools_emit(either: Site) -> None:
    assert either.ask("event_showcase", "status")["statusHistory"] == [STATUS]
    model = either.with_filters("switchable")
    assert (
        either.ask(model, "x", filter_ids=["switchable"])["statusHistory"][0]["description"] == "switched on"
    )
    asked = either.start("completion_dict", "x")
    either.finish(asked)
    assert either.act("noting", chat_id=asked.chat_id, id=asked.message_id) == (200, None)
    assert either.message(asked)["statusHistory"][0]["description"] == f"noted {asked.message_id}"
    calls = '[["writes", {}]]'
    message = either.ask("tool_caller", calls, tool_ids=["rich_results"])
    assert message["embeds"] == ["<i>tool</i>"]


def test_many_answers_at_once_keep_their_events_apart(either: Site) -> None:
    with ThreadPoolExecutor(8) as others:
        names = ["message,message,status", "replace,files", "embeds,source", "message,status,status"] * 4
        messages = list(others.map(lambda name: either.ask("event_showcase", name), names))
    for name, message in zip(names, messages, strict=True):
        assert len(message.get("statusHistory") or []) == name.split(",").count("status")
        assert len(message.get("files") or []) == name.split(",").count("files")
        expected = {"message,message,status": "appendedappended", "replace,files": "replaced"}
        assert message["content"] == expected.get(name, "appended" if "message" in name else "")


OUTSIDE = (
    "status",
    "notification",
    "chat:message:delta",
    "message",
    "chat:message",
    "replace",
    "files",
    "chat:message:files",
    "source",
    "citation",
)
"""What tools outside of the gateway may send (6.4)."""


@pytest.mark.parametrize(
    "name", [name for name in EVENTS if name not in ("empty", "without type", "without data")]
)
def test_tools_outside_may_send_some(site: Site, name: str) -> None:
    asked = site.new_chat("echo", "x")
    path = f"/api/v1/chats/{asked.chat_id}/messages/{asked.message_id}/event"
    before = effects(site.message(asked))
    status, reply = site.call("POST", path, EVENTS[name])
    fits = isinstance(EVENTS[name]["data"], dict) and not name.startswith("wrong")
    if EVENTS[name]["type"] in OUTSIDE and fits:
        assert (status, reply) == (200, True)
        assert effects(site.message(asked)) == {**before, **dict(EMITTED)[name]}
    else:
        assert status == (400 if isinstance(EVENTS[name]["data"], dict) else 422)
        assert effects(site.message(asked)) == before
