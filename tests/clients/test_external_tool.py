"""Tools outside of the gateway that tell the user by events what they do (sections 4.9 and 6.4)."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.chat_site import CHATS, House, Turn, opened_house
from tests.fakes.http.external_tool import ReportingTool, reporting_tool
from tests.fakes.http.raw_http import send
from tests.fakes.providers.upstream import Reply, openai_chunk, openai_stream, sse

EVERYBODY = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
STATUS: dict[str, Any] = {"type": "status", "data": {"description": "looking", "done": False}}
FILE = {"type": "file", "url": "https://example.org/a.pdf", "name": "a.pdf"}
SOURCE = {"source": {"name": "a book"}, "document": ["text"], "metadata": [{"source": "a book"}]}
EXECUTION = {
    "type": "code_execution",
    "id": "run1",
    "name": "sum",
    "code": "print(1+1)",
    "language": "python",
    "result": {"output": "2", "files": [{"name": "a.png", "url": "/a"}]},
}

STORED: dict[str, tuple[dict[str, Any], str, Any]] = {
    "status": ({"description": "looking", "done": False}, "statusHistory", None),
    "message": ({"content": " more"}, "content", "begun more"),
    "replace": ({"content": "new"}, "content", "new"),
    "files": ({"files": [FILE]}, "files", [FILE]),
    "source": (SOURCE, "sources", None),
    "citation": (EXECUTION, "sources", None),
}
"""Type -> its data, the field of the message that it changes, and what that is then (None: the data)."""

DELIVERED: dict[str, dict[str, Any]] = {
    "notification": {"type": "info", "content": "look"},
    "chat:message:delta": {"content": "x"},
    "chat:message": {"content": "x"},
    "chat:message:files": {"files": [FILE]},
}
REFUSED = (
    "input",
    "confirmation",
    "execute",
    "chat:completion",
    "chat:title",
    "chat:tags",
    "chat:message:error",
    "chat:message:follow_ups",
    "chat:message:favorite",
    "chat:message:embeds",
    "embeds",
    "chat:active",
    "my:own",
    "Status",
    "",
)


@contextlib.contextmanager
def opened(folder: Path, **settings: str) -> Iterator[tuple[House, ReportingTool]]:
    """Run the gateway with the tool among its servers."""
    with reporting_tool() as tool:
        server = {
            "url": tool.url,
            "path": "openapi.json",
            "auth_type": "bearer",
            "key": "tool-canary",
            "info": {"id": "library", "name": "Library"},
            "config": {"enable": True, "access_grants": EVERYBODY},
        }
        given = {"TOOL_SERVER_CONNECTIONS": json.dumps([server]), **settings}
        with opened_house(folder, **given) as house:
            tool.gateway = house.daemon.base_url
            yield house, tool
            house.assert_well()
            assert "tool-canary" not in "".join(house.daemon.log)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, ReportingTool]]:
    with opened(tmp_path_factory.mktemp("h"), ENABLE_FORWARD_USER_INFO_HEADERS="true") as made:
        yield made


@pytest.fixture(scope="module")
def house(site: tuple[House, ReportingTool]) -> House:
    return site[0]


@pytest.fixture
def tool(site: tuple[House, ReportingTool]) -> ReportingTool:
    site[1].headers, site[1].bodies, site[1].told = [], [], []
    site[1].events = ()
    return site[1]


def place(turn: Turn, message_id: str = "") -> str:
    return f"{CHATS}/{turn.chat_id}/messages/{message_id or turn.answer}/event"


def begun(house: House) -> Turn:
    """Return a turn whose answer says "begun"."""
    turn = house.begin()
    told = {"type": "replace", "data": {"content": "begun"}}
    assert house.ok("POST", place(turn), told, house.ann.key) is True
    return turn


# The endpoint --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ann", "admin"])
@pytest.mark.parametrize("kind", STORED)
def test_what_is_stored(house: House, kind: str, name: str) -> None:
    data, field, expected = STORED[kind]
    credential = house.ann.key if name == "ann" else house.admin.token
    turn = begun(house)
    before = house.message(turn)
    with house.listen() as owner, house.listen(house.admin) as other:
        assert house.ok("POST", place(turn), {"type": kind, "data": data}, credential) is True
        frame = owner.wait_type(kind, turn.chat_id)
        assert (frame.data["message_id"], frame.payload) == (turn.answer, data)
        own = house.begin(who=house.admin)
        assert house.ok("POST", place(own), STATUS, house.admin) is True
        other.wait_type("status", own.chat_id)
        heard = [one.data["chat_id"] for one in other.heard if one.type != "chat:list"]
        assert heard == [own.chat_id]
    after = house.message(turn)
    assert after[field] == ([data] if expected is None else expected)
    assert {key for key in after if after[key] != before.get(key)} == {field}


@pytest.mark.parametrize("kind", DELIVERED)
def test_what_is_delivered_and_not_stored(house: House, kind: str) -> None:
    turn = begun(house)
    before = house.message(turn)
    with house.listen() as owner:
        assert house.ok("POST", place(turn), {"type": kind, "data": DELIVERED[kind]}, house.ann.key) is True
        assert owner.wait_type(kind, turn.chat_id).payload == DELIVERED[kind]
    assert house.message(turn) == before


def test_what_is_refused(house: House) -> None:
    turn = begun(house)
    before = house.message(turn)
    with house.listen() as owner:
        for kind in REFUSED:
            data = {"code": "1", "content": "x", "embeds": [], "title": "t", "message": "m"}
            for credential in (house.ann.key, house.admin.token):
                status, answer = house.call("POST", place(turn), {"type": kind, "data": data}, credential)
                assert status == 400, kind
                assert "type" in answer["detail"]
        assert house.ok("POST", place(turn), STATUS, house.ann.key) is True
        owner.wait_type("status", turn.chat_id)
        assert [one.type for one in owner.heard] == ["status"]
    assert house.ok("GET", "/api/v1/events/calls") == {"calls": [], "total": 0}
    after = house.message(turn)
    assert after.pop("statusHistory") == [STATUS["data"]]
    assert after == before


BODIES: list[tuple[Any, int]] = [
    ({}, 422),
    ([], 422),
    ("status", 422),
    (None, 422),
    ({"type": "status"}, 422),
    ({"data": {}}, 422),
    ({"type": "status", "data": "x"}, 422),
    ({"type": 5, "data": {}}, 422),
    ({"type": "message", "data": {}}, 400),
    ({"type": "files", "data": {"files": "x"}}, 400),
    ({"type": "message", "data": {"content": 5}}, 400),
]


def test_bodies_that_are_no_events(house: House) -> None:
    turn = begun(house)
    for body, expected in BODIES:
        status, answer = house.call("POST", place(turn), body, house.ann.key)
        assert (status, bool(answer["detail"])) == (expected, True), (body, answer)
    assert "statusHistory" not in house.message(turn)


def test_who_may_not(house: House) -> None:
    turn = begun(house)
    before = house.message(turn)
    foreign = house.call("POST", place(turn), STATUS, house.bob.key)
    unknown = house.call("POST", f"{CHATS}/nothing/messages/x/event", STATUS, house.bob.key)
    assert (foreign[0], unknown[0]) == (404, 404)
    # Nobody learns whether there is such a chat.
    assert foreign[1]["detail"].replace(turn.chat_id, "X") == unknown[1]["detail"].replace("nothing", "X")
    assert house.call("POST", place(turn), STATUS, "sk-wrong")[0] == 401
    reply = send(house.daemon.base_url, "POST", place(turn), json.dumps(STATUS).encode())
    assert reply.status == 401
    assert house.message(turn) == before


def test_a_message_that_is_not_there(house: House) -> None:
    turn = begun(house)
    for kind, (data, _, _) in STORED.items():
        assert house.ok("POST", place(turn, "nothing"), {"type": kind, "data": data}, house.ann.key) is True
    record = house.ok("GET", f"{CHATS}/{turn.chat_id}")
    assert record["chat"]["history"]["messages"].keys() == {turn.question, turn.answer}


# The whole -----------------------------------------------------------------------------------------------


def ask_for_it(house: House, text: str = "A heron.") -> tuple[Turn, dict[str, Any]]:
    """Let a model call the tool, and return the turn and its answer."""
    arguments = json.dumps({"shelf": "birds", "query": "what stands in the water"})
    call = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "lookup", "arguments": arguments},
    }
    calling = [
        sse(openai_chunk(tool_calls=[call])),
        sse(openai_chunk(finish_reason="tool_calls")),
        sse(b"[DONE]"),
    ]
    house.provider.script(Reply(steps=calling), Reply(steps=openai_stream([text] if text else [])))
    turn = house.begin()
    house.start(turn, tool_ids=["server:library"])
    return turn, house.finished(turn)


EVENTS: list[dict[str, Any]] = [
    STATUS,
    {"type": "files", "data": {"files": [FILE]}},
    {"type": "citation", "data": SOURCE},
    {"type": "notification", "data": {"type": "success", "content": "found"}},
    {"type": "execute", "data": {"code": "1"}},
    {"type": "status", "data": {"description": "found", "done": True}},
]


@pytest.mark.parametrize("name", ["ann", "admin"])
def test_a_tool_is_called_and_tells_what_it_does(house: House, tool: ReportingTool, name: str) -> None:
    tool.key = house.ann.key if name == "ann" else house.admin.token
    tool.events = EVENTS
    with house.listen() as listener:
        turn, message = ask_for_it(house)
        heard = [one.type for one in listener.wait_idle(turn.chat_id)]
    assert tool.told == [200, 200, 200, 200, 400, 200]
    assert [item["description"] for item in message["statusHistory"]] == ["looking", "found"]
    assert message["files"] == [FILE]
    assert SOURCE in message["sources"]
    assert message["content"].endswith("A heron.")
    # In their order, while the model waits for the tool.
    told = [kind for kind in heard if not kind.startswith("chat:")]
    assert told[:5] == ["status", "files", "citation", "notification", "status"]
    assert "execute" not in heard
    assert heard.index("notification") < len(heard) - 1 - heard[::-1].index("chat:completion")
    results = [item for item in house.provider.last().json["messages"] if item["role"] == "tool"]
    assert [json.loads(item["content"]) for item in results] == [{"found": "a heron"}]


def test_what_a_tool_is_told(house: House, tool: ReportingTool) -> None:
    turn, _ = ask_for_it(house)
    (headers,) = tool.headers
    for start in ("X-Service", "X-OpenWebUI"):
        assert (headers[f"{start}-Chat-Id"], headers[f"{start}-Message-Id"]) == (turn.chat_id, turn.answer)
    assert headers["X-OpenWebUI-User-Id"] == house.ann.id
    assert headers["X-OpenWebUI-User-Email"] == house.ann.email
    assert headers["X-OpenWebUI-User-Name"] == "ann"
    assert headers["X-OpenWebUI-User-Role"] == "user"
    assert headers["Authorization"] == "Bearer tool-canary"
    everything = " ".join(headers.values())
    assert house.ann.token not in everything
    assert house.ann.key not in everything
    ((shelf, body),) = tool.bodies
    assert (shelf, body["query"]) == ("birds", "what stands in the water")
    # The provider of the model hears who asks too, and in which chat, but not by which message.
    sent = house.provider.last().headers
    assert sent["X-OpenWebUI-User-Id"] == house.ann.id
    assert sent["X-Service-Chat-Id"] == turn.chat_id
    assert "X-Service-Message-Id" not in sent


def test_what_a_tool_writes_stays_when_the_model_says_nothing(house: House, tool: ReportingTool) -> None:
    tool.key = house.ann.key
    tool.events = [{"type": "replace", "data": {"content": "by the tool"}}]
    _, message = ask_for_it(house, text="")
    assert tool.told == [200]
    assert message["done"] is True
    assert message["content"]


def test_a_key_of_somebody_else_tells_nothing(house: House, tool: ReportingTool) -> None:
    tool.key, tool.events = house.bob.key, [STATUS]
    _, message = ask_for_it(house)
    assert tool.told == [404]
    assert "statusHistory" not in message
    assert message["content"].endswith("A heron.")


def test_without_the_setting_nobody_is_told_who_asks_and_nobody_reports(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_FORWARD_USER_INFO_HEADERS="false") as (house, tool):
        tool.key, tool.events = house.ann.key, [STATUS]
        turn, message = ask_for_it(house)
        for who in (house.ann, house.admin):
            status, answer = house.call("POST", place(turn), STATUS, who)
            assert (status, "ENABLE_FORWARD_USER_INFO_HEADERS" in answer["detail"]) == (403, True)
        for headers in (tool.headers[0], house.provider.last().headers):
            assert not [name for name in headers if name.lower().startswith(("x-service", "x-openwebui"))]
        assert tool.told == []
        assert "statusHistory" not in message
        assert message["content"].endswith("A heron.")


def test_headers_of_other_names(tmp_path: Path) -> None:
    names = {
        "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
        "FORWARD_SESSION_INFO_HEADER_CHAT_ID": "X-My-Chat",
        "FORWARD_SESSION_INFO_HEADER_MESSAGE_ID": "X-My-Message",
        "FORWARD_USER_INFO_HEADER_USER_EMAIL": "X-My-Mail",
    }
    with opened(tmp_path, **names) as (house, tool):
        turn, _ = ask_for_it(house)
        (headers,) = tool.headers
        mine = (headers["X-My-Chat"], headers["X-My-Message"], headers["X-My-Mail"])
        assert mine == (turn.chat_id, turn.answer, house.ann.email)
        assert not {"X-Service-Chat-Id", "X-Service-Message-Id", "X-OpenWebUI-User-Email"} & headers.keys()
