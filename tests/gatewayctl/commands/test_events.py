"""gatewayctl event."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayctl.client import ControlClient
from gatewayctl.events import follower
from gatewayctl.transport import Frame
from gatewayd.accounts.records import User
from gatewayd.events.hub import EVERYBODY
from tests.fakes.daemons.control_socket import Control, Ctl, Result, Terminal


@pytest.fixture
async def ann(control: Control) -> User:
    return await control.accounts.add_user("ann")


async def followed(ctl: Ctl, control: Control, user_id: str, *args: str) -> "asyncio.Task[Result]":
    """Start to follow events, and return once the daemon knows."""
    task = asyncio.ensure_future(ctl("event", "follow", *args))
    await control.live.heard(user_id)
    return task


def said(content: str) -> dict[str, Any]:
    return {"type": "info", "content": content}


async def test_events_are_lines_for_people(ctl: Ctl, control: Control, ann: User) -> None:
    running = await followed(ctl, control, ann.id, "--user", ann.email, "--count", "2")
    await control.live.emit(ann, "status", {"description": "look\x1b[2Jing", "done": True})
    await control.live.emit(ann, "notification", said("hi"))
    result = await running
    assert (result.code, result.err) == (0, "")
    first, second = result.out.splitlines()
    assert first.endswith(" ann@example.org c1/m1 status: look\\x1b[2Jing (done)")
    assert second.endswith(" ann@example.org c1/m1 notification: info: hi")


async def test_events_are_objects_for_programs_and_go_on(ctl: Ctl, control: Control, ann: User) -> None:
    running = await followed(ctl, control, ann.id, "--user", ann.id, "--count", "1", "-o", "jsonl")
    await control.live.emit(ann, "notification", said("one"))
    event = json.loads((await running).out)
    assert event == {
        "id": event["id"],
        "user": ann.email,
        "chat_id": "c1",
        "message_id": "m1",
        "call_id": None,
        "type": "notification",
        "data": said("one"),
    }
    await control.live.emit(ann, "notification", said("two"))
    missed = await ctl(
        "event", "follow", "--user", ann.id, "--since", event["id"], "--count", "1", "-o", "json"
    )
    assert json.loads(missed.out)["data"] == said("two")
    named = await ctl(
        "event", "follow", "--user", ann.id, "--since", event["id"], "--count", "1", "-o", "name"
    )
    assert named.out == f"{json.loads(missed.out)['id']}\n"


async def test_lost_events_are_told_and_not_counted(ctl: Ctl, control: Control, ann: User) -> None:
    running = await followed(ctl, control, ann.id, "--user", ann.id, "--since", "old-1", "--count", "1")
    await control.live.emit(ann, "notification", said("hi"))
    lost, event = (await running).out.splitlines()
    assert "events may be lost" in lost
    assert event.endswith("info: hi")


async def test_all_users_and_one_chat(ctl: Ctl, control: Control, ann: User) -> None:
    bob = await control.accounts.add_user("bob")
    everybody = await followed(ctl, control, EVERYBODY, "--all", "--count", "2", "-o", "jsonl")
    for user in (ann, bob):
        await control.live.emit(user, "notification", said("hi"))
    lines = (await everybody).out.splitlines()
    assert [json.loads(line)["user"] for line in lines] == [ann.email, bob.email]
    chat_id = await control.live.chat(bob)
    chosen = await followed(ctl, control, bob.id, "--chat", chat_id, "--count", "1")
    await control.live.emit(bob, "notification", said("other"), "c2")
    await control.live.emit(bob, "notification", said("mine"), chat_id)
    assert "mine" in (await chosen).out


async def test_a_broken_connection_is_opened_again(
    ctl: Ctl, control: Control, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "RETRY_SECONDS", 0.0)
    running = await followed(ctl, control, ann.id, "--user", ann.id, "--count", "2")
    await control.live.emit(ann, "notification", said("one"))
    while not control.live.hub.listeners(ann.id)[0].is_idle:
        await asyncio.sleep(0)
    control.live.hub.disconnect(ann.id)
    await control.live.emit(ann, "notification", said("meanwhile"))
    result = await running
    assert result.code == 0
    assert [line.rpartition(" ")[2] for line in result.out.splitlines()] == ["one", "meanwhile"]
    assert "connecting again" in result.err


async def test_an_interruption_says_how_to_go_on(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Frame]:
        yield Frame("session", "b-7", {"user_id": "u"})
        raise KeyboardInterrupt

    monkeypatch.setattr(ControlClient, "listen", interrupted)
    result = await ctl("event", "follow", "--all")
    assert (result.code, result.out) == (130, "")
    assert "--since b-7 goes on from here" in result.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("--all", "--user", "ann@example.org"), 2),
        (("--user", "zoe@example.org"), 5),
        (("--chat", "none"), 5),
        (("--all", "--count", "0"), 2),
    ],
)
async def test_what_follow_needs(ctl: Ctl, args: tuple[str, ...], code: int) -> None:
    assert (await ctl("event", "follow", *args)).code == code


async def test_a_terminal_answers(ctl: Ctl, control: Control, ann: User) -> None:
    running = await followed(ctl, control, ann.id, "--user", ann.id, "--count", "1")
    asked = control.live.ask(ann, "confirmation", {"title": "Delete?", "message": "All of it"})
    line = (await running).out.strip()
    call_id = line.rpartition(" ")[2].rstrip(")")
    assert line.endswith(f"confirmation: Delete?: All of it  (gatewayctl event answer {call_id})")
    table = (await ctl("event", "calls")).out
    assert "Delete?: All of it" in table
    assert (await ctl("event", "calls", "--user", ann.email, "-o", "name")).out == f"{call_id}\n"
    answered = await ctl("event", "answer", call_id, stdin=Terminal("y\n"))
    assert (answered.out, await asked) == (f"answered confirmation {call_id}\n", True)
    assert (await ctl("event", "answer", call_id, "--yes")).code == 6
    assert (await ctl("event", "calls", "-o", "json")).out == "[]\n"


@pytest.mark.parametrize(
    ("args", "stdin", "result"),
    [
        (("--value", "Ann"), "", "Ann"),
        (("--value", ""), "", ""),
        (("--value", "-"), "s3cret\n", "s3cret"),
        (("--json", '{"value": [1]}'), "", {"value": [1]}),
        (("--json", "null"), "", None),
        (("--yes",), "", True),
        (("--no",), "", False),
    ],
)
async def test_each_way_to_answer(
    ctl: Ctl, control: Control, ann: User, args: tuple[str, ...], stdin: str, result: Any
) -> None:
    listener = control.live.hub.subscribe(ann.id)
    asked = control.live.ask(ann, "input", {"title": "?"})
    await listener.next()
    [call] = control.live.calls.pending(ann.id)
    answered = await ctl("event", "answer", call.id, *args, "-o", "json", stdin=stdin)
    assert (answered.code, json.loads(answered.out)["id"]) == (0, call.id)
    assert await asked == result


async def test_a_question_may_fail(ctl: Ctl, control: Control, ann: User) -> None:
    listener = control.live.hub.subscribe(ann.id)
    asked = control.live.ask(ann, "execute", {"code": "return 1"})
    await listener.next()
    [call] = control.live.calls.pending(ann.id)
    assert (await ctl("event", "answer", call.id)).code == 2
    assert (await ctl("event", "answer", call.id, stdin=Terminal())).code == 2
    assert (await ctl("event", "answer", call.id, "--error", "no page")).code == 0
    with pytest.raises(RuntimeError, match="no page"):
        await asked


async def test_bad_answers(ctl: Ctl) -> None:
    assert (await ctl("event", "answer", "none", "--yes")).code == 5
    assert (await ctl("event", "answer", "none", stdin=Terminal())).code == 5
    assert (await ctl("event", "answer", "none", "--yes", "--no")).code == 2
    for text in ("{", "NaN"):
        assert (await ctl("event", "answer", "none", "--json", text)).code == 2
    assert (await ctl("event", "calls", "--user", "zoe@example.org")).code == 5
