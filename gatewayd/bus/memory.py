"""The bus of a gateway that is one process: who publishes calls the listeners."""

from collections.abc import Callable

from gatewayd.events.records import EventFrame

Listener = Callable[[str, EventFrame], None]


class MemoryBus:
    """Gives each frame to its listeners at once, in the order of the publishing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Give a frame to the listeners."""
        for listener in self._listeners:
            listener(user_id, frame)

    def subscribe(self, listener: Listener) -> None:
        """Call the listener with each frame from now on."""
        self._listeners.append(listener)
