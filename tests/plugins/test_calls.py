"""Questions to users from the middle of an answer: answered, late, twice, by others, after a break."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.plugin_site import CORPUS, Listener, Site, plugged, wait_until

SOON = "1"
"""Seconds after which a call ends at a gateway that is set so."""

ASKED = (
    # What is asked, what the client answers, what the plugin gets.
    ("confirmation", True, True),
    ("confirmation", False, False),
    ("input", "Ada", "Ada"),
    ("input", {"value": "Ada"}, "Ada"),
    ("input", False, False),
    ("password", "secret", "secret"),
    ("execute", "en-GB", "en-GB"),
    ("execute", {"a": [1, None]}, {"a": [1, None]}),
    ("execute", None, None),
)

SENT: dict[str, dict[str, Any]] = {
    "confirmation": {"type": "confirmation", "data": {"title": "Sure?", "message": "Shall it go on?"}},
    "input": {
        "type": "input",
        "data": {"title": "Name", "message": "Which?", "placeholder": "a name", "value": "x"},
    },
    "password": {
        "type": "input",
        "data": {"title": "Key", "message": "Which?", "placeholder": "", "type": "password"},
    },
    "execute": {"type": "execute", "data": {"code": "return navigator.language;"}},
}


def answer(site: Site, call: dict[str, Any], reply: Any, token: str = "") -> tuple[int, Any]:
    """Answer a call with a result."""
    return site.call("POST", f"/api/v1/events/calls/{call['call_id']}", {"result": reply}, token)


def pending(site: Site, token: str = "") -> list[Any]:
    """Return the calls that wait for a user."""
    return list(site.good("GET", "/api/v1/events/calls", token=token)["calls"])


@pytest.mark.parametrize(("name", "reply", "got"), ASKED)
def test_the_answer_reaches_the_plugin(site: Site, name: str, reply: Any, got: Any) -> None:
    with site.listening() as listener:
        asked = site.start("asking", name, listener.session_id)
        call = listener.call_of(asked)
        assert (call["chat_id"], call["message_id"]) == (asked.chat_id, asked.message_id)
        assert call["data"] == SENT[name]
        assert [one["call_id"] for one in pending(site)] == [call["call_id"]]
        assert answer(site, call, reply) == (200, True)
        assert json.loads(site.finish(asked)["content"]) == got
    assert pending(site) == []


def test_the_client_may_fail(site: Site) -> None:
    with site.listening() as listener:
        asked = site.start("asking", "execute", listener.session_id)
        call = listener.call_of(asked)
        site.good("POST", f"/api/v1/events/calls/{call['call_id']}", {"error": "ReferenceError: x"})
        content = site.finish(asked)["content"]
    assert content.startswith("RuntimeError:")
    assert "ReferenceError: x" in content


@pytest.fixture
def hasty_site(tmp_path: Path) -> Iterator[Site]:
    """A gateway whose calls end soon."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copy(CORPUS / "asking.py", plugins)
    with plugged(tmp_path / "s", plugins, WEBSOCKET_EVENT_CALLER_TIMEOUT=SOON) as running:
        yield running


def test_no_answer_in_time_raises(hasty_site: Site) -> None:
    site = hasty_site
    with site.listening() as listener:
        asked = site.start("asking", "confirmation", listener.session_id)
        call = listener.call_of(asked)
        content = site.finish(asked)["content"]
        assert content == f"TimeoutError: cannot get an answer to confirmation: none came within {SOON} s"
        assert answer(site, call, True)[0] == 404
    assert pending(site) == []


def test_nobody_there_raises_soon(saving_site: Site) -> None:
    content = saving_site.ask("asking", "input")["content"]
    assert content == "TimeoutError: cannot get an answer to input: the user has no live connection"


@pytest.mark.parametrize("name", ["status", "message", "notification", "terminal:ask", "chat:title"])
def test_only_the_three_types_ask(site: Site, name: str) -> None:
    with site.listening() as listener:
        content = site.ask("asking", name, session_id=listener.session_id)["content"]
    assert content.startswith(f"RuntimeError: cannot ask the user with an event of type '{name}'")


def test_the_first_answer_counts(site: Site) -> None:
    with site.listening() as listener, ThreadPoolExecutor(6) as others:
        asked = site.start("asking", "input", listener.session_id)
        call = listener.call_of(asked)
        statuses = [
            status for status, _ in others.map(lambda number: answer(site, call, f"{number}"), range(6))
        ]
        assert sorted(statuses) == [200, 409, 409, 409, 409, 409]
        assert json.loads(site.finish(asked)["content"]) == f"{statuses.index(200)}"
        assert answer(site, call, "late")[0] == 409


def test_nobody_answers_for_somebody_else(site: Site) -> None:
    other = site.new_user("Bea")
    with site.listening() as listener, site.listening(other) as foreign:
        asked = site.start("asking", "input", listener.session_id)
        call = listener.call_of(asked)
        assert answer(site, call, "mine now", other)[0] == 404
        assert pending(site, other) == []
        assert [frame for frame in foreign.frames if "call_id" in frame] == []
        assert answer(site, call, "Ada")[0] == 200
        assert answer(site, call, "mine now", other)[0] == 404
        assert json.loads(site.finish(asked)["content"]) == "Ada"


@pytest.mark.parametrize("body", [{}, {"result": 1, "error": "e"}, {"error": 5}, []])
def test_an_answer_that_is_none_leaves_the_call_open(site: Site, body: Any) -> None:
    with site.listening() as listener:
        asked = site.start("asking", "input", listener.session_id)
        call = listener.call_of(asked)
        status, _ = site.call("POST", f"/api/v1/events/calls/{call['call_id']}", body)
        assert 400 <= status < 500
        assert answer(site, call, "Ada") == (200, True)
        assert json.loads(site.finish(asked)["content"]) == "Ada"


def test_an_unknown_call_is_not_found(site: Site) -> None:
    assert answer(site, {"call_id": "nothing"}, True)[0] == 404


def test_a_call_comes_again_after_a_break(saving_site: Site) -> None:
    site = saving_site
    listener = Listener(site, site.token)
    asked = site.start("asking", "confirmation", listener.session_id)
    call = listener.call_of(asked)
    listener.close()
    with site.listening() as again:
        assert again.session_id != listener.session_id
        assert again.call_of(asked) == call
        assert answer(site, call, True) == (200, True)
        assert site.finish(asked)["content"] == "true"


def test_a_call_waits_a_moment_for_the_first_listener(saving_site: Site) -> None:
    asked = saving_site.start("asking", "confirmation", "a script of somebody")
    wait_until(lambda: pending(saving_site))
    with saving_site.listening() as listener:
        assert answer(saving_site, listener.call_of(asked), True) == (200, True)
        assert saving_site.finish(asked)["content"] == "true"


def test_a_call_goes_to_the_session_that_asked(site: Site) -> None:
    with site.listening() as mine, site.listening() as another:
        asked = site.start("asking", "execute", mine.session_id)
        call = mine.call_of(asked)
        answer(site, call, "here")
        mine.told(asked)
        another.told(asked)
        assert [frame for frame in another.frames if "call_id" in frame] == []


def test_another_session_gets_the_call_of_one_that_left(saving_site: Site) -> None:
    site = saving_site
    with site.listening() as another:
        listener = Listener(site, site.token)
        asked = site.start("asking", "input", listener.session_id)
        call = listener.call_of(asked)
        listener.close()
        assert another.call_of(asked)["call_id"] == call["call_id"]
        assert answer(site, call, "from elsewhere") == (200, True)
        assert json.loads(site.finish(asked)["content"]) == "from elsewhere"


def test_stopping_the_answer_takes_the_call_back(saving_site: Site) -> None:
    site = saving_site
    with site.listening() as listener:
        asked = site.start("asking", "input", listener.session_id)
        call = listener.call_of(asked)
        site.good("POST", f"/api/tasks/chat/{asked.chat_id}/stop")
        assert site.finish(asked)["done"] is True
        wait_until(lambda: pending(site) == [])
        assert answer(site, call, "late")[0] == 404


def test_a_filter_asks_before_the_answer(site: Site) -> None:
    model = site.with_filters("careful")
    with site.listening() as listener:
        asked = site.start(model, "send this", listener.session_id)
        call = listener.call_of(asked)
        assert call["data"]["data"]["message"] == "send this"
        answer(site, call, True)
        assert "send this" in site.finish(asked)["content"]
        assert {"type": "notification", "data": {"type": "success", "content": "sent"}} in listener.told(
            asked
        )
        asked = site.start(model, "not this", listener.session_id)
        answer(site, listener.call_of(asked), False)
        assert site.finish(asked)["error"] == {"content": "The user does not want that."}


def test_a_direct_caller_without_a_chat_can_be_asked(site: Site) -> None:
    with site.listening() as listener, ThreadPoolExecutor() as others:
        reply = others.submit(site.say, "asking", "confirmation")
        call = listener.first(lambda frame: "call_id" in frame)
        assert call["chat_id"] == ""
        answer(site, call, True)
        assert reply.result() == "true"
