"""`/v1/events`."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.transport import Frame
from gatewayctl.wire import routes
from gatewayctl.wire.events import CallAnswer
from gatewayd.events.hub import EVERYBODY
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_socket import Control


class Listener:
    """Reads a stream of the control socket beside the server."""

    def __init__(self, control: Control, **how: Any) -> None:
        self._frames = control.client.listen(routes.FOLLOW_EVENTS, **how)

    async def next(self) -> Frame:
        return await asyncio.to_thread(next, self._frames)

    async def data(self) -> tuple[Any, Any]:
        """Return the chat and the content of the next event."""
        frame = await self.next()
        return frame.data["chat_id"], frame.data["data"]["data"]["content"]

    async def close(self) -> None:
        await asyncio.to_thread(self._frames.close)


@asynccontextmanager
async def listening(control: Control, **how: Any) -> AsyncIterator[Listener]:
    listener = Listener(control, **how)
    try:
        yield listener
    finally:
        await listener.close()


def text(content: str) -> dict[str, Any]:
    return {"content": content}


async def test_the_events_of_one_user(control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    live = control.live
    async with listening(control, user=ann.email) as listener:
        session = await listener.next()
        assert (session.name, session.data) == (
            "session",
            {"user_id": ann.id, "user": ann.email, "gap": False},
        )
        await live.emit(bob, "notification", text("not for ann"))
        await live.emit(ann, "notification", text("hi"), "c2")
        frame = await listener.next()
        assert frame.data == {
            "chat_id": "c2",
            "message_id": "m1",
            "data": {"type": "notification", "data": text("hi")},
        }
        assert live.hub.is_live(ann.id)
    await live.heard(ann.id, 0)
    await live.emit(ann, "notification", text("missed"))
    async with listening(control, user=ann.id, since=frame.id) as again:
        assert (await again.next()).data["gap"] is False
        assert await again.data() == ("c1", "missed")
    async with listening(control, user=ann.id, since="old-1") as lost:
        assert (await lost.next()).data["gap"] is True


async def test_the_events_of_a_chat_are_those_of_its_owner(control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    chat_id = await control.live.chat(ann)
    async with listening(control, chat=chat_id) as listener:
        assert (await listener.next()).data["user"] == ann.email
        await control.live.emit(ann, "notification", text("other"), "c2")
        await control.live.emit(ann, "notification", text("mine"), chat_id)
        assert await listener.data() == (chat_id, "mine")
    async with listening(control, chat="local:1", user=bob.id) as listener:
        assert (await listener.next()).data["user"] == bob.email
        await control.live.emit(bob, "notification", text("unsaved"), "local:1")
        assert await listener.data() == ("local:1", "unsaved")


async def test_the_events_of_everybody(control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    async with listening(control, everybody=True) as listener:
        assert (await listener.next()).data == {"user_id": "*", "user": "", "gap": False}
        await control.live.emit(ann, "notification", text("a"))
        await control.live.emit(bob, "notification", text("b"))
        assert [(await listener.next()).data["user_id"] for _ in range(2)] == [ann.id, bob.id]
        assert not control.live.hub.is_live(ann.id)
    await control.live.heard(EVERYBODY, 0)


async def test_the_daemon_closes_streams_when_it_stops(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    async with listening(control, user=ann.id) as listener:
        await listener.next()
        control.live.hub.close()
        with pytest.raises(CommandError) as caught:
            await listener.next()
    assert caught.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({}, "invalid_request"),
        ({"user": "zoe@example.org"}, "not_found"),
        ({"chat": "none"}, "not_found"),
    ],
)
async def test_nobody_to_listen_for(control: Control, how: dict[str, str], kind: str) -> None:
    with pytest.raises(CommandError) as caught:
        await Listener(control, **how).next()
    assert caught.value.kind == kind


async def test_calls_are_listed_and_answered(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    client, live = control.client, control.live
    async with listening(control, user=ann.id) as listener, listening(control, user=bob.id) as other:
        await listener.next()
        await other.next()
        first = live.ask(ann, "input", {"title": "Name?"})
        second = live.ask(ann, "confirmation", {"title": "Sure?"})
        third = live.ask(bob, "confirmation", {"title": "Bob?"})
        frames = [await listener.next(), await listener.next()]
        await other.next()
        calls = (await control.call(client.call, routes.LIST_CALLS)).calls
        assert [(call.user, call.type) for call in calls] == [
            (ann.email, "input"),
            (ann.email, "confirmation"),
            (bob.email, "confirmation"),
        ]
        assert [frame.data["call_id"] for frame in frames] == [call.id for call in calls[:2]]
        assert (await control.call(client.call, routes.LIST_CALLS, user=bob.email)).calls == calls[2:]
        with caplog.at_level(logging.INFO, "gatewayd.audit"):
            answered = await control.call(
                client.call, routes.ANSWER_CALL, calls[0].id, body=CallAnswer(result="Ann")
            )
        assert (answered, await first) == (calls[0], "Ann")
        assert vars(caplog.records[0])["target"] == calls[0].id
        await control.call(client.call, routes.ANSWER_CALL, calls[1].id, body=CallAnswer(error="no terminal"))
        with pytest.raises(RuntimeError, match="no terminal"):
            await second
        await control.call(client.call, routes.ANSWER_CALL, calls[2].id, body=CallAnswer(result=None))
        assert await third is None
        again = await refused(
            control, client.call, routes.ANSWER_CALL, calls[0].id, body=CallAnswer(result=1)
        )
        assert again.kind == "conflict"


async def test_bad_answers(control: Control) -> None:
    client = control.client
    assert (
        await refused(control, client.call, routes.LIST_CALLS, user="zoe@example.org")
    ).kind == "not_found"
    missing = await refused(control, client.call, routes.ANSWER_CALL, "none", body=CallAnswer(result=1))
    assert missing.kind == "not_found"
    for wanted in (CallAnswer(), CallAnswer(result=1, error="x"), CallAnswer(error=None)):
        failure = await refused(control, client.call, routes.ANSWER_CALL, "none", body=wanted)
        assert (failure.kind, failure.param) == ("invalid_request", "result")
