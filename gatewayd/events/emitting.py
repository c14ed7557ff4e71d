"""Reads what plugins emit, and keeps the events of one message in their order."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from gatewayd.events.records import Target
from gatewayd.events.values import plain

log = logging.getLogger(__name__)

Envelope = dict[str, Any]
"""An event as JSON: `type` is a text that is not empty, `data` is there; further members are kept."""


def read_event(value: Any) -> Envelope | None:
    """Return an emitted value as an envelope of its own, None when it is no event: nonsense is never raised.

    An event without `data` gets an empty object (`chat:tasks:cancel` is sent so).
    """
    if not isinstance(value, dict | MappingProxyType | BaseModel):
        log.debug("event dropped: it is no object", extra={"found": type(value).__name__})
        return None
    try:
        event = plain(value)
    except ValueError as error:
        log.debug("event dropped: %s", error)
        return None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not event["type"]:
        log.debug("event dropped: it has no type")
        return None
    event.setdefault("data", {})
    return event


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Turns:
    """Lets the events of one message pass one after the other, in the order in which they came."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str, str], _Turn] = {}

    @property
    def count(self) -> int:
        """For how many messages events are under way."""
        return len(self._turns)

    @asynccontextmanager
    async def of(self, target: Target) -> AsyncIterator[None]:
        """Wait until the events that came before are done; the place is given up at the end."""
        key = (target.user_id, target.chat_id, target.message_id)
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]
