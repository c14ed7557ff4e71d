"""Calls between nodes: each node shows those of the others to its subscribers, and passes the answers on.

Which answer counts is decided by the node of the call alone. What is lost on the way is sent again: every
second a node tells which calls it has, and which ones of others a user hears on it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Protocol

import orjson

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.json_values import to_json_bytes
from gatewayd.events.records import Event, EventCall, EventTarget
from gatewayd.events.rooms import Subscription
from gatewayd.events.shown_calls import ShownCall, payload_with_user
from gatewayd.nodes.messages import DEAD_SECONDS, NodeMessages

log = logging.getLogger(__name__)

MAX_FOREIGN_CALLS: Final = 10_000
TARGET_FIELDS: Final = tuple(each.name for each in fields(EventTarget))
MISSED_STATES: Final = 2
"""How often a node does not name a call before it has ended: its news may arrive in another order."""

FORGET_SECONDS: Final = 60.0
"""How long calls are remembered that their node no longer names, or whose node is silent."""

ASKED, OPENED, ENDED, STATE, WANTED, ANSWER = (
    f"call.{name}" for name in ("asked", "opened", "ended", "state", "wanted", "answer")
)


class CallHome(Protocol):
    """The calls of this node."""

    def shown_calls(self) -> Sequence[ShownCall]:
        """Return those without an answer."""
        ...

    def hear_elsewhere(self, node_id: str, heard: Mapping[str, bool]) -> None:
        """Note the calls that users hear on another node, with whether the session of the target is there."""
        ...

    def settle(self, user_id: str, call_id: str, answer: Mapping[str, Any]) -> None:
        """Give a call its `result`, or an `error`; raises conflict and not_found."""
        ...

    def remember(self, user_id: str, call_id: str) -> None:
        """Remember that a call of another node has its answer."""
        ...

    def refresh(self) -> None:
        """See which calls nobody hears any longer."""
        ...


@dataclass(eq=False, slots=True)
class _Foreign(ShownCall):
    """A call of another node, when that was heard of, and in how many of its states the call was missing."""

    node_id: str = ""
    seen_at: float = 0.0
    missed: int = 0


class ForeignCalls:
    """The calls of the other nodes, and what the others learn of the calls of this one."""

    def __init__(
        self, hub: Hub, messages: NodeMessages, home: CallHome, elapsed: Callable[[], float] = ids.since_boot
    ) -> None:
        self._hub = hub
        self._messages = messages
        self._home = home
        self._elapsed = elapsed
        self._calls: dict[str, _Foreign] = {}
        self._told: tuple[list[str], dict[str, bool]] = ([], {})
        messages.on(ASKED, self._take_asked)
        messages.on(OPENED, self._take_opened)
        messages.on(ENDED, self._take_ended)
        messages.on(STATE, self._take_state)
        messages.on(WANTED, self._take_wanted)
        messages.serve(ANSWER, self._take_answer)
        messages.at_beat(self._beat)

    @property
    def has_peers(self) -> bool:
        """Whether other nodes can hear of a call."""
        return self._messages.is_usable and bool(self._messages.peers)

    def ask(self, shown: ShownCall, to: str = "") -> None:
        """Tell the other nodes of a call."""
        if not self._messages.is_shared:
            # A daemon alone does not even serialise it.
            return
        call = shown.call
        body = {
            "id": call.id,
            "target": asdict(call.target),
            "type": call.event.type,
            "data": orjson.Fragment(to_json_bytes(call.event.data)),
            "created_at": call.created_at,
            "is_open": shown.is_open,
        }
        try:
            self._messages.tell(ASKED, body, key=call.target.user_id, to=to)
        except GatewayError as error:
            shown.is_local = True
            log.warning("only this node shows a call: %s", error.message, extra=call.target.log_fields)

    def open(self, shown: ShownCall) -> None:
        """Tell the other nodes that a call is for every session of its user."""
        self._messages.tell(OPENED, {"id": shown.call.id}, key=shown.call.target.user_id)

    def end(self, shown: ShownCall, *, is_answered: bool) -> None:
        """Tell the other nodes that a call has ended."""
        user_id = shown.call.target.user_id
        body = {"id": shown.call.id, "user_id": user_id, "is_answered": is_answered}
        self._messages.tell(ENDED, body, key=user_id)

    def list(self) -> Sequence[EventCall]:
        """Return the unanswered calls of the other nodes that live."""
        since = self._elapsed() - DEAD_SECONDS
        return [
            each.call
            for each in self._calls.values()
            if each.seen_at >= since and each.missed < MISSED_STATES
        ]

    async def answer(self, user_id: str, call_id: str, answer: Mapping[str, Any]) -> None:
        """Pass an answer to the node of a call, with `result` or `error`.

        Raises conflict and not_found as that node says; unavailable if it does not reply, when the answer may
        count or not; too_large for more than 2 MiB.
        """
        found = self._calls.get(call_id)
        if found is None or found.call.target.user_id != user_id:
            if not self._messages.is_usable:
                raise GatewayError(
                    ErrorKind.UNAVAILABLE,
                    f"cannot find call {call_id!r}: the other nodes cannot be asked, Redis is away",
                    retry_after=1,
                )
            raise not_found("call", call_id)
        values = {name: orjson.Fragment(to_json_bytes(value)) for name, value in answer.items()}
        body = {"id": call_id, "user_id": user_id, **values}
        outcome = await self._messages.ask(ANSWER, body, key=user_id, to=found.node_id)
        if outcome == ErrorKind.CONFLICT:
            raise GatewayError(ErrorKind.CONFLICT, f"cannot answer call {call_id!r}: it has an answer")
        if outcome == ErrorKind.NOT_FOUND:
            raise not_found("call", call_id)

    def joined(self, listener: Subscription) -> None:
        """Show the calls of other nodes to a new subscriber."""
        user_id = listener.opened.user_id
        alive = {call.id for call in self.list()}
        for each in [call for call_id, call in self._calls.items() if call_id in alive]:
            if user_id == EVERYBODY and listener.wants_events_of(each.call.target.chat_id):
                self._hub.send([listener], payload_with_user(each.call))
            elif user_id == each.call.target.user_id:
                each.show(self._hub)
        if self._calls:
            self._tell_state()

    def left(self, listener: Subscription) -> None:
        """Note that a subscriber is gone."""
        for each in self._calls.values():
            if each.call.target.user_id == listener.opened.user_id:
                each.shown.discard(listener.opened.session_id)
        if self._calls:
            self._tell_state()

    def _beat(self) -> None:
        forgotten = self._elapsed() - FORGET_SECONDS
        for call_id in [call_id for call_id, each in self._calls.items() if each.seen_at < forgotten]:
            del self._calls[call_id]
        self._tell_state(is_due=True)
        self._home.refresh()

    def _tell_state(self, *, is_due: bool = False) -> None:
        """Tell what this node has and hears, each second or when it has changed."""
        own = [each.call.id for each in self._home.shown_calls() if not each.is_local][:MAX_FOREIGN_CALLS]
        heard = {
            call_id: each.has_session(self._hub)
            for call_id, each in self._calls.items()
            if each.is_heard(self._hub)
        }
        state = own, heard
        # Each second without a change too: the news of an end may be lost.
        if is_due or state != self._told:
            self._told = state
            self._messages.tell(STATE, {"calls": own, "heard": heard})

    def _take_asked(self, sender: str, body: Mapping[str, Any]) -> None:
        if body["id"] in self._calls or len(self._calls) >= MAX_FOREIGN_CALLS:
            return
        each = _Foreign(_parse_call(body), body["is_open"], node_id=sender, seen_at=self._elapsed())
        call = each.call
        self._calls[call.id] = each
        each.show(self._hub)
        each.show_to_everybody(self._hub)
        self._tell_state()

    def _take_opened(self, sender: str, body: Mapping[str, Any]) -> None:
        each = self._calls.get(body["id"])
        if each is not None and each.node_id == sender:
            each.is_open = True
            each.show(self._hub)

    def _take_ended(self, sender: str, body: Mapping[str, Any]) -> None:
        if body["is_answered"]:
            self._home.remember(body["user_id"], body["id"])
        each = self._calls.get(body["id"])
        if each is not None and each.node_id == sender:
            del self._calls[body["id"]]

    def _take_state(self, sender: str, body: Mapping[str, Any]) -> None:
        now, named = self._elapsed(), set(body["calls"])
        for call_id, each in self._calls.items():
            if each.node_id != sender:
                continue
            if call_id in named:
                each.seen_at, each.missed = now, 0
            else:
                # Whether it has an answer, its node says to those who give one.
                each.missed += 1
        # Those for which there is no room are not asked for again each second.
        unknown = sorted(named - self._calls.keys())[: MAX_FOREIGN_CALLS - len(self._calls)]
        if unknown:
            self._messages.tell(WANTED, {"calls": unknown}, to=sender)
        self._home.hear_elsewhere(sender, body["heard"])

    def _take_wanted(self, sender: str, body: Mapping[str, Any]) -> None:
        wanted = set(body["calls"])
        for each in self._home.shown_calls():
            if each.call.id in wanted:
                self.ask(each, to=sender)

    async def _take_answer(self, body: Mapping[str, Any]) -> str:
        answer = {name: body[name] for name in ("result", "error") if name in body}
        try:
            self._home.settle(body["user_id"], body["id"], answer)
        except GatewayError as error:
            return error.kind.value
        return "taken"


def _parse_call(body: Mapping[str, Any]) -> EventCall:
    """Return a call of another node; raises KeyError or ValueError for what is none.

    A later version may tell more.
    """
    target = {name: body["target"][name] for name in TARGET_FIELDS}
    texts = [body["id"], body["type"], *target.values()]
    if not all(isinstance(text, str) for text in texts) or not isinstance(body["created_at"], int):
        raise ValueError("a call with fields of other types")
    return EventCall(body["id"], EventTarget(**target), Event(body["type"], body["data"]), body["created_at"])
