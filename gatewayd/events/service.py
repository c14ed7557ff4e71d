"""Event service: the single entry for events and calls of plugins, runs and external tools."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.calls import EventCalls
from gatewayd.events.envelope import Envelope, parse_event
from gatewayd.events.event_types import PayloadFault, find_type, names_of
from gatewayd.events.hub import Hub
from gatewayd.events.interfaces import MessageEffects
from gatewayd.events.message_effects import StoredEffects, is_stored
from gatewayd.events.records import Effect, Event, EventHelper, EventTarget
from gatewayd.keyed_locks import KeyedLocks
from gatewayd.write_attempt import Key, Work

log = logging.getLogger(__name__)

_OF_CONTENT: Final = frozenset({Effect.APPEND_CONTENT, Effect.REPLACE_CONTENT})


class EventService:
    """Stores the effect of an event on its message, then sends the event to the subscribers of the user."""

    def __init__(
        self, effects: MessageEffects, hub: Hub, calls: EventCalls, deferred: DeferredWrites
    ) -> None:
        self._effects = StoredEffects(effects)
        self._hub = hub
        self._deferred = deferred
        self._calls = calls
        self._message_locks: KeyedLocks[tuple[str, str, str]] = KeyedLocks()

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Store the effect of an event, then deliver it; subscribers are not required.

        The events of one message keep their order. An invalid event is dropped. An event whose payload does
        not match its type is delivered and not stored. During a database outage the event is delivered, and
        its effect is written later. Returns False if the effect is lost, which is logged; the event is
        delivered all the same. Raises too_large, and delivers nothing, if the message would become too long.
        """
        envelope = parse_event(event)
        if envelope is None:
            return True
        effect = self._effect_of(target, envelope)
        async with self._message_locks.of(_lock_key(target)):
            change = _Change(target, effect, envelope)
            is_kept = await self._store(change)
            await self._publish(target, envelope)
            change.is_delivered = True
        return is_kept

    async def accept(self, target: EventTarget, event: Any) -> None:
        """Store and deliver an event of a caller who can repeat it, such as an external tool.

        Raises the errors of the store, and unavailable while earlier writes to the message wait for the
        database; then nothing is stored or delivered.
        """
        envelope = parse_event(event)
        if envelope is None:
            return
        effect = self._effect_of(target, envelope)
        change = _Change(target, effect, envelope)
        async with self._message_locks.of(_lock_key(target)):
            if effect is not Effect.NONE:
                async with self._deferred.turn(change.key):
                    await self._apply(change)
            await self._publish(target, envelope)

    @asynccontextmanager
    async def still(
        self, user_id: str, chat_id: str, message_ids: Sequence[str]
    ) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        """Let no event of these messages pass within the block.

        Gives the id of the newest event, and for running answers the text that events had so far, which the
        store may not have yet. What the block reads has the effects of exactly the events up to that id, as
        far as this process emits them.
        """
        async with AsyncExitStack() as stack:
            # In one order, so that two blocks cannot wait for each other.
            for message_id in sorted(set(message_ids)):
                await stack.enter_async_context(self._message_locks.of((user_id, chat_id, message_id)))
            yield await self._hub.settled_position(user_id), self._texts(user_id, chat_id, message_ids)

    async def call(self, target: EventTarget, event: Any) -> Any:
        """Send a call to the user and return the answer, any JSON value.

        Raises `calls.CallTimeout` without an answer in time or without a live connection; RuntimeError if the
        client reports a failure or the event type is not a call.
        """
        envelope = parse_event(event)
        if envelope is None:
            raise RuntimeError("cannot ask the user: the event is not an object with a type")
        asked = Event(envelope["type"], envelope["data"])
        row = find_type(asked.type)
        if row is None or row.helper is not EventHelper.CALL:
            known = ", ".join(names_of(EventHelper.CALL))
            raise RuntimeError(f"cannot ask the user with an event of type {asked.type!r}: only {known} can")
        fault = row.check(asked.data)
        if fault is not None:
            raise RuntimeError(f"cannot ask the user: {fault.field} is not {fault.expected}")
        # Events that were emitted before the call are delivered before it.
        async with self._message_locks.of(_lock_key(target)):
            pass
        return await self._calls.ask(target, asked)

    def withdraw_calls(self, target: EventTarget) -> None:
        """Cancel the unanswered calls of a message whose answer has been stopped."""
        self._calls.withdraw(target)

    def is_allowed_outside(self, name: str) -> bool:
        """Tell whether external tools may send events of a type."""
        row = find_type(name)
        return row is not None and row.external

    def find_fault(self, name: str, data: Any) -> PayloadFault | None:
        """Return the fault of a payload, None without one and for every unknown type."""
        row = find_type(name)
        return None if row is None else row.check(data)

    def _texts(self, user_id: str, chat_id: str, message_ids: Sequence[str]) -> Mapping[str, str]:
        keys = {about_answer(user_id, chat_id, message_id) for message_id in message_ids}
        found = self._hub.buffered(user_id, keys).values()
        return {payload["message_id"]: payload["data"]["data"]["content"] for payload in found}

    def _effect_of(self, target: EventTarget, envelope: Envelope) -> Effect:
        name, data = envelope["type"], envelope["data"]
        row = find_type(name)
        if row is None or row.effect is Effect.NONE or not is_stored(target):
            return Effect.NONE
        fault = row.check(data)
        if fault is not None:
            log.warning(
                "cannot store an event: %s is not %s",
                fault.field,
                fault.expected,
                extra={"type": name, **target.log_fields},
            )
            return Effect.NONE
        return row.effect_of(name)

    async def _store(self, change: "_Change") -> bool:
        """Store an effect now or later; return False if it is lost."""
        if change.effect is Effect.NONE:
            return True
        try:
            data, target = change.envelope["data"], change.target
            work, request_id = self._writing(change), target.request_id
            await self._deferred.write(change.key, work, data, owner=target.user_id, request_id=request_id)
        except GatewayError as error:
            if error.kind is ErrorKind.TOO_LARGE:
                raise
            extra = {"type": change.envelope["type"], **change.target.log_fields}
            log.error("cannot store an event: %s", error.full_message, extra=extra)
            return False
        return True

    def _writing(self, change: "_Change") -> Work:
        """Return the write of an effect; a late write of a list delivers the event again, with the list."""

        async def write(is_superseded: bool) -> None:
            if is_superseded and change.effect in _OF_CONTENT:
                return
            delivered = change.envelope["data"]
            await self._apply(change)
            if change.is_delivered and change.envelope["data"] is not delivered:
                await self._publish(change.target, change.envelope)

        return write

    async def _apply(self, change: "_Change") -> None:
        envelope = change.envelope
        try:
            envelope["data"] = await self._effects.apply(change.target, change.effect, envelope["data"])
        except GatewayError as error:
            if error.kind is ErrorKind.TOO_LARGE:
                raise GatewayError(error.kind, error.message, param=_field(change.effect)) from error
            raise

    async def _publish(self, target: EventTarget, envelope: Envelope) -> None:
        payload = {"chat_id": target.chat_id, "message_id": target.message_id, "data": envelope}
        await self._hub.publish(target.user_id, target.chat_id, payload, _about(target, envelope))


@dataclass(slots=True)
class _Change:
    """An event with its effect on its message."""

    target: EventTarget
    effect: Effect
    envelope: Envelope
    is_delivered: bool = False

    @property
    def key(self) -> Key:
        return self.target.chat_id, self.target.message_id


def _lock_key(target: EventTarget) -> tuple[str, str, str]:
    return target.user_id, target.chat_id, target.message_id


def _field(effect: Effect) -> str:
    """Return the field of the payload that an effect writes."""
    match effect:
        case Effect.APPEND_CONTENT | Effect.REPLACE_CONTENT:
            return "data.content"
        case Effect.APPEND_EMBEDS | Effect.APPEND_FILES:
            return f"data.{effect.value}"
        case _:
            return "data"


def _about(target: EventTarget, envelope: Envelope) -> str:
    """Return the replay key of an event that holds the whole answer so far, "" for other events."""
    data = envelope["data"]
    if envelope["type"] != "chat:completion" or not isinstance(data, dict) or data.keys() != {"content"}:
        return ""
    return about_answer(target.user_id, target.chat_id, target.message_id)


def about_answer(user_id: str, chat_id: str, message_id: str) -> str:
    """Return the replay key of the events that hold the whole text of an answer so far."""
    return "\n".join((user_id, chat_id, message_id))
