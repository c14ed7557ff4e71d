"""The event services over stored chats in memory, and readers of what listeners get."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gatewayd.bus.memory import MemoryBus
from gatewayd.chats.records import Chat, Message
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import Hub
from gatewayd.events.records import EventTarget
from gatewayd.events.rooms import EventLimits, Subscription
from gatewayd.events.service import EventService
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.memory_chats import ChatState, MemoryEffects

SOON = 5.0
TARGET = EventTarget("ann", "c1", "m1", "s1")


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make_state(*chat_ids: str) -> ChatState:
    """Return chats of ann with one message m1 each."""
    state = ChatState()
    for chat_id in chat_ids or ("c1",):
        state.chats[chat_id] = Chat(chat_id, "ann", "Chat")
        state.messages[chat_id] = {"m1": Message("m1", None, "assistant")}
    return state


class SlowEffects(MemoryEffects):
    """A store whose writes of content end when a test says so, the first one last."""

    def __init__(self, state: ChatState) -> None:
        super().__init__(state)
        self.begun = 0
        self.go = asyncio.Event()

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        self.begun += 1
        if self.begun == 1:
            await self.go.wait()
        return await super().append_content(chat_id, message_id, text)


@dataclass
class EventSite:
    """Everything that events need, in memory."""

    state: ChatState = field(default_factory=make_state)
    limits: EventLimits = field(default_factory=EventLimits)
    clock: Clock = field(default_factory=Clock)
    timeout: float = 60.0
    grace: float = 60.0

    def __post_init__(self) -> None:
        self.bus = MemoryBus()
        self.hub = Hub(self.bus, self.limits, clock=self.clock)
        self.calls = EventCalls(self.hub, timeout=self.timeout, grace=self.grace)
        self.deferred = DeferredWrites(TaskRegistry())
        self.events = EventService(MemoryEffects(self.state), self.hub, self.calls, self.deferred)

    def message(self, chat_id: str = "c1") -> Message:
        """Return the stored message of a chat."""
        return self.state.messages[chat_id]["m1"]


def payloads(frames: bytes) -> list[Any]:
    """Return the payloads of whole frames, comments left out."""
    return [orjson.loads(lines["data"]) for lines in fields(frames)]


def fields(frames: bytes) -> list[dict[str, str]]:
    """Return the fields of each frame, read by the rules of event streams; comments are left out."""
    found: list[dict[str, str]] = []
    for block in frames.decode().split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            found.append({name: value for name, _, value in lines})
    assert frames.endswith(b"\n\n") or not frames
    return found


async def heard(listener: Subscription) -> list[Any]:
    """Return the payloads that wait for a listener; there must be some."""
    return payloads(await asyncio.wait_for(listener.next(), SOON))


def waiting(listener: Subscription) -> bool:
    """Tell whether something waits for a listener."""
    return not listener.is_idle


def ids_of(frames: bytes) -> Sequence[str]:
    """Return the ids of frames."""
    return [lines["id"] for lines in fields(frames)]
