"""Tests for gatewayd.bus.memory."""

from gatewayd.bus.memory import MemoryBus
from gatewayd.events.interfaces import Bus
from gatewayd.events.records import EventFrame


async def test_every_listener_gets_each_frame_in_order() -> None:
    bus: Bus = MemoryBus()
    first: list[tuple[str, EventFrame]] = []
    second: list[tuple[str, EventFrame]] = []
    bus.subscribe(lambda user_id, frame, place: first.append((user_id, frame)))
    one, two = EventFrame("c", b"{}"), EventFrame("d", b"{}")
    await bus.publish("ann", one)
    bus.subscribe(lambda user_id, frame, place: second.append((user_id, frame)))
    await bus.publish("bob", two)
    assert first == [("ann", one), ("bob", two)]
    assert second == [("bob", two)]
    assert bus.is_whole
