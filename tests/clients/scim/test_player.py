"""The player finds what is wrong with an answer, and the stories can be played."""

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.clients.scim.player import BASE, ERROR, LIST, Player
from tests.clients.scim.story import USER, Pages, Step, Story
from tests.clients.scim.test_stories import STORIES

ADA: dict[str, Any] = {
    "schemas": [USER],
    "id": "1",
    "userName": "ada@example.org",
    "displayName": "Ada",
    "active": True,
    "emails": [{"value": "ada@example.org", "type": "work", "primary": True}],
    "meta": {
        "resourceType": "User",
        "created": "2026-11-21T10:00:00.5Z",
        "lastModified": "2026-11-21T10:00:01.123456Z",
        "location": "{url}/api/v1/scim/v2/Users/1",
    },
}
READ = Step("read", "GET", "/Users/1", shows={"userName": "ada@example.org"}, keeps={"ada": "id"})
CREATE = Step("create", "POST", "/Users", {"userName": "ada@example.org"}, 201)
REFUSED = Step("refused", "POST", "/Users", {}, 409, "uniqueness")
REFUSAL = {"schemas": [ERROR], "status": "409", "scimType": "uniqueness", "detail": "cannot"}
FOUND = {"schemas": [LIST], "totalResults": 1, "startIndex": 1, "itemsPerPage": 1, "Resources": [ADA]}
FIND = Step("find", "GET", "/Users?filter=x", total=1)


class Scripted(ThreadingHTTPServer):
    """Answers each request with the next of its script: status, headers, message."""

    script: list[tuple[int, dict[str, str], Any]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status, headers, message = self.server.script.pop(0)
        body = b"" if message is None else json.dumps(message).replace("{url}", self.server.url).encode()
        self.send_response(status)
        sent = {"Content-Type": "application/scim+json", "X-Request-Id": "1", **headers}
        for name, value in {**sent, "Content-Length": str(len(body))}.items():
            self.send_header(name, value.replace("{url}", self.server.url))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted(*script: tuple[int, dict[str, str], Any]) -> Iterator[Scripted]:
    with Scripted(("127.0.0.1", 0), Handler) as server:
        server.script = list(script)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def play(step: Step | Pages, *script: tuple[int, dict[str, str], Any]) -> Player:
    """Play one step to a scripted server."""
    with scripted(*script) as server:
        player = Player(server.url, "t", Story("provider", (step,)))
        player.play()
        assert server.script == []
    return player


def changed(message: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """Return a message with another value at a dotted place; nothing stands there when the value is `...`."""
    made = copy.deepcopy(message)
    *path, last = place.split(".")
    inner: Any = made
    for name in path:
        inner = inner[int(name) if isinstance(inner, list) else name]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return made


def test_right_answers_are_right() -> None:
    location = {"Location": "{url}" + f"{BASE}/Users/1"}
    assert play(READ, (200, {}, ADA)).kept == {"ada": "1"}
    play(CREATE, (201, location, ADA), (200, {}, ADA))
    play(REFUSED, (409, {}, REFUSAL))
    play(FIND, (200, {}, FOUND))
    play(Step("delete", "DELETE", "/Users/1", status=204), (204, {}, None))
    play(Pages("all", "/Users?startIndex={start}"), (200, {}, FOUND))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("schemas", ["urn:other"]),
        ("id", ""),
        ("userName", "bob@example.org"),
        ("displayName", None),
        ("active", ...),
        ("active", "true"),
        ("password", "secret"),
        ("emails", [{"value": "a", "primary": True}, {"value": "b", "primary": True}]),
        ("meta.location", "/Users/1"),
        ("meta.resourceType", "Users"),
        ("meta.lastModified", "2026-11-21T10:00:01+00:00"),
        ("meta.lastModified", "2026-11-21T09:00:00Z"),
        ("meta.created", ...),
    ],
)
def test_a_wrong_resource_is_found(place: str, value: Any) -> None:
    with pytest.raises((AssertionError, KeyError)):
        play(READ, (200, {}, changed(ADA, place, value)))


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (200, {}, ADA),
        (404, {}, REFUSAL),
        (409, {"Content-Type": "application/json"}, REFUSAL),
        (409, {}, changed(REFUSAL, "status", 409)),
        (409, {}, changed(REFUSAL, "scimType", ...)),
        (409, {}, changed(REFUSAL, "scimType", "invalidValue")),
        (409, {}, changed(REFUSAL, "schemas", [])),
        (409, {}, changed(REFUSAL, "detail", "")),
    ],
)
def test_a_wrong_refusal_is_found(status: int, headers: dict[str, str], message: Any) -> None:
    with pytest.raises(AssertionError):
        play(REFUSED, (status, headers, message))


@pytest.mark.parametrize(
    ("place", "value"),
    [("totalResults", 2), ("totalResults", "1"), ("itemsPerPage", 2), ("Resources", []), ("startIndex", ...)],
)
def test_a_wrong_list_is_found(place: str, value: Any) -> None:
    with pytest.raises((AssertionError, KeyError)):
        play(FIND, (200, {}, changed(FOUND, place, value)))


def test_a_write_that_reads_otherwise_is_found() -> None:
    location = {"Location": "{url}" + f"{BASE}/Users/1"}
    other = changed(ADA, "displayName", "Bob")
    with pytest.raises(AssertionError, match="create"):
        play(CREATE, (201, location, ADA), (200, {}, other))
    with pytest.raises(AssertionError, match="create"):
        play(CREATE, (201, {}, ADA), (200, {}, ADA))


def test_a_list_that_repeats_or_does_not_end_is_found() -> None:
    pages = Pages("all", "/Users?startIndex={start}", holds=("2",))
    with pytest.raises(AssertionError):
        play(pages, *[(200, {}, changed(FOUND, "totalResults", 2))] * 2)
    with pytest.raises(AssertionError):
        play(pages, *[(200, {}, changed(FOUND, "totalResults", 1000))] * 100)
    with pytest.raises(AssertionError):
        play(pages, (200, {}, FOUND))


def test_members_are_compared() -> None:
    group = {**ADA, "schemas": [USER], "members": [{"value": "7"}, {"value": "8"}]}
    play(Step("read", "GET", "/Users/1", members=("8", "7")), (200, {}, group))
    with pytest.raises(AssertionError):
        play(Step("read", "GET", "/Users/1", members=("8",)), (200, {}, group))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.provider)
def test_a_story_uses_what_it_kept_and_ends_well(story: Story) -> None:
    """A provider creates, changes, disables, enables and deletes users and groups, whatever else it does."""
    kept: set[str] = {"start"}
    for step in story.steps:
        assert set(re.findall(r"\{(\w+)\}", repr(step))) <= kept, step
        kept |= set(step.keeps) if isinstance(step, Step) else set()
    done = {
        (step.method, step.path.split("/")[1].split("?")[0]) for step in story.steps if isinstance(step, Step)
    }
    assert {("POST", "Users"), ("POST", "Groups"), ("DELETE", "Groups"), ("GET", "Users")} <= done
    states = [
        step.shows["active"] for step in story.steps if isinstance(step, Step) and "active" in step.shows
    ]
    assert {True, False} <= set(states)
