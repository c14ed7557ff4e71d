"""Calls that ask a user and wait for the answer: confirmation, input and execute.

gatewayd-plugins(7), EVENTS describes them for plugins.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd import ids
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.foreign_calls import ForeignCalls
from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.records import Event, EventCall, EventTarget
from gatewayd.events.rooms import Subscription
from gatewayd.events.shown_calls import ShownCall, payload_with_user
from gatewayd.nodes.messages import DEAD_SECONDS, NoChannel, NodeMessages
from gatewayd.tasks import TaskRegistry

GRACE_SECONDS: Final = 5.0
"""How long a call waits for a user without a live connection."""

OPEN_SECONDS: Final = 0.3
"""How long a call waits for a node that has the session of its target, before it goes to all sessions."""

MAX_REMEMBERED_CALLS: Final = 1000
"""Maximum number of answered calls that are remembered, over all users."""


class CallTimeout(TimeoutError):  # noqa: N818 - a time-out, named like its base
    """No answer came in time, or the user has no live connection."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """A call of this node, with the nodes where the user hears it: when each told so, and whether it has the
    session of the target."""

    shown: ShownCall
    answer: asyncio.Future[Any]
    grace: asyncio.TimerHandle | None = None
    opening: asyncio.TimerHandle | None = None
    heard: dict[str, tuple[float, bool]] = field(default_factory=dict)

    @property
    def call(self) -> EventCall:
        return self.shown.call


class EventCalls:
    """Sends calls to users and collects their answers. `timeout` is in seconds, 0 for none.

    A call goes to the session of its target, or to all sessions of the user if that session is gone; a
    session that connects later gets it then. Any of these sessions may answer, on any node; the first answer
    counts. Without Redis a call reaches the sessions of this node alone.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        timeout: float,
        grace: float = GRACE_SECONDS,
        messages: NodeMessages | None = None,
        elapsed: Callable[[], float] = ids.since_boot,
    ) -> None:
        self._hub = hub
        self._timeout = timeout or None
        self._grace = grace
        self._elapsed = elapsed
        self._waiting: dict[str, dict[str, _Waiting]] = {}
        # Call id -> id of the user who answered it.
        self._answered: OrderedDict[str, str] = OrderedDict()
        self._foreign = ForeignCalls(
            hub, messages or NodeMessages(NoChannel(), TaskRegistry()), self, elapsed
        )
        hub.watch(self)

    async def ask(self, target: EventTarget, event: Event) -> Any:
        """Send a call and return the answer of the user, any JSON value.

        Raises CallTimeout without an answer in time or without a session for 5 s; RuntimeError with the
        message of the client if it reports a failure. A cancellation withdraws the call.
        """
        call = EventCall(ids.new_id(), target, event, ids.now())
        shown = ShownCall(call, is_open=not (target.session_id and self._foreign.has_peers))
        waiting = _Waiting(shown, asyncio.get_running_loop().create_future())
        mine = self._waiting.setdefault(target.user_id, {})
        mine[call.id] = waiting
        try:
            shown.show(self._hub)
            shown.show_to_everybody(self._hub)
            self._foreign.ask(shown)
            self._update(waiting)
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
        """Return the unanswered calls to a user, of every node that lives, oldest first."""
        return [call for call in self.every() if call.target.user_id == user_id]

    def every(self) -> Sequence[EventCall]:
        """Return the unanswered calls to all users, of every node that lives, oldest first."""
        waiting = [shown.call for shown in self.shown_calls()]
        return sorted([*waiting, *self._foreign.list()], key=lambda call: call.created_at)

    def find_user(self, call_id: str) -> str | None:
        """Return the id of the user of a call, answered or not; None for an unknown call."""
        asked = (call.target.user_id for call in self.every() if call.id == call_id)
        return next(asked, self._answered.get(call_id))

    async def answer(self, user_id: str, call_id: str, result: Any) -> None:
        """Set the result of a call; raise conflict if it has one, not_found if the user has no such call.

        For a call of another node, raises the errors of `ForeignCalls.answer`, too.
        """
        await self._give(user_id, call_id, {"result": result})

    async def refuse(self, user_id: str, call_id: str, error: str) -> None:
        """Make a call fail; errors as for `answer`."""
        await self._give(user_id, call_id, {"error": error})

    def withdraw(self, target: EventTarget) -> None:
        """Cancel the unanswered calls of a message whose answer has been stopped."""
        for waiting in list(self._waiting.get(target.user_id, {}).values()):
            if waiting.call.target.message_id == target.message_id and not waiting.answer.done():
                waiting.answer.cancel()
                self._end(waiting)

    def joined(self, listener: Subscription) -> None:
        """Send the unanswered calls to a new subscriber if they are addressed to it."""
        if listener.opened.user_id == EVERYBODY:
            for shown in self.shown_calls():
                if listener.wants_events_of(shown.call.target.chat_id):
                    self._hub.send([listener], payload_with_user(shown.call))
        for waiting in list(self._waiting.get(listener.opened.user_id, {}).values()):
            waiting.shown.show(self._hub)
            self._update(waiting)
        self._foreign.joined(listener)

    def left(self, listener: Subscription) -> None:
        """Send the unanswered calls of a closed session to the other sessions of the user."""
        for waiting in list(self._waiting.get(listener.opened.user_id, {}).values()):
            waiting.shown.shown.discard(listener.opened.session_id)
            if waiting.call.target.session_id == listener.opened.session_id:
                # No other node has it.
                self._open_to_all(waiting)
            self._update(waiting)
        self._foreign.left(listener)

    def shown_calls(self) -> Sequence[ShownCall]:
        """Return the unanswered calls of this node, by user."""
        return [waiting.shown for mine in self._waiting.values() for waiting in mine.values()]

    def hear_elsewhere(self, node_id: str, heard: Mapping[str, bool]) -> None:
        """Note the calls that users hear on another node, with whether the session of the target is there."""
        now = self._elapsed()
        for waiting in self._all():
            waiting.heard.pop(node_id, None)
            if waiting.call.id in heard:
                waiting.heard[node_id] = now, heard[waiting.call.id]
            self._update(waiting)

    def settle(self, user_id: str, call_id: str, answer: Mapping[str, Any]) -> None:
        """Give a call of this node its `result`, or an `error`; raises conflict and not_found."""
        waiting = self._open(user_id, call_id)
        if "error" in answer:
            asked = waiting.call.event.type
            error = RuntimeError(f"the client could not answer {asked}: {answer['error']}")
            waiting.answer.set_exception(error)
        else:
            waiting.answer.set_result(answer["result"])
        self.remember(user_id, call_id)

    def remember(self, user_id: str, call_id: str) -> None:
        """Remember that a call has its answer."""
        self._answered[call_id] = user_id
        if len(self._answered) > MAX_REMEMBERED_CALLS:
            self._answered.popitem(last=False)

    def refresh(self) -> None:
        """Forget the nodes that are silent, and wait no longer for a user whom none of the others has."""
        since = self._elapsed() - DEAD_SECONDS
        for waiting in self._all():
            waiting.heard = {node: told for node, told in waiting.heard.items() if told[0] >= since}
            self._update(waiting)

    async def _give(self, user_id: str, call_id: str, answer: Mapping[str, Any]) -> None:
        if call_id in self._waiting.get(user_id, {}) or self._answered.get(call_id) == user_id:
            self.settle(user_id, call_id, answer)
        else:
            await self._foreign.answer(user_id, call_id, answer)

    def _all(self) -> Sequence[_Waiting]:
        return [waiting for mine in self._waiting.values() for waiting in mine.values()]

    def _update(self, waiting: _Waiting) -> None:
        """Start or stop the timers of a call.

        The grace period runs while the user has no live connection anywhere, the other one while the session
        of the target is nowhere.
        """
        loop = asyncio.get_running_loop()
        is_there = waiting.shown.has_session(self._hub) or any(has for _, has in waiting.heard.values())
        if (is_there or waiting.shown.is_open) and waiting.opening is not None:
            waiting.opening.cancel()
            waiting.opening = None
        elif not is_there and not waiting.shown.is_open and waiting.opening is None:
            waiting.opening = loop.call_later(OPEN_SECONDS, self._open_to_all, waiting)
        is_heard = bool(waiting.heard) or waiting.shown.is_heard(self._hub)
        if is_heard and waiting.grace is not None:
            waiting.grace.cancel()
            waiting.grace = None
        elif not is_heard and waiting.grace is None:
            waiting.grace = loop.call_later(self._grace, self._expire, waiting)

    def _open_to_all(self, waiting: _Waiting) -> None:
        if not waiting.shown.is_open:
            waiting.shown.is_open = True
            self._foreign.open(waiting.shown)
        waiting.shown.show(self._hub)

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

    def _end(self, waiting: _Waiting) -> None:
        for timer in (waiting.grace, waiting.opening):
            if timer is not None:
                timer.cancel()
        call = waiting.call
        mine = self._waiting.get(call.target.user_id, {})
        # A call that was withdrawn has ended already.
        if mine.pop(call.id, None) is not None:
            self._foreign.end(waiting.shown, is_answered=call.id in self._answered)
        if not mine:
            self._waiting.pop(call.target.user_id, None)
