"""Calls that ask a user and wait for the answer: confirmation, input and execute.

gatewayd-plugins(7), EVENTS describes them for plugins.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd import ids
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.records import Event, EventCall, EventTarget, Payload
from gatewayd.events.rooms import Subscription

GRACE_SECONDS: Final = 5.0
"""How long a call waits for a user without a live connection."""

MAX_REMEMBERED_CALLS: Final = 1000
"""Maximum number of answered calls that are remembered, over all users."""


class CallTimeout(TimeoutError):  # noqa: N818 - a time-out, named like its base
    """No answer came in time, or the user has no live connection."""


@dataclass(eq=False, slots=True)
class _Waiting:
    call: EventCall
    answer: asyncio.Future[Any]
    grace: asyncio.TimerHandle | None = field(default=None)


class EventCalls:
    """Sends calls to users and collects their answers. `timeout` is in seconds, 0 for none.

    A call goes to the session of its target, or to all sessions of the user if that session is gone; a
    session that connects later gets it then. Any of these sessions may answer; the first answer counts.
    """

    def __init__(self, hub: Hub, *, timeout: float, grace: float = GRACE_SECONDS) -> None:
        self._hub = hub
        self._timeout = timeout or None
        self._grace = grace
        self._waiting: dict[str, dict[str, _Waiting]] = {}
        # Call id -> id of the user who answered it.
        self._answered: OrderedDict[str, str] = OrderedDict()
        hub.watch(self)

    async def ask(self, target: EventTarget, event: Event) -> Any:
        """Send a call and return the answer of the user, any JSON value.

        Raises CallTimeout without an answer in time or without a session for 5 s; RuntimeError with the
        message of the client if it reports a failure. A cancellation withdraws the call.
        """
        call = EventCall(ids.new_id(), target, event, ids.now())
        waiting = _Waiting(call, asyncio.get_running_loop().create_future())
        mine = self._waiting.setdefault(target.user_id, {})
        mine[call.id] = waiting
        try:
            self._hub.send(self._addressed(call), payload_of(call))
            self._hub.send(self._hub.listeners(EVERYBODY, target.chat_id), _payload_with_user(call))
            self._update_grace(waiting)
            async with TimeLimit(self._timeout):
                return await waiting.answer
        except CallTimeout:
            raise
        except TimeoutError:
            raise CallTimeout(
                f"cannot get an answer to {event.type}: none came within {self._timeout:g} s"
            ) from None
        finally:
            self._end(waiting)

    def pending(self, user_id: str) -> Sequence[EventCall]:
        """Return the unanswered calls to a user, oldest first."""
        return [waiting.call for waiting in self._waiting.get(user_id, {}).values()]

    def every(self) -> Sequence[EventCall]:
        """Return the unanswered calls to all users, oldest first."""
        waiting = [each.call for mine in self._waiting.values() for each in mine.values()]
        return sorted(waiting, key=lambda call: call.created_at)

    def find_user(self, call_id: str) -> str | None:
        """Return the id of the user of a call, answered or not; None for an unknown call."""
        asked = (user_id for user_id, mine in self._waiting.items() if call_id in mine)
        return next(asked, self._answered.get(call_id))

    def answer(self, user_id: str, call_id: str, result: Any) -> None:
        """Set the result of a call; raise conflict if it has one, not_found if the user has no such call."""
        self._open(user_id, call_id).answer.set_result(result)
        self._remember(user_id, call_id)

    def refuse(self, user_id: str, call_id: str, error: str) -> None:
        """Make a call fail; errors as for `answer`."""
        waiting = self._open(user_id, call_id)
        asked = waiting.call.event.type
        waiting.answer.set_exception(RuntimeError(f"the client could not answer {asked}: {error}"))
        self._remember(user_id, call_id)

    def withdraw(self, target: EventTarget) -> None:
        """Cancel the unanswered calls of a message whose answer has been stopped."""
        for waiting in list(self._waiting.get(target.user_id, {}).values()):
            if waiting.call.target.message_id == target.message_id and not waiting.answer.done():
                waiting.answer.cancel()
                self._end(waiting)

    def joined(self, listener: Subscription) -> None:
        """Send the unanswered calls to a new subscriber if they are addressed to it."""
        if listener.opened.user_id == EVERYBODY:
            for call in self.every():
                if listener.wants_events_of(call.target.chat_id):
                    self._hub.send([listener], _payload_with_user(call))
            return
        for waiting in list(self._waiting.get(listener.opened.user_id, {}).values()):
            if listener in self._addressed(waiting.call):
                self._hub.send([listener], payload_of(waiting.call))
            self._update_grace(waiting)

    def left(self, listener: Subscription) -> None:
        """Send the unanswered calls of a closed session to the other sessions of the user."""
        for waiting in list(self._waiting.get(listener.opened.user_id, {}).values()):
            if waiting.call.target.session_id == listener.opened.session_id:
                self._hub.send(self._addressed(waiting.call), payload_of(waiting.call))
            self._update_grace(waiting)

    def _addressed(self, call: EventCall) -> Sequence[Subscription]:
        """Return the addressed subscribers: the session of the target alone if it lives, else all."""
        target = call.target
        listeners = self._hub.listeners(target.user_id, target.chat_id)
        wanted = [one for one in listeners if one.opened.session_id == target.session_id]
        return wanted or listeners

    def _update_grace(self, waiting: _Waiting) -> None:
        """Start or stop the grace period of a call: it runs while the user has no live connection."""
        target = waiting.call.target
        is_heard = self._hub.is_live(target.user_id, target.chat_id)
        if is_heard and waiting.grace is not None:
            waiting.grace.cancel()
            waiting.grace = None
        elif not is_heard and waiting.grace is None:
            loop = asyncio.get_running_loop()
            waiting.grace = loop.call_later(self._grace, self._expire, waiting)

    def _expire(self, waiting: _Waiting) -> None:
        if not waiting.answer.done():
            asked = waiting.call.event.type
            waiting.answer.set_exception(
                CallTimeout(f"cannot get an answer to {asked}: the user has no live connection")
            )

    def _open(self, user_id: str, call_id: str) -> _Waiting:
        waiting = self._waiting.get(user_id, {}).get(call_id)
        if waiting is not None and not waiting.answer.done():
            return waiting
        if self._answered.get(call_id) == user_id:
            raise GatewayError(ErrorKind.CONFLICT, f"cannot answer call {call_id!r}: it has an answer")
        raise not_found("call", call_id)

    def _remember(self, user_id: str, call_id: str) -> None:
        self._answered[call_id] = user_id
        if len(self._answered) > MAX_REMEMBERED_CALLS:
            self._answered.popitem(last=False)

    def _end(self, waiting: _Waiting) -> None:
        if waiting.grace is not None:
            waiting.grace.cancel()
        user_id = waiting.call.target.user_id
        mine = self._waiting.get(user_id, {})
        # A call that was withdrawn has ended already.
        mine.pop(waiting.call.id, None)
        if not mine:
            self._waiting.pop(user_id, None)


def payload_of(call: EventCall) -> Payload:
    """Return the payload of a call for subscribers."""
    return {
        "chat_id": call.target.chat_id,
        "message_id": call.target.message_id,
        "call_id": call.id,
        "data": {"type": call.event.type, "data": call.event.data},
    }


def _payload_with_user(call: EventCall) -> Payload:
    return {"user_id": call.target.user_id, **payload_of(call)}
