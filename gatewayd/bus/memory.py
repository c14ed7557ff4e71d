"""In-memory bus of a gateway that is one process: publishing calls the listeners directly."""

from collections.abc import Callable

from gatewayd.events.records import EventFrame

Listener = Callable[[str, EventFrame], None]


class MemoryBus:
    """Passes each frame to the listeners at once, in the order of publishing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Pass a frame to the listeners."""
        for listener in self._listeners:
            listener(user_id, frame)

    def subscribe(self, listener: Listener) -> None:
        """Pass each further frame to `listener`."""
        self._listeners.append(listener)
